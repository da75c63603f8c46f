/**
 * Watch events as JSON: one to a line. Go escapes control characters, so a line feed ends an event and is nothing
 * else. The head of every line is checked octet by octet: an aggregated server that prints its JSON in another way
 * becomes opaque, and is never cut at line feeds that mean nothing.
 */
import { limits } from "../limits.ts";
import type { EventFraming } from "./framing.ts";

const lineFeed = 0x0a;
const closingBrace = 0x7d;

/** How the apiserver's encoder begins a line: these keys, in this order, no blanks (watch.md §2.1). */
function headOf(type: string): Buffer {
  return Buffer.from(`{"type":"${type}","object":`);
}

const types = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"];
/** Heads are alike up to the type, whose first letter tells which it is. */
const anyHead = headOf("ADDED");
const typeAt = anyHead.indexOf("ADDED");
const headsByLetter = new Map(types.map((type) => [type.charCodeAt(0), headOf(type)]));

/** Up to here a loop costs less than calling indexOf, which also reads on behind `end` because it knows of none. */
const shortBytes = 64;

export class JsonEvents implements EventFraming {
  #events = 0;
  /** Of the line that has begun: its octets so far, the head it must have, how much of that it has, its last octet. */
  #length = 0;
  #head = anyHead;
  #matched = 0;
  #last = 0;

  get events(): number {
    return this.#events;
  }

  get isWhole(): boolean {
    return this.#length === 0;
  }

  feed(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end) {
      const found = lineFeedIn(bytes, at, end);
      const stop = found < 0 ? end : found;
      if (!this.#read(bytes, at, stop)) return -1;
      if (found < 0) break;
      if (!this.#endLine()) return -1;
      at = found + 1;
    }
    return at;
  }

  /** The next octets of one line; false when it cannot be an event. */
  #read(bytes: Buffer, start: number, end: number): boolean {
    this.#length += end - start;
    if (this.#length > limits.eventBytes) return false;
    if (end > start) this.#last = bytes[end - 1] ?? 0;
    return this.#matched === this.#head.length || this.#readHead(bytes, start, end);
  }

  #readHead(bytes: Buffer, start: number, end: number): boolean {
    let matched = this.#matched;
    let head = this.#head;
    for (let at = start; at < end && matched < head.length; at++) {
      const octet = bytes[at];
      if (matched === typeAt) head = headsByLetter.get(octet ?? 0) ?? anyHead;
      if (octet !== head[matched]) return false;
      matched++;
    }
    this.#matched = matched;
    this.#head = head;
    return true;
  }

  #endLine(): boolean {
    if (this.#matched < this.#head.length || this.#last !== closingBrace) return false;
    this.#events++;
    this.#length = 0;
    this.#matched = 0;
    return true;
  }
}

function lineFeedIn(bytes: Buffer, start: number, end: number): number {
  if (end - start > shortBytes) {
    const found = bytes.indexOf(lineFeed, start);
    return found < end ? found : -1;
  }
  for (let at = start; at < end; at++) if (bytes[at] === lineFeed) return at;
  return -1;
}
