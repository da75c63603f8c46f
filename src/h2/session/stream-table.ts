/**
 * The open streams of a session by their ids. Not a Map: V8 rebuilds a Map that is filled and emptied all the time, and
 * each old table points to its successor. Once one of them is in the old space, the chain keeps every past stream with
 * its exchange and fields until the next full collection. Half of what a scavenge visited was promoted, and a busy
 * proxy paid a third more per request. This table leaves nothing behind.
 */

/** A power of two, as all sizes are; most clients have no more than four streams open. */
const firstRoom = 8;

export class StreamTable<T extends { readonly id: number }> {
  /** Open addressing with linear probing, at most half full, so that a search takes a few slots. */
  #slots: (T | undefined)[] = Array.from({ length: firstRoom });
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): T | undefined {
    return this.#slots[this.#find(id)];
  }

  /** The id must not be present. */
  add(stream: T): void {
    if (2 * (this.#size + 1) > this.#slots.length) this.#grow();
    this.#slots[this.#find(stream.id)] = stream;
    this.#size += 1;
  }

  /** Moves each following entry up where that brings it nearer to its home slot, so that no search meets a gap. */
  delete(id: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let gap = this.#find(id);
    if (slots[gap] === undefined) return;
    this.#size -= 1;
    slots[gap] = undefined;
    for (let at = (gap + 1) & mask; ; at = (at + 1) & mask) {
      const stream = slots[at];
      if (stream === undefined) return;
      if (((at - homeOf(stream.id)) & mask) < ((at - gap) & mask)) continue;
      slots[gap] = stream;
      slots[at] = undefined;
      gap = at;
    }
  }

  /** Returns a copy, oldest first: streams may end during the iteration. */
  all(): T[] {
    return this.#slots.filter((stream) => stream !== undefined).toSorted((a, b) => a.id - b.id);
  }

  /** Returns the slot of this id, or the free slot where it belongs. */
  #find(id: number): number {
    const mask = this.#slots.length - 1;
    let at = homeOf(id) & mask;
    for (;;) {
      const stream = this.#slots[at];
      if (stream === undefined || stream.id === id) return at;
      at = (at + 1) & mask;
    }
  }

  #grow(): void {
    const all = this.all();
    this.#slots = Array.from({ length: 2 * this.#slots.length });
    for (const stream of all) this.#slots[this.#find(stream.id)] = stream;
  }
}

/** Ids of one side are all odd, or all even. */
function homeOf(id: number): number {
  return id >>> 1;
}
