/**
 * Watch events as JSON, one to a line. Go escapes control characters, so a line feed always ends an event. The head of
 * every line is checked octet by octet: the stream of an aggregated server that formats its JSON differently becomes
 * opaque, and is never cut at line feeds inside an object.
 */
import { limits } from "../../base/limits.ts";
import { type EventDecoder, type EventType, eventTypes, isOpaque, needsMore } from "./event.ts";
import { JsonMetadata } from "./json-metadata.ts";
import { type Parsed, parsedJson } from "./json-parsed.ts";
import { SmallEvent } from "./small-event.ts";

const lineFeed = 0x0a;
const closingBrace = 0x7d;

/**
 * The beginning of each line that the apiserver's encoder writes: these keys, in this order, no blanks (watch.md §2.1).
 */
function headOf(type: string): Buffer {
  return Buffer.from(`{"type":"${type}","object":`);
}

/** Heads are alike up to the type, whose first letter identifies it. */
const anyHead = headOf("ADDED");
const typeAt = anyHead.indexOf("ADDED");
const typesByLetter = new Map(eventTypes.map((type) => [type.charCodeAt(0), { type, head: headOf(type) }]));

/** Up to this length a loop costs less than indexOf, which also reads beyond `end`. */
const shortBytes = 64;

export class JsonEvents implements EventDecoder {
  readonly #metadata: JsonMetadata;
  readonly #keepsKeys: boolean;
  readonly #small = new SmallEvent();
  #parsed: Parsed | undefined;
  /**
   * Of the current line: its octets so far, the head that it must have, the matched octets of that head, its last
   * octet.
   */
  #length = 0;
  #head = anyHead;
  #matched = 0;
  #last = 0;
  type: EventType = "ADDED";
  events = 0;

  /** `keepsKeys`: true if the events' keys are needed. */
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

  /** Counts bytes[start, end) as part of this line. Returns false if the line is too long. */
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

  /** Returns where the object begins, as far as the bytes reach; -1 if the line begins with no known head. */
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

  /** True if the event is parsed whole. With keys a Table is, too: the object that it describes is named in its row. */
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
    // Without a key a watch cannot continue on another backend, but the event itself is valid.
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
