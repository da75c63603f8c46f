/**
 * Streams that we reset lately. Their peer cannot know yet, so what it still sends for them is let pass, not
 * punished (RFC 9113 §5.1).
 */

/** A peer that is told of a reset stops within a round trip: more than this many are not under way at once. */
const remembered = 256;

export class RecentResets {
  readonly #ids = new Set<number>();

  add(id: number): void {
    this.#ids.add(id);
    if (this.#ids.size <= remembered) return;
    // A Set keeps the order of insertion: the first is the oldest.
    const [oldest] = this.#ids;
    if (oldest !== undefined) this.#ids.delete(oldest);
  }

  has(id: number): boolean {
    return this.#ids.has(id);
  }

  /** True when it was there: the peer is done with that stream, and nothing more is forgiven. */
  delete(id: number): boolean {
    return this.#ids.delete(id);
  }
}
