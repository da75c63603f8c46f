/**
 * Evens the load after a backend has come back (F16): binds a few clients to another backend, at most 1 % of all
 * clients each second. First the watches of such a client move, and then its requests go to the new backend, too (D2).
 * No client moves to a backend that is still warming up.
 */
import type { Clock } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import { inSlices } from "../../base/slices.ts";
import type { Migrations } from "../../watch/migration/migrations.ts";
import type { WatchSession } from "../../watch/session/watch-session.ts";
import type { Client } from "../context/client.ts";
import type { ActiveRequests } from "../request/active-requests.ts";
import type { Exchange } from "../request/exchange.ts";

export const balanceLimits = {
  /** Share of the clients that may be bound to another backend per second (F16). */
  rebalanceShare: 0.01,
  balanceMs: 5000,
  /** Share of an even load by which a backend's load may deviate before clients are moved. */
  rebalanceSlack: 0.1,
} as const;

export type BalanceParts = {
  readonly clock: Clock;
  readonly exchanges: ActiveRequests;
  readonly migrations: Migrations;
  /** Returns the share of the load that each ready backend may get (slow-start.ts). */
  readonly shares: () => ReadonlyMap<string, number>;
};

type ClientStreams = {
  readonly client: Client;
  readonly watches: WatchSession[];
  load: number;
  isMovable: boolean;
};

export class Balance extends Interval {
  readonly #parts: BalanceParts;
  /** Number of clients that may be moved now. Fractions add up: of 20 clients, one may move every 5 s. */
  #allowance = 0;
  #endWalk = (): void => {};

  constructor(parts: BalanceParts) {
    super(parts.clock, balanceLimits.balanceMs, () => this.#look());
    this.#parts = parts;
  }

  override stop(): void {
    super.stop();
    this.#endWalk();
  }

  /** Collects the clients with long-lived streams. A short request ends before a move could help. */
  #look(): void {
    const clients = new Map<Client, ClientStreams>();
    const { clock, exchanges } = this.#parts;
    this.#endWalk();
    this.#endWalk = inSlices(
      clock,
      exchanges.live,
      (exchange) => addTo(clients, exchange),
      () => this.#finishAll(clients.values()),
    );
  }

  #finishAll(clients: Iterable<ClientStreams>): void {
    const shares = this.#parts.shares();
    const loads: ClientLoad<ClientStreams>[] = [];
    const finish = (one: ClientStreams): void => {
      this.#finish(one, shares);
      loads.push(clientLoadOf(one));
    };
    this.#endWalk = inSlices(this.#parts.clock, clients, finish, () => this.#plan(loads, shares));
  }

  #plan(loads: readonly ClientLoad<ClientStreams>[], shares: ReadonlyMap<string, number>): void {
    const isWarm = Array.from(shares.values()).every((share) => share === 1);
    if (shares.size < 2 || !isWarm) return;
    const gained = allowanceOf(loads.length, balanceLimits.balanceMs);
    // Unused allowance cannot be saved up for a burst.
    this.#allowance = Math.min(this.#allowance + gained, Math.max(1, gained));
    const moves = planMoves(loads, shares, Math.floor(this.#allowance));
    this.#allowance -= moves.length;
    for (const { client: one, to } of moves) {
      one.client.rebind(to);
      this.#send(one);
    }
  }

  /** Ends a client's move if all its watches have moved or the new backend is gone. Otherwise tries again. */
  #finish(streams: ClientStreams, shares: ReadonlyMap<string, number>): void {
    const { client, watches } = streams;
    const { rebound } = client;
    if (rebound === undefined) return;
    const isThere =
      client.backend === rebound && watches.every(({ attempt }) => attempt?.backend === rebound);
    if (isThere || !shares.has(rebound)) client.rebind(undefined);
    else this.#send(streams);
  }

  #send({ client, watches }: ClientStreams): void {
    for (const watch of watches)
      if (watch.attempt?.backend !== client.rebound) this.#parts.migrations.leave(watch, "rebalance");
  }
}

