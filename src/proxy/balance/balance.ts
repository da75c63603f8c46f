/**
 * Rebalances the load after a backend has come back (F16), or if some clients cause more work than others. Binds
 * clients to another backend, beginning with the clients with the most load, at most 1 % of all clients a second. A
 * client's watches move before its next requests go to the new backend (D2). No client moves while a backend is still
 * warming up.
 */
import type { Clock } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import { inSlices } from "../../base/slices.ts";
import type { Client } from "../../upstream/context/client.ts";
import type { Migrations } from "../../watch/migration/migrations.ts";
import type { WatchSession } from "../../watch/session/watch-session.ts";
import type { ActiveRequests } from "../request/active-requests.ts";
import type { Exchange } from "../request/exchange.ts";
import { balanceLimits } from "./limits.ts";
import { type ClientLoad, planMoves, Rests, sharesByZone } from "./plan-moves.ts";

export type BalanceParts = {
  readonly clock: Clock;
  readonly exchanges: ActiveRequests;
  readonly migrations: Migrations;
  readonly shares: BalanceShares;
};

/** Tells how much of the load each backend should get. `DataPath` implements these functions. */
export type BalanceShares = {
  /** Returns the share of each ready backend (backend-shares.ts). */
  readonly of: () => ReadonlyMap<string, number>;
  /**
   * True if clients of other backends may move to the backend: it is not warming up, and has not asked the proxy for a
   * pause.
   */
  readonly mayGet: (backend: string) => boolean;
  readonly isNear: (backend: string) => boolean;
  /** Called with the part of a backend's load that short requests cause, converted to a number of open streams. */
  readonly measured: (backend: string, activity: number) => void;
};

type ClientStreams = {
  readonly client: Client;
  readonly watches: WatchSession[];
  streams: number;
  isMovable: boolean;
};

/** What a walk over all clients has found. It is built in slices, because there may be 50,000 clients. */
type Walked = {
  readonly loads: ClientLoad<ClientStreams>[];
  /** By backend: the part of `loads` that short requests cause. */
  readonly activities: Map<string, number>;
};

export class Balance extends Interval {
  readonly #parts: BalanceParts;
  /** Number of clients that may move now. Fractions add up: with 20 clients, one may move every 5 s. */
  #allowance = 0;
  /** True if the latest check moved clients. */
  #isMoving = false;
  readonly #rests = new Rests<Client>();
  #endWalk = (): void => {};

  constructor(parts: BalanceParts) {
    super(parts.clock, balanceLimits.balanceMs, () => this.#look());
    this.#parts = parts;
  }

  override stop(): void {
    super.stop();
    this.#endWalk();
  }

  /** Collects the clients with long-lived streams, and those that cause much work with short requests. */
  #look(): void {
    const clients = new Map<Client, ClientStreams>();
    const { clock, exchanges } = this.#parts;
    this.#endWalk();
    for (const client of exchanges.takeBusy()) streamsOf(clients, client);
    this.#endWalk = inSlices(
      clock,
      exchanges.live,
      (exchange) => addTo(clients, exchange),
      () => this.#finishAll(clients.values()),
    );
  }

  #finishAll(clients: Iterable<ClientStreams>): void {
    const shares = this.#parts.shares.of();
    this.#rests.among([...shares.keys()]);
    const walked: Walked = { loads: [], activities: new Map() };
    const finish = (one: ClientStreams): void => {
      this.#finish(one, shares);
      const load = this.#loadOf(one);
      walked.loads.push(load);
      const { activities } = walked;
      activities.set(load.backend, (activities.get(load.backend) ?? 0) + load.load - one.streams);
    };
    this.#endWalk = inSlices(this.#parts.clock, clients, finish, () => this.#plan(walked, shares));
  }

  #plan({ loads, activities }: Walked, shares: ReadonlyMap<string, number>): void {
    const { mayGet, isNear, measured } = this.#parts.shares;
    for (const name of shares.keys()) measured(name, activities.get(name) ?? 0);
    if (shares.size < 2 || !Array.from(shares.keys()).every((name) => mayGet(name))) return;
    const gained = allowanceOf(loads.length, balanceLimits.balanceMs);
    // Limits the allowance, so that it cannot be saved up for a burst.
    this.#allowance = Math.min(this.#allowance + gained, Math.max(1, gained));
    const slack = this.#isMoving ? balanceLimits.restSlack : balanceLimits.rebalanceSlack;
    const moves = planMoves(loads, sharesByZone(loads, shares, isNear), Math.floor(this.#allowance), slack);
    if (this.#allowance >= 1) this.#isMoving = moves.length > 0;
    this.#allowance -= moves.length;
    for (const { client: one, to } of moves) this.#move(one, to);
  }

  /**
   * A client without watches goes to the new backend with its next request. If a client has watches, the watches move
   * first.
   */
  #move(streams: ClientStreams, to: string): void {
    const { client, watches } = streams;
    this.#rests.moved(client, this.#parts.clock.now());
    if (watches.length === 0) return client.bind(to);
    client.rebind(to);
    this.#send(streams);
  }

  #loadOf({ client, ...rest }: ClientStreams): ClientLoad<ClientStreams> {
    const now = this.#parts.clock.now();
    const activity = client.work.average(now, balanceLimits.activityMs) / balanceLimits.streamBytes;
    return {
      client: { client, ...rest },
      backend: client.rebound ?? client.backend ?? "",
      load: rounded(rest.streams + activity),
      isMovable: rest.isMovable && client.rebound === undefined && !this.#rests.isResting(client, now),
    };
  }

  /**
   * Ends a client's move if all its watches have moved or the new backend is gone. Otherwise tries again to move the
   * watches.
   */
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

function streamsOf(clients: Map<Client, ClientStreams>, client: Client): ClientStreams {
  const own = clients.get(client) ?? { client, watches: [], streams: 0, isMovable: true };
  clients.set(client, own);
  return own;
}

function addTo(clients: Map<Client, ClientStreams>, { context, watch, isEnded }: Exchange): void {
  if (isEnded || context.kind === "plain") return;
  const own = streamsOf(clients, context.client);
  own.streams += 1;
  own.isMovable &&= watch?.mayHedge === true;
  if (watch !== undefined) own.watches.push(watch);
}

/** Rounds a load to two digits, so that `planMoves` compares few different loads. */
function rounded(load: number): number {
  if (load < 100) return Math.round(load);
  const unit = 10 ** (Math.floor(Math.log10(load)) - 1);
  return Math.round(load / unit) * unit;
}

export function allowanceOf(clients: number, sinceMs: number): number {
  return (clients * balanceLimits.rebalanceShare * sinceMs) / 1000;
}
