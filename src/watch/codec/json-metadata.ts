/**
 * Finds resourceVersion, name and namespace in an object of compact JSON that may arrive in pieces. Only the object's
 * own `metadata` is read, not a nested `metadata` (watch.md §2.2). Custom resources sort their keys, so
 * megabytes of user data may precede `metadata`; these bytes are skipped one by one.
 */
import { isVersion } from "../../kube/resource-version.ts";

const space = 0x20;
const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;

const metadata = Buffer.from("metadata");
const resourceVersion = Buffer.from("resourceVersion");
const name = Buffer.from("name");
const namespace = Buffer.from("namespace");

/** Returned in place of a position if the bytes are not valid compact JSON. */
const fault = -1;

/** Maximum number of characters kept of an incomplete key. All keys that the parser looks for are shorter. */
const keyBytes = 64;

type Wanted = "none" | "version" | "name" | "namespace";

/**
 * States of the parser. In the states from `open` to `after`, each byte decides the next state. The states `key`,
 * `text` and `nested` last until the key, the string or the nested value ends.
 */
const at = {
  bad: 0,
  open: 1,
  firstKey: 2,
  nextKey: 3,
  colon: 4,
  value: 5,
  scalar: 6,
  after: 7,
  key: 8,
  text: 9,
  nested: 10,
  /** After the brace that opens the metadata or a nested object. */
  members: 11,
  /** No more bytes need be read, because the version was found, or the metadata or the object has ended. */
  over: 12,
} as const;

const steps: readonly (readonly [from: number, bytes: string, to: number])[] = [
  [at.open, "{", at.firstKey],
  [at.firstKey, '"', at.key],
  [at.firstKey, "}", at.over],
  [at.nextKey, '"', at.key],
  [at.colon, ":", at.value],
  [at.value, '"', at.text],
  [at.value, "{", at.members],
  [at.value, "[", at.nested],
  [at.value, "-0123456789tfn", at.scalar],
  [at.scalar, "+-.0123456789Eaeflnrsu", at.scalar],
  [at.scalar, ",", at.nextKey],
  [at.scalar, "}", at.over],
  [at.after, ",", at.nextKey],
  [at.after, "}", at.over],
];

/** The next state, at index `256 * state + byte`. */
const table = new Uint8Array(16 * 256);
for (const [from, bytes, to] of steps) for (const byte of Buffer.from(bytes)) table[from * 256 + byte] = to;

const depthChangeOf = new Int8Array(256);
for (const byte of Buffer.from("{[")) depthChangeOf[byte] = 1;
for (const byte of Buffer.from("}]")) depthChangeOf[byte] = -1;

export class JsonMetadata {
  readonly #keepsKeys: boolean;
  #state: number = at.open;
  #isInMetadata = false;
  #isEscaped = false;
  #nestedDepth = 0;
  #isInNestedText = false;
  #wanted: Wanted = "none";
  #isKeyMetadata = false;
  /** The beginning of a key or value whose rest comes with the next chunk; "": none. */
  #token = "";
  version = "";
  name = "";
  namespace = "";

  constructor(keepsKeys: boolean) {
    this.#keepsKeys = keepsKeys;
  }

  /** True if the rest of this object need not be read. */
  get isOver(): boolean {
    return this.#state === at.over;
  }

  reset(): void {
    this.#state = at.open;
    this.#isInMetadata = false;
    this.version = "";
    this.name = "";
    this.namespace = "";
  }

