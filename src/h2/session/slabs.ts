/**
 * Memory for waiting DATA: blocks cut from slabs, which are returned to the kernel when they have been empty for a
 * while. With a Buffer for each piece memory was never returned: malloc returns only the end of its heap, and after
 * hundreds of MiB a small allocation always lies there. The limit on buffered bytes bounds this (buffered.ts): a block
 * is at least half full.
 */
import { frameBytes } from "../frame/frame.ts";

const slabBytes = 1 << 20;
/** How often empty slabs are returned, and how many of one size at once: this takes 10 ms, and 1 GiB takes 8 s. */
export const slabLookMs = 500;
const slabsPerLook = 64;

type Slab = {
  readonly owner: Slabs;
  readonly memory: ArrayBuffer;
  readonly free: Block[];
  /** Blocks cut so far, and those in use. */
  cut: number;
  taken: number;
};

/** Taken once and released once; its bytes must not be used after the release. */
export type Block = { readonly bytes: Buffer; readonly slab: Slab };

export class Slabs {
  readonly blockBytes: number;
  readonly #blocksOfOne: number;
  /** Slabs with room. The oldest is filled first, so that the others become empty. */
  readonly #open = new Set<Slab>();
  #count = 0;
  /** Slabs without a block in use, and the smallest number of them since the last check. */
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
   * Returns the slabs that have been empty since the last check, a part of them at a time, because unmapping a MiB
   * takes 0.15 ms. Touching a new slab costs as much as copying four, so a recurring need keeps its slabs.
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

  /** V8 maps a resizable buffer by itself; any other comes from malloc. */
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

/** Returns room for `count` bytes, at most one frame; the caller returns it with `giveBack`. */
export function roomFor(count: number): Block {
  if (count <= quarters.blockBytes) return quarters.take();
  return count <= halves.blockBytes ? halves.take() : wholes.take();
}

export function giveBack(block: Block): void {
  block.slab.owner.release(block);
}

/** Blocks of any size in use: none if nothing waits. */
export function takenBlocks(): number {
  return quarters.taken + halves.taken + wholes.taken;
}

/** Must be called every `slabLookMs`. */
export function shrinkRoom(): void {
  for (const slabs of [quarters, halves, wholes]) slabs.shrink();
}
