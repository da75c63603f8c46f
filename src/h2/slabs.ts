/**
 * Room for DATA that waits: blocks, cut from slabs whose memory goes back to the kernel as soon as nothing is left in them.
 * With a Buffer for each piece it never went: malloc gives back what lies at the end of its heap, and after hundreds of MiB
 * something small always lies behind them. Bounded by what may wait in all (buffered.ts): a block is half full at least.
 */
import { frameBytes } from "./frame.ts";

const slabBytes = 1 << 20;

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
  readonly #spareSlabs: number;
  readonly #blocksOfOne: number;
  /** Those with room. Whichever was begun first is filled first, so that others become empty. */
  readonly #open = new Set<Slab>();
  #count = 0;
  #emptyCount = 0;
  #taken = 0;

  /** `blockBytes` divides a MiB; so many empty slabs are kept for what waits next. */
  constructor(blockBytes: number, spareSlabs: number) {
    this.blockBytes = blockBytes;
    this.#spareSlabs = spareSlabs;
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
    if (slab.taken === 0) this.#emptyCount -= 1;
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
    if (slab.taken === 0) this.#emptied(slab);
    else if (slab.taken === this.#blocksOfOne - 1) this.#open.add(slab);
  }

  /** V8 maps a buffer that may change its length by itself; any other comes from malloc. */
  #begin(): Slab {
    const memory = new ArrayBuffer(slabBytes, { maxByteLength: slabBytes });
    const slab: Slab = { owner: this, memory, free: [], cut: 0, taken: 0 };
    this.#open.add(slab);
    this.#count += 1;
    this.#emptyCount += 1;
    return slab;
  }

  #cut(slab: Slab): Block {
    const bytes = Buffer.from(slab.memory, slab.cut * this.blockBytes, this.blockBytes);
    slab.cut += 1;
    return { bytes, slab };
  }

  #emptied(slab: Slab): void {
    this.#open.delete(slab);
    if (this.#emptyCount < this.#spareSlabs) {
      this.#emptyCount += 1;
      this.#open.add(slab);
      return;
    }
    this.#count -= 1;
    // What is moved out of it is nothing: it is unmapped now, and not when V8 next collects.
    slab.memory.transferToFixedLength(0);
  }
}

/**
 * Together they keep 12 MiB for nothing: to touch a new MiB costs as much as to copy four, and two lists that go as fast as
 * they are read wait with 8 MiB now and with nothing then.
 */
const quarters = new Slabs(frameBytes / 4, 2);
const halves = new Slabs(frameBytes / 2, 2);
const wholes = new Slabs(frameBytes, 8);

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
