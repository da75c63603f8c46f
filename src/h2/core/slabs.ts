/**
 * Allocates memory for DATA that waits to be sent, or that may have to be sent again: blocks, which are cut from slabs
 * of 1 MiB. Slabs that stay empty are returned to the kernel. With separate Buffers, the memory would never be
 * returned: malloc returns only the end of its heap to the kernel, and some small allocation always remains there. V8
 * would also run a full garbage collection for every 64 MiB of new Buffers. The limit on buffered bytes (buffered.ts)
 * also limits the blocks, because the blocks of a long queue are at least half full on average.
 */

/** Size of the largest block in bytes: the payload of one frame. */
export const largestBlockBytes = 16_384;
/**
 * Fewer bytes than this, if no others wait with them, are kept in a separate Buffer. They are mostly a single watch
 * event, and would leave most of a block unused, while `Buffered` (buffered.ts) counts only the kept bytes.
 */
export const smallBytes = 2048;
const slabBytes = 1 << 20;
/** Milliseconds between two calls of `shrinkRoom`. A call takes at most 10 ms for each of the three block sizes. */
export const slabLookMs = 500;
const slabsPerLook = 64;

type Slab = {
  readonly owner: Slabs;
  readonly memory: ArrayBuffer;
  readonly free: Block[];
  cut: number;
  taken: number;
};

/** A piece of a slab's memory. Its user must release it exactly once, and not use its bytes afterwards. */
export type Block = { readonly bytes: Buffer; readonly slab: Slab };

export class Slabs {
  readonly blockBytes: number;
  readonly #blocksOfOne: number;
  /** Slabs with a free block. `take` uses the first slab of this set, so that the other slabs become empty. */
  readonly #open = new Set<Slab>();
  #count = 0;
  readonly #empty = new Set<Slab>();
  #fewestEmptySinceShrink = 0;
  #taken = 0;

  /** 1 MiB must be a multiple of `blockBytes`. */
  constructor(blockBytes: number) {
    this.blockBytes = blockBytes;
    this.#blocksOfOne = slabBytes / blockBytes;
  }

  /** Number of bytes in all slabs, used or not. */
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
   * Unmaps slabs that have stayed empty since the previous call, but at most `slabsPerLook`, because unmapping 1 MiB
   * takes 0.15 ms. Slabs that were in use since that call are kept, because the first use of a new slab costs as much
   * as copying 4 MiB.
   */
  shrink(): void {
    let left = Math.min(this.#fewestEmptySinceShrink, slabsPerLook);
    for (const slab of this.#empty) {
      if (left === 0) break;
      left -= 1;
      this.#count -= 1;
      this.#empty.delete(slab);
      this.#open.delete(slab);
      // A transfer to length zero unmaps the memory at once. Otherwise V8 would do so only during a garbage collection.
      slab.memory.transferToFixedLength(0);
    }
    this.#fewestEmptySinceShrink = this.#empty.size;
  }

  /**
   * Uses a resizable ArrayBuffer: V8 maps the memory for it alone, so the memory can be returned to the kernel. The
   * memory of other ArrayBuffers comes from malloc.
   */
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
    this.#fewestEmptySinceShrink = Math.min(this.#fewestEmptySinceShrink, this.#empty.size);
  }

  #isEmpty(slab: Slab): void {
    this.#open.delete(slab);
    this.#open.add(slab);
    this.#empty.add(slab);
  }
}

const quarters = new Slabs(largestBlockBytes / 4);
const halves = new Slabs(largestBlockBytes / 2);
const wholes = new Slabs(largestBlockBytes);

/**
 * Returns a block with room for `count` bytes. `count` must not exceed `largestBlockBytes`. The caller must return the
 * block with `giveBack`.
 */
export function roomFor(count: number): Block {
  if (count <= quarters.blockBytes) return quarters.take();
  return count <= halves.blockBytes ? halves.take() : wholes.take();
}

export function giveBack(block: Block): void {
  block.slab.owner.release(block);
}

export function takenBlocks(): number {
  return quarters.taken + halves.taken + wholes.taken;
}

/** Returns unused memory to the kernel. Must be called every `slabLookMs`. */
export function shrinkRoom(): void {
  for (const slabs of [quarters, halves, wholes]) slabs.shrink();
}
