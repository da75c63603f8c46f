/** How many sockets each client address has open on a listener. Of IPv6 a /64 counts as one: it is one host's to use. */
import { octetsOf } from "../../base/address.ts";

export class Sources {
  readonly #most: number;
  readonly #counts = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** One more, or undefined when it has its number; the returned function gives it back, once. */
  take(address: string): (() => void) | undefined {
    const key = keyOf(address);
    const count = this.#counts.get(key) ?? 0;
    if (count >= this.#most) return undefined;
    this.#counts.set(key, count + 1);
    let isTaken = true;
    return () => {
      if (isTaken) this.#giveBack(key);
      isTaken = false;
    };
  }

  /** Addresses that have any. */
  get size(): number {
    return this.#counts.size;
  }

  #giveBack(key: string): void {
    const left = (this.#counts.get(key) ?? 1) - 1;
    if (left > 0) this.#counts.set(key, left);
    else this.#counts.delete(key);
  }
}

/** What counts as one source. */
export function keyOf(address: string): string {
  return address.includes(":") ? (octetsOf(address)?.slice(0, 8).join() ?? address) : address;
}