function addTo(clients: Map<Client, ClientStreams>, { context, watch, isEnded }: Exchange): void {
  if (isEnded || context.kind === "plain") return;
  const { client } = context;
  const own = clients.get(client) ?? { client, watches: [], load: 0, isMovable: true };
  clients.set(client, own);
  own.load += 1;
  own.isMovable &&= watch?.mayHedge === true;
  if (watch !== undefined) own.watches.push(watch);
}

function clientLoadOf(streams: ClientStreams): ClientLoad<ClientStreams> {
  const { client, load } = streams;
  const isMovable = streams.isMovable && client.rebound === undefined;
  return { client: streams, backend: client.rebound ?? client.backend ?? "", load, isMovable };
}

export type ClientLoad<T> = {
  readonly client: T;
  readonly backend: string;
  readonly load: number;
  /** True if another backend can continue all streams unnoticed. A client with an exec cannot be moved. */
  readonly isMovable: boolean;
};

export type Move<T> = { readonly client: T; readonly from: string; readonly to: string };

export function allowanceOf(clients: number, sinceMs: number): number {
  return (clients * balanceLimits.rebalanceShare * sinceMs) / 1000;
}

/**
 * Returns at most `most` moves, each from the backend with the most streams above its share to the one with the fewest.
 * No move makes the load less even. `shares`: share of the load of each backend that takes clients (slow-start.ts).
 */
export function planMoves<T>(
  loads: readonly ClientLoad<T>[],
  shares: ReadonlyMap<string, number>,
  most: number,
): readonly Move<T>[] {
  const excess = excessOf(loads, shares);
  const [sum, slack] = [sumOf(loads.map(({ load }) => load)), balanceLimits.rebalanceSlack];
  // Computed only at the first move, because usually no move is needed.
  let left: ReadonlyMap<string, ByLoad<T>> | undefined;
  const moves: Move<T>[] = [];
  while (moves.length < most) {
    const byExcess = Array.from(excess).toSorted(([, one], [, other]) => other - one);
    const [[from, over], [to, under]] = [byExcess.at(0) ?? ["", 0], byExcess.at(-1) ?? ["", 0]];
    const gap = Math.min(over, -under);
    if (gap <= (slack * sum) / Math.max(1, shares.size)) break;
    left ??= movable(loads);
    const best = takeLargest(left.get(from), gap);
    if (best === undefined) break;
    excess.set(from, over - best.load);
    excess.set(to, under + best.load);
    moves.push({ client: best.client, from, to });
  }
  return moves;
}

/** Returns how many streams each backend has above its share; negative: below its share. */
function excessOf(
  loads: readonly ClientLoad<unknown>[],
  shares: ReadonlyMap<string, number>,
): Map<string, number> {
  const here = loads.filter(({ backend }) => shares.has(backend));
  const perShare =
    sumOf(here.map(({ load }) => load)) / Math.max(sumOf([...shares.values()]), Number.EPSILON);
  const excess = new Map(Array.from(shares, ([name, share]) => [name, -share * perShare]));
  for (const { backend, load } of here) excess.set(backend, (excess.get(backend) ?? 0) + load);
  return excess;
}

type ByLoad<T> = Map<number, ClientLoad<T>[]>;

/** Clients that can move, by backend and load. To search all 50,000 clients for each move would take a second. */
function movable<T>(loads: readonly ClientLoad<T>[]): ReadonlyMap<string, ByLoad<T>> {
  const left = new Map<string, ByLoad<T>>();
  for (const one of loads.toReversed()) {
    const { backend, load, isMovable } = one;
    if (!isMovable || load <= 0) continue;
    const byLoad: ByLoad<T> = left.get(backend) ?? new Map();
    left.set(backend, byLoad);
    const alike = byLoad.get(load) ?? [];
    byLoad.set(load, alike);
    alike.push(one);
  }
  return left;
}

/** Takes the client with the largest load that fits into the gap, so that few clients move. */
function takeLargest<T>(left: ByLoad<T> = new Map(), gap: number): ClientLoad<T> | undefined {
  let most = 0;
  for (const [load, { length }] of left) if (length > 0 && load <= gap && load > most) most = load;
  return left.get(most)?.pop();
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}
