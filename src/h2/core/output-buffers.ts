/**
 * The pooled buffers in which sessions serialise their output of one turn of the event loop. A session's output begins
 * in a small buffer and moves to a larger one when it grows. If all buffers were large, an event for 5,000 clients would
 * need 320 MB of new Buffers, and V8 runs a full garbage collection for every 64 MiB of them.
 */

/** Size of the largest buffer in bytes. */
export const largestBufferBytes = 65_536;
/**
 * Maximum size of all output that sessions serialise before it is written. Above it, the flush scheduler does not wait
 * for the end of the turn: thousands of clients that all get events in one turn would otherwise each fill a buffer.
 */
export const mostUnwrittenBytes = 16 * 1024 * 1024;

type Pool = { readonly bytes: number; readonly most: number; readonly unused: Buffer[] };

/**
 * By ascending size. `most`: the maximum number of unused buffers that are kept. A small buffer is enough for a response
 * of 2 kB, a medium one for the events of ten watches.
 */
const pools: readonly [Pool, Pool, Pool] = [
  { bytes: 4096, most: 512, unused: [] },
  { bytes: 16_384, most: 256, unused: [] },
  { bytes: largestBufferBytes, most: 32, unused: [] },
];
const [small, medium, large] = pools;

let unwritten = 0;

/** Returns a buffer of at least `count` bytes. `count` must not exceed `largestBufferBytes`. */
export function outputBuffer(count: number): Buffer {
  const pool = count <= small.bytes ? small : count <= medium.bytes ? medium : large;
  unwritten += pool.bytes;
  return pool.unused.pop() ?? Buffer.allocUnsafeSlow(pool.bytes);
}

/** Must be called once for each buffer, when its bytes are passed to the socket or are dropped. */
export function isWritten(buffer: Buffer): void {
  unwritten -= buffer.length;
}

/** Puts a buffer, whose bytes are no longer needed, back into its pool. */
export function giveBackOutput(buffer: Buffer): void {
  const pool = buffer.length === small.bytes ? small : buffer.length === medium.bytes ? medium : large;
  if (pool.unused.length < pool.most) pool.unused.push(buffer);
}

/** Size of the buffers with output that no socket has yet. */
export function unwrittenBytes(): number {
  return unwritten;
}
