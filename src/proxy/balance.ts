/**
 * Evens the load after a backend has come back (F16): now and then a few clients are bound to another one, at most 1 %
 * of them a second. Their watches move first, unseen; what they ask next follows (D2). Who moves is planned by
 * rebalance.ts; nobody does while a backend is still warming up.
 */
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import { Looks } from "../looks.ts";
import type { Client } from "./client.ts";
import type { Exchanges } from "./exchanges.ts";
import type { Moves } from "./moves.ts";
import { allowanceOf, planMoves, type Sitter } from "./rebalance.ts";
import type { Watching } from "./watching.ts";

export type BalanceParts = {
  readonly clock: Clock;
  readonly exchanges: Exchanges;
  readonly moves: Moves;
  /** Of the backends that are ready: what part of one each counts for (slow-start.ts). */
  readonly shares: () => ReadonlyMap<string, number>;
};

/** One client with what it has open for long. */
type Seat = { readonly client: Client; readonly watches: Watching[]; load: number; isMovable: boolean };

export class Balance {
  readonly #parts: BalanceParts;
  /** Clients that may be moved, in parts of one: of 20, one each 5 s. */
  #allowance = 0;
  readonly #looks: Looks;

  constructor(parts: BalanceParts) {
    this.#parts = parts;
    this.#looks = new Looks(parts.clock, limits.balanceMs, () => this.#look());
  }

  start(): void {
    this.#looks.start();
  }

  stop(): void {
    this.#looks.stop();
  }

  #look(): void {
    const shares = this.#parts.shares();
    const isWarm = Array.from(shares.values()).every((share) => share === 1);
    const seats = this.#seats();
    for (const seat of seats) this.#finish(seat, shares);
    if (shares.size < 2 || !isWarm) return;
    const gained = allowanceOf(seats.length, limits.balanceMs);
    // What was not needed is not saved up for a rush.
    this.#allowance = Math.min(this.#allowance + gained, Math.max(1, gained));
    const moves = planMoves(seats.map(sitterOf), shares, Math.floor(this.#allowance));
    this.#allowance -= moves.length;
    for (const { client: seat, to } of moves) {
      seat.client.rebound = to;
      this.#send(seat);
    }
  }

  /** A client that was on its way: is it there? If not its watches are sent once more, unless its aim is gone. */
  #finish(seat: Seat, shares: ReadonlyMap<string, number>): void {
    const { client, watches } = seat;
    const { rebound } = client;
    if (rebound === undefined) return;
    const isThere = client.backend === rebound && watches.every(({ leg }) => leg?.backend === rebound);
    if (isThere || !shares.has(rebound)) client.rebound = undefined;
    else this.#send(seat);
  }

  #send({ client, watches }: Seat): void {
    for (const watching of watches)
      if (watching.leg?.backend !== client.rebound) this.#parts.moves.leave(watching, "balance");
  }

  /** Clients with something open for long: a short request is over before anybody has moved for it. */
  #seats(): readonly Seat[] {
    const seats = new Map<Client, Seat>();
    for (const { order, watching } of this.#parts.exchanges.live) {
      if (order.kind === "plain") continue;
      const { client } = order;
      const seat = seats.get(client) ?? { client, watches: [], load: 0, isMovable: true };
      seats.set(client, seat);
      seat.load += 1;
      seat.isMovable &&= watching?.mayHaveTwo === true;
      if (watching !== undefined) seat.watches.push(watching);
    }
    return Array.from(seats.values());
  }
}

/** One that is on its way counts where it goes to. */
function sitterOf(seat: Seat): Sitter<Seat> {
  const { client, load } = seat;
  const isMovable = seat.isMovable && client.rebound === undefined;
  return { client: seat, backend: client.rebound ?? client.backend ?? "", load, isMovable };
}
