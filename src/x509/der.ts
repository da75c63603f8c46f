/** Reads and writes DER (X.690) as strictly as Go's cryptobyte, with which kube-apiserver parses certificates. */

/** One element of an encoding. */
export type Element = {
  readonly tag: number;
  /** The contents. */
  readonly value: Buffer;
  /** The contents with tag and length. */
  readonly whole: Buffer;
};

export const tags = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  bytes: 0x04,
  sequence: 0x30,
  set: 0x31,
} as const;

/** Returns the elements in these bytes, one after the other; undefined if one of them is malformed or cut off. */
export function elementsIn(der: Buffer): Element[] | undefined {
  const elements: Element[] = [];
  for (let rest = der; rest.length > 0; ) {
    const element = elementAt(rest);
    if (element === undefined) return undefined;
    elements.push(element);
    rest = rest.subarray(element.whole.length);
  }
  return elements;
}

/** Stands for an element that is missing. No function accepts it as anything. */
export const none: Element = { tag: 0, value: Buffer.alloc(0), whole: Buffer.alloc(0) };

/** Returns the elements of a SEQUENCE or SET; undefined if the element is something else, or malformed inside. */
export function partsOf(element: Element, tag: number = tags.sequence): Element[] | undefined {
  return element.tag === tag ? elementsIn(element.value) : undefined;
}

/** Returns one element of a list, `none` if the list is undefined or too short. */
export function nth(list: readonly Element[] | undefined, at: number): Element {
  return list?.at(at) ?? none;
}

/** Returns the hexadecimal contents of an object identifier; "" if the element is none. */
export function oidOf({ tag, value }: Element): string {
  return tag === 0x06 ? value.toString("hex") : "";
}

function elementAt(der: Buffer): Element | undefined {
  const [tag = 0x1f] = der;
  const start = 2 + lengthBytes(der);
  // Tags above 30 take several bytes; no certificate has one.
  if ((tag & 0x1f) === 0x1f || start > der.length) return undefined;
  const length = start === 2 ? der.readUInt8(1) : der.readUIntBE(2, start - 2);
  const end = start + length;
  if (end > der.length || (start > 2 && !isShortest(length, start - 2))) return undefined;
  return { tag, value: der.subarray(start, end), whole: der.subarray(0, end) };
}

/**
 * A length below 128 is one byte. Otherwise the first byte states how many bytes of length follow (X.690 §8.1.3).
 * Returns this number, or infinity if no certificate can be that long.
 */
function lengthBytes([, first = 0xff]: Buffer): number {
  if (first < 0x80) return 0;
  return first > 0x80 && first <= 0x84 ? first - 0x80 : Number.POSITIVE_INFINITY;
}

/** True if the length does not fit into fewer bytes, which DER would require (X.690 §10.1). */
function isShortest(length: number, bytes: number): boolean {
  return length >= (bytes === 1 ? 0x80 : 256 ** (bytes - 1));
}

/** Encodes an element. */
export function encode(tag: number, ...contents: readonly Buffer[]): Buffer {
  const value = Buffer.concat(contents);
  const digits = value.length.toString(16);
  const length = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex");
  const header = value.length < 0x80 ? [tag] : [tag, 0x80 | length.length];
  return Buffer.concat([Buffer.from(header), length, value]);
}
