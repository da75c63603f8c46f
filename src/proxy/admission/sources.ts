/** Counts the open sockets of each client address on a listener. An IPv6 /64 counts as one address. */
import { octetsOf } from "../../base/address.ts";

export class Sources {
  readonly #most: number;
  readonly #counts = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Counts one more socket of an address. Returns false if the limit is reached. */
  take(address: string): boolean {
    const key = keyOf(address);
    const count = this.#counts.get(key) ?? 0;
    if (count >= this.#most) return false;
    this.#counts.set(key, count + 1);
    return true;
  }

  /** Must be called once for each socket that `take` has counted, when the socket has closed. */
  leave(address: string): void {
    const key = keyOf(address);
    const left = (this.#counts.get(key) ?? 1) - 1;
    if (left > 0) this.#counts.set(key, left);
    else this.#counts.delete(key);
  }

  /** Number of open sockets of the address that has the most, as a share of the limit. */
  get fullestShare(): number {
    let most = 0;
    for (const count of this.#counts.values()) most = Math.max(most, count);
    return most / this.#most;
  }

  get size(): number {
    return this.#counts.size;
  }
}

/** Returns the address itself, or the /64 prefix of an IPv6 address. */
export function keyOf(address: string): string {
  return address.includes(":") ? (octetsOf(address)?.slice(0, 8).join() ?? address) : address;
}
