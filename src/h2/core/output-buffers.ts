/**
 * The pooled buffers in which sessions serialise their output of one turn of the event loop. A session's output begins
 * in a small buffer and moves to a larger one when it grows. If all buffers were large, an event for each of 5,000
 * clients would need 320 MB.
 *
 * The pool keeps the buffers that a recent turn has used, because V8 runs a full garbage collection for every 64 MiB of
 * new Buffers. The pool does not refer to buffers that are in use. If a socket is destroyed, its buffers do not come
 * back, and V8 frees them.
 */
import { h2Limits } from "./limits.ts";

/** Size of the largest buffer in bytes. */
export const largestOutputBytes = 65_536;

/** Buffers of one size. `fewest`: the smallest number of unused buffers since the last call of `shrinkOutput`. */
type Pool = { readonly bytes: number; readonly unused: Buffer[]; fewest: number };

/** A small buffer is enough for a response of 2 kB, a medium one for events of 1 kB to ten watches. */
const small: Pool = { bytes: 4096, unused: [], fewest: 0 };
const medium: Pool = { bytes: 16_384, unused: [], fewest: 0 };
const large: Pool = { bytes: largestOutputBytes, unused: [], fewest: 0 };

let unusedBytes = 0;

/** Returns a buffer with room for `count` bytes. `count` must not exceed `largestOutputBytes`. */
export function outputBuffer(count: number): Buffer {
  const pool = count <= small.bytes ? small : count <= medium.bytes ? medium : large;
  const buffer = pool.unused.pop();
  if (buffer === undefined) return Buffer.allocUnsafeSlow(pool.bytes);
  unusedBytes -= pool.bytes;
  if (pool.unused.length < pool.fewest) pool.fewest = pool.unused.length;
  return buffer;
}

/** Puts a buffer of `outputBuffer` back into its pool. The caller must not use its bytes any more. */
export function giveBackOutput(buffer: Buffer): void {
  if (unusedBytes + buffer.length > h2Limits.unusedOutputBytes) return;
  unusedBytes += buffer.length;
  const pool = buffer.length === small.bytes ? small : buffer.length === medium.bytes ? medium : large;
  pool.unused.push(buffer);
}

/** Drops the buffers that no turn has used since the last call. */
export function shrinkOutput(): void {
  for (const pool of [small, medium, large]) {
    pool.unused.length -= pool.fewest;
    unusedBytes -= pool.fewest * pool.bytes;
    pool.fewest = pool.unused.length;
  }
}

/** Returns the number of bytes in all unused buffers. */
export function unusedOutputBytes(): number {
  return unusedBytes;
}
