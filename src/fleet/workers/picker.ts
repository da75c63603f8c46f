/**
 * Selects the worker for a new socket. A client address stays with the worker that it had before, so that one process
 * has everything that the proxy remembers about a client: the resource versions that the client has seen, its recorded
 * requests (src/ops/ledger), and its counts for limits per address. If that worker has too many sockets, or the address is
 * new, the worker with the fewest sockets gets the socket.
 */
import { Lru } from "../../base/lru.ts";
import { workerLimits } from "./limits.ts";

export type Candidate = {
  /**
   * Number of the worker's client sockets, including sockets that were passed to the worker and that it has not
   * confirmed yet.
   */
  readonly sockets: number;
  /** True if another socket can be passed to the worker now. */
  readonly isOpen: boolean;
};

export class Picker<T extends Candidate> {
  readonly #workers = new Lru<string, T>(workerLimits.addresses);

  /** Returns the worker for a new socket from this address; undefined: no worker is open. */
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
