/**
 * The open streams of a session by their ids. Not a Map: V8 rebuilds one that is filled and emptied all the time, and
 * each table left behind points to its successor. Once one of them lies in the old space, the chain keeps every stream
 * that has passed through, with its exchange and its fields, until the next full collection: half of what a scavenge
 * looked at was promoted, and a busy proxy paid a third more for each request. Here nothing is left behind.
 */

/** A power of two, as all sizes are; most clients have no more than four streams open at once. */
const firstRoom = 8;

export class StreamTable<T extends { readonly id: number }> {
  /** Open addressing, linear probing, at most half full, so that a search ends within a few slots. */
  #slots: (T | undefined)[] = Array.from({ length: firstRoom });
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): T | undefined {
    return this.#slots[this.#find(id)];
  }

  /** The caller knows that its id is not here yet. */
  add(stream: T): void {
    if (2 * (this.#size + 1) > this.#slots.length) this.#grow();
    this.#slots[this.#find(stream.id)] = stream;
    this.#size += 1;
  }

  /** Whoever stands behind it moves up where that brings it nearer to its home, so that no search meets a gap. */
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

  /** A copy, oldest first: streams may end while it is gone through. */
  all(): T[] {
    return this.#slots.filter((stream) => stream !== undefined).toSorted((a, b) => a.id - b.id);
  }

  /** The slot that has this id, or the free one where it belongs. */
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
