/**
 * Reads and writes big-endian integers, three times as fast as Buffer's own methods. Callers must check the length
 * first: a read beyond the end returns undefined, although the return type is number.
 */
export function u8(bytes: Uint8Array, at: number): number {
  return bytes[at] as number;
}

export function u16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
}

export function u24(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number);
}

export function u32(bytes: Uint8Array, at: number): number {
  return u24(bytes, at) * 256 + (bytes[at + 3] as number);
}

/** Returns a stream id or a window increment, which has 31 bits. Ignores the reserved top bit (RFC 9113 §4.1). */
export function u31(bytes: Uint8Array, at: number): number {
  return (
    (((bytes[at] as number) & 0x7f) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  );
}

export function putU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 8;
  bytes[at + 1] = value;
}

export function putU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

export function putFrameHeader(
  bytes: Uint8Array,
  at: number,
  length: number,
  type: number,
  flags: number,
  id: number,
): void {
  bytes[at] = length >>> 16;
  bytes[at + 1] = length >>> 8;
  bytes[at + 2] = length;
  bytes[at + 3] = type;
  bytes[at + 4] = flags;
  putU32(bytes, at + 5, id);
}

/**
 * Methods of Buffer that its published type lacks. They are twice as fast as toString("latin1") and write(text,
 * "latin1").
 */
type Latin1 = {
  latin1Slice(start: number, end: number): string;
  latin1Write(text: string, at: number, length: number): number;
};

export function latin1(bytes: Buffer, start: number, end: number): string {
  return (bytes as unknown as Latin1).latin1Slice(start, end);
}

/** Longest string, in characters, for which a loop in JavaScript is faster than Node's native write. */
const loopedCharacters = 24;

/** Writes a latin1 string, for which `bytes` must have enough room. Returns the position after the string. */
export function putLatin1(bytes: Buffer, at: number, text: string): number {
  const { length } = text;
  if (length > loopedCharacters) (bytes as unknown as Latin1).latin1Write(text, at, length);
  else for (let from = 0; from < length; from++) bytes[at + from] = text.charCodeAt(from);
  return at + length;
}

/** True if bytes[at, end) begins with the bytes of `other`. */
export function holds(bytes: Uint8Array, at: number, end: number, other: Uint8Array): boolean {
  const { length } = other;
  if (end - at < length) return false;
  for (let from = 0; from < length; from++) if (bytes[at + from] !== other[from]) return false;
  return true;
}
