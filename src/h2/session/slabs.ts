/**
 * Allocates the memory of waiting DATA: blocks, which are cut from slabs of 1 MiB. A slab that has been empty for a
 * while is returned to the kernel. Memory of separate Buffers would never be returned, because malloc returns only the
 * end of its heap, where after hundreds of MiB some small allocation always lies. The limit on buffered bytes also
 * bounds the blocks, because a block is at least half full (buffered.ts).
 */
import { frameBytes } from "../frame/frame.ts";

const slabBytes = 1 << 20;
/** Ms between two calls of `shrinkRoom`, and slabs of a size that each returns: 10 ms of work, 8 s for 1 GiB. */
export const slabLookMs = 500;
const slabsPerLook = 64;

type Slab = {
  readonly owner: Slabs;
  readonly memory: ArrayBuffer;
  readonly free: Block[];
  /** Number of blocks cut so far, and of those in use. */
  cut: number;
  taken: number;
};

/** A piece of a slab's memory. It is released once, and its bytes must not be used after that. */
export type Block = { readonly bytes: Buffer; readonly slab: Slab };

export class Slabs {
  readonly blockBytes: number;
  readonly #blocksOfOne: number;
  /** Slabs with a free block. The oldest is filled first, so that the others become empty. */
  readonly #open = new Set<Slab>();
  #count = 0;
  /** Slabs without a block in use, and the smallest number of such slabs since the last `shrink`. */
  readonly #empty = new Set<Slab>();
  #fewestEmpty = 0;
  #taken = 0;

  /** `blockBytes` must divide a MiB. */
  constructor(blockBytes: number) {
    this.blockBytes = blockBytes;
    this.#blocksOfOne = slabBytes / blockBytes;
  }

  /** Bytes allocated, used or not. */
  get bytes(): number {
    return this.#count * slabBytes;
  }

  get taken(): number {
    return this.#taken;
  }

  take(): Block {
    const slab = this.#open.values().next().value ?? this.#begin();
    if (slab.taken === 0) this.#isUsed(slab);
    slab.taken += 1;
    this.#taken += 1;
    if (slab.taken === this.#blocksOfOne) this.#open.delete(slab);
    return slab.free.pop() ?? this.#cut(slab);
  }

  release(block: Block): void {
    const { slab } = block;
    slab.free.push(block);
    slab.taken -= 1;
    this.#taken -= 1;
    if (slab.taken === 0) this.#isEmpty(slab);
    else if (slab.taken === this.#blocksOfOne - 1) this.#open.add(slab);
  }

  /**
   * Returns slabs to the kernel that have been empty since the last call. Only some at a time, because unmapping a MiB
   * takes 0.15 ms. Touching a new slab costs as much as copying four, so slabs in recurrent use are kept.
   */
  shrink(): void {
    let left = Math.min(this.#fewestEmpty, slabsPerLook);
    for (const slab of this.#empty) {
      if (left === 0) break;
      left -= 1;
      this.#count -= 1;
      this.#empty.delete(slab);
      this.#open.delete(slab);
      // Transferring to length zero unmaps the memory now, not at V8's next collection.
      slab.memory.transferToFixedLength(0);
    }
    this.#fewestEmpty = this.#empty.size;
  }

  /** The buffer is resizable, because V8 maps only such a buffer's memory itself; any other comes from malloc. */
  #begin(): Slab {
    const memory = new ArrayBuffer(slabBytes, { maxByteLength: slabBytes });
    const slab: Slab = { owner: this, memory, free: [], cut: 0, taken: 0 };
    this.#open.add(slab);
    this.#count += 1;
    return slab;
  }

  #cut(slab: Slab): Block {
    const bytes = Buffer.from(slab.memory, slab.cut * this.blockBytes, this.blockBytes);
    slab.cut += 1;
    return { bytes, slab };
  }

  #isUsed(slab: Slab): void {
    this.#empty.delete(slab);
    this.#fewestEmpty = Math.min(this.#fewestEmpty, this.#empty.size);
  }

  /** Marks the slab as empty and moves it to the end of the order in which slabs are filled. */
  #isEmpty(slab: Slab): void {
    this.#open.delete(slab);
    this.#open.add(slab);
    this.#empty.add(slab);
  }
}

const quarters = new Slabs(frameBytes / 4);
const halves = new Slabs(frameBytes / 2);
const wholes = new Slabs(frameBytes);

/** Returns a block with room for `count` bytes, at most one frame. The caller returns it with `giveBack`. */
export function roomFor(count: number): Block {
  if (count <= quarters.blockBytes) return quarters.take();
  return count <= halves.blockBytes ? halves.take() : wholes.take();
}

export function giveBack(block: Block): void {
  block.slab.owner.release(block);
}

/** Returns the number of blocks in use, of any size; 0 if no DATA waits. */
export function takenBlocks(): number {
  return quarters.taken + halves.taken + wholes.taken;
}

/** Must be called every `slabLookMs`. */
export function shrinkRoom(): void {
  for (const slabs of [quarters, halves, wholes]) slabs.shrink();
}
