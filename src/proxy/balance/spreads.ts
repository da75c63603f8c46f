/**
 * The clients whose reads are divided among the backends (context/read-spread.ts). Starts the spread of a client that
 * causes a large part of all load, divides the reads at each check of the balance, and ends the spread.
 */
import type { Client } from "../context/client.ts";
import type { ReadSpread } from "../context/read-spread.ts";
import { balanceLimits } from "./limits.ts";
import type { ClientLoad } from "./plan-moves.ts";
import { partsOf } from "./plan-spread.ts";

/** A client with its number of open streams. */
type Streams = { readonly client: Client; readonly streams: number };

export type SpreadPlan<T> = {
  /** The loads of all clients, without the reads that are divided. */
  readonly owns: readonly ClientLoad<T>[];
  /** The loads of the divided reads, one entry for each client and backend. */
  readonly reads: readonly ClientLoad<T>[];
};

/** A client whose reads are divided or gather. `own`: its other load. `load`: the load of its reads. */
type Entry<T> = { readonly own: ClientLoad<T>; readonly spread: ReadSpread; readonly load: number };

export class Spreads {
  /** Each client, and the clock reading at which its reads began to gather; undefined: its reads are divided. */
  readonly #clients = new Map<Client, number | undefined>();
  /** For a client whose spread has ended, the clock reading before which no new spread starts. */
  readonly #restsUntil = new WeakMap<Client, number>();

  get size(): number {
    return this.#clients.size;
  }

  get clients(): Iterable<Client> {
    return this.#clients.keys();
  }

  /**
   * Starts and ends spreads, and divides the reads. `loads`: the loads of all clients, without the reads that were
   * divided before. `shares`: the share of each backend that may take more load. `now`: a clock reading.
   */
  plan<T extends Streams>(
    loads: readonly ClientLoad<T>[],
    shares: ReadonlyMap<string, number>,
    now: number,
  ): SpreadPlan<T> {
    const least = this.#leastLoad(loads, shares, now);
    const owns: ClientLoad<T>[] = [];
    const entries: Entry<T>[] = [];
    for (const one of loads) {
      const { client } = one.client;
      const isStarting = shares.size > 1 && one.load > least && this.#mayStart(client, now);
      if (isStarting) this.#start(client);
      const own = isStarting ? { ...one, load: one.client.streams } : one;
      owns.push(own);
      const { spread } = client;
      if (spread !== undefined) entries.push({ own, spread, load: readsOf(spread, now) });
    }
    for (const entry of entries)
      this.#endIfSmall(entry, shares.size > 1 ? least : Number.POSITIVE_INFINITY, now);
    return { owns, reads: divided(owns, entries, shares) };
  }

  /** Returns the load above which the reads of a client are divided. */
  #leastLoad(
    loads: readonly ClientLoad<unknown>[],
    shares: ReadonlyMap<string, number>,
    now: number,
  ): number {
    let sum = 0;
    for (const { load } of loads) sum += load;
    for (const { spread } of this.#clients.keys()) if (spread !== undefined) sum += readsOf(spread, now);
    const { spreadShare, spreadLoad } = balanceLimits;
    return Math.max(spreadLoad, (spreadShare * sum) / Math.max(1, shares.size));
  }

  #mayStart(client: Client, now: number): boolean {
    return (
      client.backend !== undefined &&
      client.spread === undefined &&
      now >= (this.#restsUntil.get(client) ?? 0)
    );
  }

  #start(client: Client): void {
    client.spreadReads();
    this.#clients.set(client, undefined);
  }

  #endIfSmall<T extends Streams>({ own, spread, load }: Entry<T>, least: number, now: number): void {
    const { client } = own.client;
    if (own.load + load < least * balanceLimits.gatherShare || !client.connection.isOpen) spread.gather();
    if (!spread.isGathering) return;
    const since = this.#clients.get(client) ?? now;
    this.#clients.set(client, since);
    if (client.connection.isOpen && now - since < balanceLimits.gatherMs) return;
    this.#clients.delete(client);
    this.#restsUntil.set(client, now + balanceLimits.restMs);
    client.gatherReads();
  }
}

function readsOf(spread: ReadSpread, now: number): number {
  return spread.averageWork(now, balanceLimits.activityMs) / balanceLimits.streamBytes;
}

/** Divides the reads of each client, so that the load of the backends becomes as even as possible. */
function divided<T>(
  owns: readonly ClientLoad<T>[],
  entries: readonly Entry<T>[],
  shares: ReadonlyMap<string, number>,
): ClientLoad<T>[] {
  const loads = new Map<string, number>();
  const add = ({ backend, load }: Pick<ClientLoad<T>, "backend" | "load">): void =>
    void loads.set(backend, (loads.get(backend) ?? 0) + load);
  for (const own of owns) add(own);
  return entries.flatMap(({ own, spread, load }) => {
    const parts = spread.isGathering ? new Map([[own.backend, 1]]) : partsOf(load, loads, shares);
    spread.divide(parts);
    const reads = Array.from(parts, ([backend, part]) => ({
      client: own.client,
      backend,
      load: load * part,
      isMovable: false,
    }));
    for (const one of reads) add(one);
    return reads;
  });
}