  /** Reads bytes[start, end). Returns the position that it reached; -1 if the object is not compact JSON. */
  walk(bytes: Buffer, start: number, end: number): number {
    let here = start;
    while (here < end && this.#state !== at.over) {
      if (this.#state === at.nested) here = this.#passNested(bytes, here, end);
      else if (this.#state > at.after) here = this.#passText(bytes, here, end);
      else here = this.#stepOn(bytes, here, end);
      if (this.#state === at.bad) return fault;
    }
    return here;
  }

  #stepOn(bytes: Buffer, start: number, end: number): number {
    const isAtMember = this.#state === at.nextKey || this.#state === at.firstKey;
    const here = isAtMember ? this.#passMembers(bytes, start, end) : start;
    if (here === end || this.isOver) return here;
    this.#step(table[this.#state * 256 + (bytes[here] ?? 0)] ?? at.bad);
    return here + 1;
  }

  #step(next: number): void {
    this.#state = next;
    if (next < at.nested) return;
    if (next === at.members && this.#isKeyMetadata) {
      this.#isKeyMetadata = false;
      this.#isInMetadata = true;
      this.#state = at.firstKey;
    } else if (next !== at.over) {
      this.#nestedDepth = 1;
      this.#isInNestedText = false;
      this.#state = at.nested;
    }
  }

  /**
   * Reads complete members whose values are plain strings. Gives the same result as reading byte by byte, but is twice
   * as fast.
   */
  #passMembers(bytes: Buffer, start: number, end: number): number {
    let here = start;
    while (bytes[here] === quote) {
      const keyEnd = endOfPlain(bytes, here + 1, end);
      if (bytes[keyEnd + 1] !== colon || bytes[keyEnd + 2] !== quote) break;
      const textEnd = endOfPlain(bytes, keyEnd + 3, end);
      if (textEnd + 2 >= end || bytes[textEnd + 1] !== comma) break;
      if (this.#isInMetadata) {
        this.#endKey(bytes, here + 1, keyEnd);
        if (this.#wanted !== "none") this.#endWanted(bytes, keyEnd + 3, textEnd);
        if (this.#state === at.over) return textEnd + 1;
      }
      this.#state = at.nextKey;
      here = textEnd + 2;
    }
    return here;
  }

  #passNested(bytes: Buffer, start: number, end: number): number {
    let here = this.#isEscaped ? start + 1 : start;
    while (here !== fault && here < end && this.#nestedDepth > 0)
      here = this.#isInNestedText
        ? this.#passNestedText(bytes, here, end)
        : this.#passBrackets(bytes, here, end);
    this.#isEscaped = here > end;
    if (here === fault) this.#state = at.bad;
    else if (this.#nestedDepth === 0) this.#state = at.after;
    return Math.min(here, end);
  }

  #passBrackets(bytes: Buffer, start: number, end: number): number {
    let here = start;
    let depth = this.#nestedDepth;
    while (here < end && depth > 0 && !this.#isInNestedText) {
      const byte = bytes[here++] ?? 0;
      if (byte < space) return fault;
      if (byte === quote) this.#isInNestedText = true;
      else depth += depthChangeOf[byte] ?? 0;
    }
    this.#nestedDepth = depth;
    return here;
  }

  #passNestedText(bytes: Buffer, start: number, end: number): number {
    const close = closingQuote(bytes, start, end);
    this.#isInNestedText = close >= end;
    return close >= 0 && close < end ? close + 1 : close;
  }

  #passText(bytes: Buffer, start: number, end: number): number {
    const close = closingQuote(bytes, this.#isEscaped ? start + 1 : start, end);
    this.#isEscaped = close > end;
    if (close === fault) {
      this.#state = at.bad;
      return end;
    }
    if (close < end) {
      this.#endText(bytes, start, close);
      return close + 1;
    }
    if (this.#isTokenWanted) this.#keepToken(bytes, start, end);
    return end;
  }

  get #isTokenWanted(): boolean {
    return this.#state === at.key || (this.#state === at.text && this.#wanted !== "none");
  }

  #keepToken(bytes: Buffer, start: number, end: number): void {
    if (this.#state === at.key && this.#token.length > keyBytes) return;
    this.#token += bytes.toString("latin1", start, end);
  }

  #endText(bytes: Buffer, start: number, end: number): void {
    if (this.#state === at.key) this.#endKey(bytes, start, end);
    else if (this.#wanted !== "none") this.#endWanted(bytes, start, end);
    else this.#state = at.after;
    this.#token = "";
  }

  #endKey(bytes: Buffer, start: number, end: number): void {
    this.#state = at.colon;
    this.#wanted = "none";
    if (!this.#isInMetadata) this.#isKeyMetadata = this.#is(metadata, bytes, start, end);
    else if (this.#is(resourceVersion, bytes, start, end)) this.#wanted = "version";
    else if (this.#keepsKeys && this.#is(name, bytes, start, end)) this.#wanted = "name";
    else if (this.#keepsKeys && this.#is(namespace, bytes, start, end)) this.#wanted = "namespace";
  }

  /** True if the key equals `key`. Does not decode escapes, because Go's encoder does not escape letters. */
  #is(key: Buffer, bytes: Buffer, start: number, end: number): boolean {
    if (this.#token !== "")
      return this.#token + bytes.toString("latin1", start, end) === key.toString("latin1");
    if (end - start !== key.length) return false;
    for (let index = 0; index < key.length; index++) if (bytes[start + index] !== key[index]) return false;
    return true;
  }

  #endWanted(bytes: Buffer, start: number, end: number): void {
    const text = this.#token + bytes.toString("latin1", start, end);
    this.#state = at.after;
    if (this.#wanted === "name") this.name = text;
    else if (this.#wanted === "namespace") this.namespace = text;
    else {
      this.version = isVersion(text) ? text : "";
      this.#state = at.over;
    }
  }
}

/**
 * Returns the position of the quote that closes the string; `end` if the string continues beyond `end`, `end + 1` if
 * its last backslash escapes a byte that has not arrived, and `fault` if it contains a control character.
 */
function closingQuote(bytes: Buffer, start: number, end: number): number {
  let here = start;
  for (; here < end; here++) {
    const byte = bytes[here] ?? 0;
    if (byte === quote) return here;
    if (byte === backslash) here++;
    else if (byte < space) return fault;
  }
  return here;
}

/** Returns the position of the quote that closes the string; `end` if the string is incomplete or has escapes. */
function endOfPlain(bytes: Buffer, start: number, end: number): number {
  for (let here = start; here < end; here++) {
    const byte = bytes[here] ?? 0;
    if (byte === quote) return here;
    if (byte === backslash || byte < space) break;
  }
  return end;
}
