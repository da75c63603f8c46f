/**
 * Room for DATA that waits: blocks, cut from slabs whose memory goes back to the kernel when they have been empty for a while.
 * With a Buffer for each piece it never went: malloc gives back what lies at the end of its heap, and after hundreds of MiB
 * something small always lies behind them. Bounded by what may wait in all (buffered.ts): a block is half full at least.
 */
import { frameBytes } from "../frame/frame.ts";

const slabBytes = 1 << 20;
/** How often empty slabs go back, and how many of a size at once: 10 ms of it, 1 GiB in 8 s. */
export const slabLookMs = 500;
const slabsPerLook = 64;

type Slab = {
  readonly owner: Slabs;
  readonly memory: ArrayBuffer;
  readonly free: Block[];
  /** Blocks that were cut from it so far, and those of them that are taken. */
  cut: number;
  taken: number;
};

/** Taken once, released once; its octets are nobody's afterwards. */
export type Block = { readonly bytes: Buffer; readonly slab: Slab };

export class Slabs {
  readonly blockBytes: number;
  readonly #blocksOfOne: number;
  /** Those with room. Whichever was begun first is filled first, so that others become empty. */
  readonly #open = new Set<Slab>();
  #count = 0;
  /** Nothing of which is taken, and the fewest that there were since the last look. */
  readonly #empty = new Set<Slab>();
  #fewestEmpty = 0;
  #taken = 0;

  /** `blockBytes` divides a MiB. */
  constructor(blockBytes: number) {
    this.blockBytes = blockBytes;
    this.#blocksOfOne = slabBytes / blockBytes;
  }

  /** What is set aside, used or not. */
  get bytes(): number {
    return this.#count * slabBytes;
  }

  /** Blocks that are taken. */
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
   * Gives back what was empty ever since the last look, a part of it at a time: to unmap a MiB takes 0.15 ms. To touch a new
   * one costs as much as to copy four, so that what waits now and then keeps its own.
   */
  shrink(): void {
    let left = Math.min(this.#fewestEmpty, slabsPerLook);
    for (const slab of this.#empty) {
      if (left === 0) break;
      left -= 1;
      this.#count -= 1;
      this.#empty.delete(slab);
      this.#open.delete(slab);
      // What is moved out of it is nothing: it is unmapped now, and not when V8 next collects.
      slab.memory.transferToFixedLength(0);
    }
    this.#fewestEmpty = this.#empty.size;
  }

  /** V8 maps a buffer that may change its length by itself; any other comes from malloc. */
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

  /** It is the last to be filled again. */
  #isEmpty(slab: Slab): void {
    this.#open.delete(slab);
    this.#open.add(slab);
    this.#empty.add(slab);
  }
}

const quarters = new Slabs(frameBytes / 4);
const halves = new Slabs(frameBytes / 2);
const wholes = new Slabs(frameBytes);

/** Room for so many octets, a frame's at most; to be given back by `giveBack`. */
export function roomFor(count: number): Block {
  if (count <= quarters.blockBytes) return quarters.take();
  return count <= halves.blockBytes ? halves.take() : wholes.take();
}

export function giveBack(block: Block): void {
  block.slab.owner.release(block);
}

/** Blocks of any size that are not given back yet: none, when nothing waits. */
export function takenBlocks(): number {
  return quarters.taken + halves.taken + wholes.taken;
}

/** To be called every `slabLookMs`. */
export function shrinkRoom(): void {
  for (const slabs of [quarters, halves, wholes]) slabs.shrink();
}
