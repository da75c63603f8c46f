/**
 * What follows from a suspicion for a request without an answer (D6). One that waits for an upstream connection, and so was not sent,
 * goes to another backend. One that was sent and may be asked twice is asked once more, elsewhere, at the same time:
 * the first answer wins. Upstream connections tell again at every tick, so what the budget holds back now is asked a little later.
 */

import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { Backends } from "../../health/backends.ts";
import type { Evidence } from "../../health/evidence.ts";
import { isFreshRead, isRepeatable } from "../context/request-context.ts";
import type { Attempt } from "../upstream/attempt.ts";
import { pickOther } from "../upstream/pick.ts";
import type { PoolSet } from "../upstream/pool-set.ts";
import type { Exchange } from "./exchange.ts";

export type HedgeParts = {
  readonly clock: Clock;
  readonly backends: Backends;
  readonly pools: PoolSet;
  /** Requests wait in vain at this backend: it had better be asked whether it is ready, now. */
  readonly expediteProbe: (backend: string) => void;
  readonly learn: (backend: string, evidence: Evidence) => void;
};

/** Those of all backends: they share one budget. */
export class Hedges {
  readonly #parts: HedgeParts;
  readonly #budget: TokenBucket;
  readonly #slowBudget: TokenBucket;
  /** Requests that were asked twice, since the start. */
  count = 0;

  constructor(parts: HedgeParts) {
    this.#parts = parts;
    this.#budget = new TokenBucket(parts.clock, limits.hedgeBurst, limits.hedgesPerSecond);
    this.#slowBudget = new TokenBucket(parts.clock, limits.slowHedgeBurst, limits.slowHedgesPerSecond);
  }

  /** One attempt of an unanswered exchange waits for long, or is on an upstream connection or a backend that does not answer. */
  suspected(exchange: Exchange, attempt: Attempt): void {
    if (attempt.up === undefined) this.#goElsewhere(exchange, attempt);
    else if (attempt.isSlow && !attempt.isSuspect) this.#askSlow(exchange, attempt);
    else if (isRepeatable(exchange.context) && exchange.isDoubted) this.#askTwice(exchange, attempt);
  }

  /** The first answer of two, or the only one: what it says of those who were asked (health/reads.ts). */
  answered({ context }: Exchange, status: number, attempt: Attempt, rest: Attempt | undefined): void {
    if (!context.isObjectRead || status >= 500) return;
    const { clock, pools } = this.#parts;
    const now = clock.now();
    const tookMs = attempt.sinceSent(now);
    pools.poolOf(attempt.backend)?.reads.answered(tookMs);
    this.#slowBudget.earn(limits.slowHedgeShare, limits.slowHedgeBurst);
    // Who may not read is told so without a look at what is there.
    if ((status >= 300 && status !== 404) || !isFreshRead(context)) return;
    this.#proven(attempt.backend);
    if (rest?.isSlow === true && 2 * tookMs <= rest.sinceSent(now)) this.#lostHedge(rest, now);
  }

  #proven(backend: string): void {
    const reads = this.#parts.pools.poolOf(backend)?.reads;
    if (reads?.isDoubted === true) this.#learn(backend, reads.proven());
  }

  /** Before its upstream connection's PING is missed it may lie in a hole of that upstream connection's own, which says nothing of its backend. */
  #lostHedge(attempt: Attempt, now: number): void {
    if (!attempt.isOnAnsweringConnection) return;
    const connections = this.#parts.pools.poolOf(attempt.backend);
    if (connections === undefined) return;
    const limitMs = connections.reads.patienceMs(connections.deadlines.suspectAfterMs);
    this.#learn(attempt.backend, connections.reads.lostHedge(attempt.sinceSent(now), limitMs));
  }

  #learn(backend: string, evidence: Evidence | undefined): void {
    if (evidence !== undefined) this.#parts.learn(backend, evidence);
  }

  /** Who is known to answer, and has not been asked yet. */
  otherFor(exchange: Exchange): string | undefined {
    const { backends, pools } = this.#parts;
    return pickOther(backends.views, (name) => pools.weightOf(name), exchange.attempts.asked);
  }

  /** Who has left a backend does not come back to it: two that are slow would pass it to and fro. */
  #goElsewhere(exchange: Exchange, attempt: Attempt): void {
    const other = exchange.attempts.tried.length + 1 < limits.attempts ? this.otherFor(exchange) : undefined;
    if (other !== undefined) exchange.attempts.move(attempt, other).dial(this.#parts.pools);
  }

  /**
   * Its backend answers PING and not this. /readyz may know why, unless another server behind it is to answer. Only a read
   * of one object is asked elsewhere on the mere suspicion, and only one that no cache may answer: a large LIST is slow and
   * well, and costs whoever is asked as much.
   */
  #askSlow(exchange: Exchange, attempt: Attempt): void {
    if (!exchange.context.isOwn) return;
    this.#parts.expediteProbe(attempt.backend);
    if (exchange.attempts.hasTwo || !isFreshRead(exchange.context)) return;
    const other = this.otherFor(exchange);
    if (other === undefined || !this.#slowBudget.take()) return;
    this.count += 1;
    exchange.attempts.hedge(other).dial(this.#parts.pools);
  }

  /**
   * On another upstream connection of the same backend first. Two upstream connections that fell silent are no accident (path MTU: each swallows the same
   * answer), so then another backend is asked, if there is one.
   */
  #askTwice(exchange: Exchange, attempt: Attempt): void {
    const isSuspect = this.#isSuspect(attempt.backend);
    // The hole may be under this upstream connection only; its client is used to this backend's cache (k/k 59848).
    const prompt = isSuspect ? undefined : this.#parts.pools.promptConnection(attempt.backend, attempt.key);
    const another = prompt === undefined || exchange.attempts.hasTwo ? this.otherFor(exchange) : undefined;
    const own = another === undefined ? prompt : undefined;
    // With nobody else there: only its upstream connections are silent, and a fresh socket may not be.
    const backend = another ?? (isSuspect ? undefined : attempt.backend);
    if (backend === undefined || !this.#budget.take()) return;
    this.count += 1;
    const hedge = exchange.attempts.hedge(backend);
    if (own === undefined) hedge.dial(this.#parts.pools);
    else hedge.ready(own);
  }

  #isSuspect(backend: string): boolean {
    return this.#parts.backends.views.find(({ name }) => name === backend)?.state === "suspect";
  }
}
