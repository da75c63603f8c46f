/**
 * The clients whose reads are divided among the backends (context/read-spread.ts). Starts the spread of a client that
 * causes a large part of all load, divides the reads at each check of the balance, and ends the spread.
 */
import type { Client } from "../context/client.ts";
import type { ReadSpread } from "../context/read-spread.ts";
import { balanceLimits } from "./limits.ts";
import type { ClientLoad } from "./plan-moves.ts";
import { addLoad, partsOf } from "./plan-spread.ts";

/** A client with its number of open streams. */
type Streams = { readonly client: Client; readonly streams: number };

/**
 * A client whose reads are divided, or gather at one backend again. `load`: the load of these reads. `own`: the
 * client's other load.
 */
type Entry<T> = { readonly own: ClientLoad<T>; readonly spread: ReadSpread; readonly load: number };

export type SpreadRequest<T> = {
  /** The loads of the clients for which `mayBeSpread` is true, without the reads that are divided already. */
  readonly heavy: readonly ClientLoad<T>[];
  /** By backend: the load of all clients, without the reads that are divided already. */
  readonly sums: ReadonlyMap<string, number>;
  /** The number of ready backends. */
  readonly ready: number;
  /** The backends that may take more load, each with its share of the load. */
  readonly shares: ReadonlyMap<string, number>;
  /** A clock reading. */
  readonly now: number;
};

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

  /** Returns the load of all divided reads. `now`: a clock reading. */
  loadAt(now: number): number {
    let sum = 0;
    for (const { spread } of this.#clients.keys()) if (spread !== undefined) sum += readsOf(spread, now);
    return sum;
  }

  /**
   * Starts and ends spreads, and divides the reads. Returns the load of the divided reads, one entry for each client and
   * backend.
   */
  plan<T extends Streams>({ heavy, sums, ready, shares, now }: SpreadRequest<T>): readonly ClientLoad<T>[] {
    const least = this.#leastLoad(sums, ready, now);
    const entries: Entry<T>[] = [];
    for (const own of heavy) {
      const { client } = own.client;
      if (ready > 1 && own.load > least && this.#mayStart(client, now)) this.#start(client, now);
      const { spread } = client;
      if (spread !== undefined) entries.push({ own, spread, load: readsOf(spread, now) });
    }
    for (const entry of entries) this.#endIfSmall(entry, ready > 1 ? least : Number.POSITIVE_INFINITY, now);
    return divided(sums, entries, shares);
  }

  /** Returns the load above which the reads of a client are divided. */
  #leastLoad(sums: ReadonlyMap<string, number>, ready: number, now: number): number {
    let sum = this.loadAt(now);
    for (const load of sums.values()) sum += load;
    const { spreadShare, spreadLoad } = balanceLimits;
    return Math.max(spreadLoad, (spreadShare * sum) / Math.max(1, ready));
  }

  #mayStart(client: Client, now: number): boolean {
    const isResting = now < (this.#restsUntil.get(client) ?? 0);
    return client.backend !== undefined && client.spread === undefined && !isResting;
  }

  #start(client: Client, now: number): void {
    client.spreadReads(now);
    this.#clients.set(client, undefined);
  }

  #endIfSmall<T extends Streams>({ own, spread, load }: Entry<T>, least: number, now: number): void {
    const { client } = own.client;
    const { isOpen } = client.connection;
    if (own.load + load < least * balanceLimits.gatherShare) spread.gather();
    if (isOpen && !spread.isGathering) return;
    const since = this.#clients.get(client) ?? now;
    this.#clients.set(client, since);
    if (isOpen && now - since < balanceLimits.gatherMs) return;
    this.#clients.delete(client);
    this.#restsUntil.set(client, now + balanceLimits.restMs);
    client.gatherReads();
  }
}

/** True if the client's reads are divided, or may have to be. */
export function mayBeSpread({ client: { client }, load }: ClientLoad<Streams>): boolean {
  return load > balanceLimits.spreadLoad || client.spread !== undefined;
}

function readsOf({ meter }: ReadSpread, now: number): number {
  return meter.average(now, balanceLimits.activityMs) / balanceLimits.streamBytes;
}

/** Divides the reads of each client, so that the load of the backends becomes as even as possible. */
function divided<T>(
  sums: ReadonlyMap<string, number>,
  entries: readonly Entry<T>[],
  shares: ReadonlyMap<string, number>,
): ClientLoad<T>[] {
  const loads = new Map(sums);
  return entries.flatMap(({ own: { client, backend: home }, spread, load }) => {
    // If no backend may take more load, the parts stay as they are.
    if (shares.size > 0) spread.divide(partsOf(load, loads, shares));
    const parts = spread.isGathering || spread.parts.size === 0 ? new Map([[home, 1]]) : spread.parts;
    const reads = Array.from(parts, ([backend, part]) => ({
      client,
      backend,
      load: load * part,
      isMovable: false,
    }));
    for (const one of reads) addLoad(loads, one);
    return reads;
  });
}
