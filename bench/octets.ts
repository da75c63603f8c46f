/** Makes the frames and header fields, byte by byte, for the benchmarks that feed the data path without sockets. */
import { putFrameHeader } from "../src/h2/core/bytes.ts";
import { Field } from "../src/h2/core/field.ts";
import { frameHeaderBytes, frameType } from "../src/h2/frame/frame.ts";

export function frame(type: number, flags: number, id: number, payload: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(frameHeaderBytes + payload.length);
  putFrameHeader(bytes, 0, payload.length, type, flags, id);
  payload.copy(bytes, frameHeaderBytes);
  return bytes;
}

/** Returns a SETTINGS frame with one setting (RFC 9113 §6.5). */
export function setting(id: number, value: number): Buffer {
  const entry = Buffer.alloc(6);
  entry.writeUInt16BE(id, 0);
  entry.writeUInt32BE(value, 2);
  return frame(frameType.SETTINGS, 0, 0, entry);
}

/**
 * Returns a WINDOW_UPDATE frame (RFC 9113 §6.9) that permits `octets` more bytes on stream `id`, or on the whole
 * session if `id` is 0.
 */
export function increment(id: number, octets: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(octets, 0);
  return frame(frameType.WINDOW_UPDATE, 0, id, payload);
}

export const fieldsOf = (pairs: readonly (readonly [string, string])[]): Field[] =>
  pairs.map(([name, value]) => new Field(name, value));
