/**
 * Counts, for each client address, requests that a backend answered 401, minus the bearers that one accepted. An address
 * with a high count is *rejected*: each 401 ends the connection to the backend that carried it, so requests of that
 * address travel on connections of their own, and fewer of them may wait. The count falls with time.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";

type Count = { count: number; at: number };

export class Rejections {
  readonly #clock: Pick<Clock, "now">;
  /** Only addresses whose count was above zero. */
  readonly #counts = new Lru<string, Count>(limits.rejectedAddresses);

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#counts.size;
  }

  isRejected(address: string): boolean {
    // The usual case costs no lookup.
    if (this.#counts.size === 0) return false;
    const known = this.#counts.get(address);
    return known !== undefined && this.#now(known) > limits.rejections;
  }

  /** One more request of this address was answered 401. */
  add(address: string): void {
    const known = this.#counts.get(address);
    const count = known === undefined ? 0 : this.#now(known);
    this.#counts.set(address, {
      count: Math.min(limits.rejectionsMost, count + 1),
      at: this.#clock.now(),
    });
  }

  /** A bearer that this address sent was accepted. */
  accepted(address: string): void {
    const known = this.#counts.get(address);
    if (known === undefined) return;
    const count = this.#now(known) - 1;
    if (count > 0) this.#counts.set(address, { count, at: this.#clock.now() });
    else this.#counts.delete(address);
  }

  #now({ count, at }: Count): number {
    return Math.max(0, count - ((this.#clock.now() - at) * limits.rejectionsForgivenPerSecond) / 1000);
  }
}
