/**
 * Selects the worker for a new socket. A client address stays with the worker that it had before, so that what the proxy
 * remembers of a client (versions that it has seen, its row in the ledger, limits per address) is in one process. If that
 * worker has too many sockets, or the address is new, the worker with the fewest sockets gets it.
 */
import { Lru } from "../base/lru.ts";
import { workerLimits } from "./limits.ts";

export type Candidate = {
  /** Number of client sockets that the worker has, including those that are on their way to it. */
  readonly sockets: number;
  /** True if the worker takes sockets now. */
  readonly isOpen: boolean;
};

export class Picker<T extends Candidate> {
  readonly #workers = new Lru<string, T>(workerLimits.addresses);

  /** Returns the worker for a client of this address; undefined: none is open. */
  pick(all: readonly T[], address: string): T | undefined {
    const open = all.filter(({ isOpen }) => isOpen);
    const [first, ...others] = open;
    if (first === undefined) return undefined;
    const least = others.reduce((best, one) => (one.sockets < best.sockets ? one : best), first);
    const known = this.#workers.get(address);
    const most = least.sockets + least.sockets / 8 + workerLimits.moreSockets;
    const picked = known?.isOpen === true && known.sockets < most ? known : least;
    this.#workers.set(address, picked);
    return picked;
  }
}
