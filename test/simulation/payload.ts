/**
 * Request and response bodies that show whose bytes they are. Each body is a window onto one long random block, with a
 * start of its own, so sending copies nothing, and checking is one comparison. Eight bytes from another body, or from
 * elsewhere in the same body, look correct only once in 2^64.
 */
import { Random } from "./random.ts";

/**
 * Length of the random block. It is a prime, so that no two bodies of a run begin at the same place and no frame size
 * divides it.
 */
const period = 3_145_739;
const block = Buffer.alloc(2 * period);
const random = new Random(7);
for (let at = 0; at < period; at += 1) block[at] = random.whole(0, 255);
block.copy(block, period, 0, period);
const original = Buffer.from(block);

/** Identifies a body: each tag has one in each direction. */
export type Body = { readonly tag: number; readonly of: "request" | "answer" };

function placeOf({ tag, of }: Body, at: number): number {
  return ((of === "request" ? 2 * tag : 2 * tag + 1) * 104_729 + at) % period;
}

/** Returns the bytes [from, to) of a body. They are not copied, so the caller must not write to them. */
export function payload(body: Body, from: number, to: number): Buffer {
  const place = placeOf(body, from);
  return block.subarray(place, place + to - from);
}

/** Returns how many bytes of `bytes[start, end)` differ from those of `body` at `position`. */
export function astray(body: Body, position: number, bytes: Buffer, [start, end]: [number, number]): number {
  const place = placeOf(body, position);
  if (bytes.compare(block, place, place + end - start, start, end) === 0) return 0;
  let count = 0;
  for (let at = start; at < end; at += 1) if (bytes[at] !== block[place + at - start]) count += 1;
  return count;
}

/** True if nothing has written into the shared block. */
export function isUntouched(): boolean {
  return block.equals(original);
}

/** Returns a short digest of the fields in their order, for comparisons. */
export function digest(fields: readonly (readonly [name: string, value: string])[]): string {
  let sum = 0;
  for (const text of fields.flat()) {
    for (let at = 0; at < text.length; at += 1) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
    sum = Math.imul(sum ^ 0x100, 0x01000193);
  }
  return (sum >>> 0).toString(16);
}
