import { type Block, giveBack, largestBlockBytes, roomFor, smallBytes } from "./slabs.ts";

/**
 * Counts all bytes that this process buffers, against one limit. Flow-control windows limit the bytes of each stream
 * and each session, but not the total of all sessions (D2).
 */
export class Buffered {
  readonly #limitBytes: number;
  #bytes = 0;
  /**
   * Called after each addition that leaves the total above the limit. Must end the exchange (one request with its
   * response) that buffers the most bytes.
   */
  onOver: () => void = () => {};

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isOver(): boolean {
    return this.#bytes > this.#limitBytes;
  }

  /** True if more than half of the limit is used. Receive windows then stop growing, and large windows shrink. */
  get isTight(): boolean {
    return this.#bytes * 2 > this.#limitBytes;
  }

  add(count: number): void {
    this.#bytes += count;
    if (count > 0 && this.isOver) this.onOver();
  }
}

/**
 * Kept bytes: the first `end` bytes of `bytes`. `block`: where they are; undefined: in a Buffer of their own.
 * Invariant: a piece without a block is the only piece.
 */
type Piece = { readonly bytes: Buffer; end: number; readonly block: Block | undefined };

const noPieces: Piece[] = [];
const nothing = Buffer.alloc(0);

/** Uses kept bytes, which are valid during the call only. `isLast`: no kept bytes follow. */
type Use = (bytes: Buffer, isLast: boolean) => void;

/**
 * Keeps bytes until they can be forwarded, in blocks of slabs.ts. A Buffer object for each chunk would cost 200 bytes,
 * even for a chunk of one byte (A16, A60). A new Buffer for each body would cost a full garbage collection of V8 for
 * every 64 MiB, which took two thirds of the CPU time of a response of 100 kB. `drop` or `moveTo` must be called in the
 * end, because it gives the blocks back.
 */
export class AccountedBuffer {
  readonly #buffered: Buffered;
  #pieces = noPieces;
  #length = 0;

  constructor(buffered: Buffered) {
    this.#buffered = buffered;
  }

  get length(): number {
    return this.#length;
  }

  /** Appends a copy of the bytes, because the caller will overwrite its chunk. */
  add(bytes: Buffer, start: number, end: number): void {
    let from = start;
    while (from < end) from = this.#append(bytes, from, end);
    this.#length += end - start;
    this.#buffered.add(end - start);
  }

  /** Copies bytes from `from` on, as many as fit into one piece. Returns the index of the first byte that is left. */
  #append(bytes: Buffer, from: number, end: number): number {
    const last = this.#pieces.at(-1);
    const isFull = last === undefined || last.end === last.bytes.length;
    const piece = isFull ? this.#begin(last, end - from) : last;
    const to = Math.min(end, from + piece.bytes.length - piece.end);
    bytes.copy(piece.bytes, piece.end, from, to);
    piece.end += to - from;
    return to;
  }

  /** Adds a piece for `count` bytes, or for as many of them as fit into one block. `last`: the last piece, now full. */
  #begin(last: Piece | undefined, count: number): Piece {
    if (last?.block !== undefined) {
      const piece = inBlock(count);
      this.#pieces.push(piece);
      return piece;
    }
    // A piece without a block is replaced by a larger one, so that few bytes never take a block.
    const kept = last?.end ?? 0;
    const piece = kept + count < smallBytes ? inBuffer(kept + count, 2 * kept) : inBlock(kept + count);
    last?.bytes.copy(piece.bytes, 0, 0, kept);
    piece.end = kept;
    this.#pieces = [piece];
    return piece;
  }

  /** Calls `use` for all bytes, in order, in pieces of up to 16 KiB, and keeps them. Stops if `use` drops them. */
  each(use: Use): void {
    const pieces = this.#pieces;
    const last = pieces.at(-1);
    for (const piece of pieces) {
      if (this.#pieces !== pieces) return;
      use(piece.bytes.subarray(0, piece.end), piece === last);
    }
  }

  /** Removes all bytes, and calls `use` for them as `each` does, until it throws. */
  moveTo(use: Use): void {
    const pieces = this.#pieces;
    const last = pieces.at(-1);
    this.#buffered.add(-this.#length);
    this.#pieces = noPieces;
    this.#length = 0;
    try {
      for (const piece of pieces) use(piece.bytes.subarray(0, piece.end), piece === last);
    } finally {
      for (const { block } of pieces) if (block !== undefined) giveBack(block);
    }
  }

  /** Returns a new Buffer with all kept bytes, followed by the bytes from `start` to `end`. */
  joined(bytes: Buffer = nothing, start = 0, end = bytes.length): Buffer {
    const kept = this.#pieces.map((piece) => piece.bytes.subarray(0, piece.end));
    return Buffer.concat([...kept, bytes.subarray(start, end)]);
  }

  drop(): void {
    this.moveTo(() => {});
  }
}

function inBlock(count: number): Piece {
  const block = roomFor(Math.min(count, largestBlockBytes));
  return { bytes: block.bytes, end: 0, block };
}

/** Returns a piece with room for `count` bytes, or for `wished` bytes if that is more, but below `smallBytes`. */
function inBuffer(count: number, wished: number): Piece {
  const bytes = Buffer.allocUnsafeSlow(Math.max(count, Math.min(wished, smallBytes - 1)));
  return { bytes, end: 0, block: undefined };
}
