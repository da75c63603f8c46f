/**
 * The open streams of a session by id. A Map would keep closed streams in memory: V8 rebuilds a Map that is filled and
 * emptied all the time, and each old table points to its successor. Old tables in V8's old space then keep every closed
 * stream until the next full collection. With a Map, a busy proxy took a third more time for each request.
 */

/** Initial number of slots, enough for four streams; most clients have no more open. Always a power of two. */
const firstRoom = 8;

export class StreamTable<T extends { readonly id: number }> {
  /** Hash table with open addressing and linear probing. At most half of the slots are used, so that a search is short. */
  #slots: (T | undefined)[] = Array.from({ length: firstRoom });
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): T | undefined {
    return this.#slots[this.#find(id)];
  }

  add(stream: T): void {
    if (2 * (this.#size + 1) > this.#slots.length) this.#grow();
    this.#slots[this.#find(stream.id)] = stream;
    this.#size += 1;
  }

  /** Removes a stream, and moves later entries back towards their home slots, so that no gap ends a search too early. */
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

  /** Returns the streams in a new array, oldest first, so that streams may end during the iteration. */
  all(): T[] {
    return this.#slots.filter((stream) => stream !== undefined).toSorted((a, b) => a.id - b.id);
  }

  /** Calls `visit` for each stream, in no order and without a new array. `visit` must not open or end streams. */
  visit(visit: (stream: T) => void): void {
    for (const stream of this.#slots) if (stream !== undefined) visit(stream);
  }

  /** Returns the slot with this id, or the free slot where the id belongs. */
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

/** Returns a hash of the id: the id without its lowest bit, which is the same in all ids of a session. */
function homeOf(id: number): number {
  return id >>> 1;
}
