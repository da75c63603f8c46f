/**
 * Evens the load after a backend has come back (F16): from time to time a few clients are bound to another backend, at
 * most 1 % of them a second. Their watches move first, unnoticed; their next requests follow (D2). rebalance.ts plans the
 * moves. No client moves while a backend is still warming up.
 */
import type { Clock } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import { limits } from "../../base/limits.ts";
import { inSlices } from "../../base/slices.ts";
import type { Migrations } from "../../watch/migration/migrations.ts";
import type { WatchSession } from "../../watch/session/watch-session.ts";
import type { Client } from "../context/client.ts";
import type { ActiveRequests } from "../request/active-requests.ts";
import type { Exchange } from "../request/exchange.ts";
import { allowanceOf, planMoves, type Sitter } from "./rebalance.ts";

export type BalanceParts = {
  readonly clock: Clock;
  readonly exchanges: ActiveRequests;
  readonly migrations: Migrations;
  /** Of each ready backend: the share of the load that it may get (slow-start.ts). */
  readonly shares: () => ReadonlyMap<string, number>;
};

/** One client with its long-lived streams. */
type Seat = { readonly client: Client; readonly watches: WatchSession[]; load: number; isMovable: boolean };

export class Balance {
  readonly #parts: BalanceParts;
  /** The number of clients that may be moved now, with fractions: of 20, one each 5 s. */
  #allowance = 0;
  readonly #looks: Interval;
  /** Cancels the current walk. */
  #endWalk = (): void => {};

  constructor(parts: BalanceParts) {
    this.#parts = parts;
    this.#looks = new Interval(parts.clock, limits.balanceMs, () => this.#look());
  }

  start(): void {
    this.#looks.start();
  }

  stop(): void {
    this.#looks.stop();
    this.#endWalk();
  }

  /** Collects clients with long-lived streams. Short requests are ignored: they are over before a move would help. */
  #look(): void {
    const seats = new Map<Client, Seat>();
    const { clock, exchanges } = this.#parts;
    this.#endWalk();
    this.#endWalk = inSlices(
      clock,
      exchanges.live,
      (exchange) => addTo(seats, exchange),
      () => this.#finishAll(seats.values()),
    );
  }

  #finishAll(seats: Iterable<Seat>): void {
    const shares = this.#parts.shares();
    const sitters: Sitter<Seat>[] = [];
    const finish = (one: Seat): void => {
      this.#finish(one, shares);
      sitters.push(sitterOf(one));
    };
    this.#endWalk = inSlices(this.#parts.clock, seats, finish, () => this.#plan(sitters, shares));
  }

  #plan(sitters: readonly Sitter<Seat>[], shares: ReadonlyMap<string, number>): void {
    const isWarm = Array.from(shares.values()).every((share) => share === 1);
    if (shares.size < 2 || !isWarm) return;
    const gained = allowanceOf(sitters.length, limits.balanceMs);
    // An unused allowance is not saved up for a burst.
    this.#allowance = Math.min(this.#allowance + gained, Math.max(1, gained));
    const moves = planMoves(sitters, shares, Math.floor(this.#allowance));
    this.#allowance -= moves.length;
    for (const { client: one, to } of moves) {
      one.client.rebound = to;
      this.#send(one);
    }
  }

  /** Checks a client that is being moved. If it has not arrived, its watches are sent again, unless the target is gone. */
  #finish(seat: Seat, shares: ReadonlyMap<string, number>): void {
    const { client, watches } = seat;
    const { rebound } = client;
    if (rebound === undefined) return;
    const isThere =
      client.backend === rebound && watches.every(({ attempt }) => attempt?.backend === rebound);
    if (isThere || !shares.has(rebound)) client.rebound = undefined;
    else this.#send(seat);
  }

  #send({ client, watches }: Seat): void {
    for (const watch of watches)
      if (watch.attempt?.backend !== client.rebound) this.#parts.migrations.leave(watch, "rebalance");
  }
}

function addTo(seats: Map<Client, Seat>, { context, watch, isEnded }: Exchange): void {
  if (isEnded || context.kind === "plain") return;
  const { client } = context;
  const own = seats.get(client) ?? { client, watches: [], load: 0, isMovable: true };
  seats.set(client, own);
  own.load += 1;
  own.isMovable &&= watch?.mayHedge === true;
  if (watch !== undefined) own.watches.push(watch);
}

/** A client being migrated counts towards its destination. */
function sitterOf(seat: Seat): Sitter<Seat> {
  const { client, load } = seat;
  const isMovable = seat.isMovable && client.rebound === undefined;
  return { client: seat, backend: client.rebound ?? client.backend ?? "", load, isMovable };
}
