/**
 * Watch events as JSON: one to a line. Go escapes control characters, so a line feed ends an event and is nothing
 * else. The head of every line is checked octet by octet: an aggregated server that prints its JSON in another way
 * becomes opaque, and is never cut at line feeds that mean nothing.
 */
import { limits } from "../../base/limits.ts";
import { type EventDecoder, type EventType, eventTypes, isOpaque, needsMore } from "./event.ts";
import { JsonMetadata } from "./json-metadata.ts";
import { type Parsed, parsedJson } from "./json-parsed.ts";
import { SmallEvent } from "./small-event.ts";

const lineFeed = 0x0a;
const closingBrace = 0x7d;

/** How the apiserver's encoder begins a line: these keys, in this order, no blanks (watch.md §2.1). */
function headOf(type: string): Buffer {
  return Buffer.from(`{"type":"${type}","object":`);
}

/** Heads are alike up to the type, whose first letter tells which it is. */
const anyHead = headOf("ADDED");
const typeAt = anyHead.indexOf("ADDED");
const typesByLetter = new Map(eventTypes.map((type) => [type.charCodeAt(0), { type, head: headOf(type) }]));

/** Up to here a loop costs less than calling indexOf, which also reads on behind `end` because it knows of none. */
const shortBytes = 64;

export class JsonEvents implements EventDecoder {
  readonly #metadata: JsonMetadata;
  readonly #keepsKeys: boolean;
  readonly #small = new SmallEvent();
  #parsed: Parsed | undefined;
  /** Of the line that has begun: its octets so far, the head it must have, how much of that it has, its last octet. */
  #length = 0;
  #head = anyHead;
  #matched = 0;
  #last = 0;
  type: EventType = "ADDED";
  events = 0;

  /** `keepsKeys`: will the events' keys be asked for? */
  constructor(keepsKeys: boolean) {
    this.#keepsKeys = keepsKeys;
    this.#metadata = new JsonMetadata(keepsKeys);
  }

  get isWhole(): boolean {
    return this.#length === 0;
  }

  get version(): string {
    return this.type === "ERROR" ? "" : this.#metadata.version;
  }

  get endsInitialEvents(): boolean {
    return this.type === "BOOKMARK" && this.#parsed?.endsInitialEvents === true;
  }

  get code(): number {
    return this.type === "ERROR" ? (this.#parsed?.code ?? 0) : 0;
  }

  get reason(): string {
    return this.type === "ERROR" ? (this.#parsed?.reason ?? "") : "";
  }

  get oldest(): string {
    return this.type === "ERROR" ? (this.#parsed?.oldest ?? "") : "";
  }

  get key(): string {
    if (!this.#keepsKeys) return "";
    if (this.#parsed !== undefined) return this.#parsed.key;
    return this.#metadata.name === "" ? "" : `${this.#metadata.namespace}/${this.#metadata.name}`;
  }

  next(bytes: Buffer, start: number, end: number): number {
    if (this.#length === 0) this.#begin();
    const object = this.#readHead(bytes, start, end);
    const walked = object < 0 ? object : this.#metadata.walk(bytes, object, end);
    if (walked < 0) return isOpaque;
    const stop = lineFeedIn(bytes, walked, end);
    if (!this.#take(bytes, start, stop < 0 ? end : stop)) return isOpaque;
    if (stop >= 0) return this.#endLine(bytes, object, stop) ? stop + 1 : isOpaque;
    if (this.#isSmall) this.#small.keep(bytes, object, end);
    return needsMore;
  }

  /** bytes[start, end) are of this line; false when it is too long. */
  #take(bytes: Buffer, start: number, end: number): boolean {
    this.#length += end - start;
    if (end > start) this.#last = bytes[end - 1] ?? 0;
    return this.#length <= limits.eventBytes;
  }

  #begin(): void {
    this.#metadata.reset();
    this.#parsed = undefined;
    this.#matched = 0;
  }

  /** Where the object begins, as far as the bytes reach; -1 when this is no head. */
  #readHead(bytes: Buffer, start: number, end: number): number {
    let matched = this.#matched;
    if (matched === this.#head.length) return start;
    let head = this.#head;
    let here = start;
    for (; here < end && matched < head.length; here++) {
      const octet = bytes[here];
      if (matched === typeAt && octet !== head[matched]) head = this.#headBy(octet ?? 0);
      if (octet !== head[matched]) return -1;
      matched++;
    }
    this.#matched = matched;
    this.#head = head;
    return here;
  }

  #headBy(letter: number): Buffer {
    const known = typesByLetter.get(letter);
    if (known !== undefined) this.type = known.type;
    return known?.head ?? anyHead;
  }

  get #isRare(): boolean {
    return this.type === "BOOKMARK" || this.type === "ERROR";
  }

  /** Is it parsed whole? For its key a Table is too: what it shows is named in its row. */
  get #isSmall(): boolean {
    return this.#isRare || (this.#keepsKeys && this.#metadata.name === "");
  }

  /** bytes[object, stop) is the last piece of the line, without its head. */
  #endLine(bytes: Buffer, object: number, stop: number): boolean {
    if (this.#last !== closingBrace) return false;
    this.events++;
    this.#length = 0;
    if (!this.#isSmall) {
      this.#small.forget();
      return true;
    }
    const whole = this.#small.take(bytes, object, stop);
    if (whole !== undefined) this.#parsed = parsedJson(whole.subarray(0, -1));
    // Without a key a watch cannot go on elsewhere, but what it carries is understood.
    return this.#parsed !== undefined || (whole === undefined && !this.#isRare);
  }
}

function lineFeedIn(bytes: Buffer, start: number, end: number): number {
  if (end - start > shortBytes) {
    const found = bytes.indexOf(lineFeed, start);
    return found < end ? found : -1;
  }
  for (let here = start; here < end; here++) if (bytes[here] === lineFeed) return here;
  return -1;
}
