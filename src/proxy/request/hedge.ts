/**
 * Hedges requests without a response (D6). A request that still waits for an upstream connection moves to another
 * backend. A request that was sent, and may be sent twice, also goes to another backend, and the first response wins.
 * Connections call `suspected` at every tick, so a hedge that exceeds the budget is sent at a later tick.
 */

import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { Backends } from "../../health/backends.ts";
import type { Evidence } from "../../health/evidence.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import type { Client } from "../../upstream/context/client.ts";
import { isFreshRead, isRepeatable, type RequestContext } from "../../upstream/context/request-context.ts";
import type { AssertedTrust } from "../../upstream/identity/asserted-identity.ts";
import type { Attempt } from "../../upstream/pool/attempt.ts";
import { BackendCounts } from "../../upstream/pool/backend-counts.ts";
import { pickOther } from "../../upstream/pool/pick.ts";
import type { PoolSet } from "../../upstream/pool/pool-set.ts";
import type { AttemptPair } from "./attempt-pair.ts";
import { requestLimits } from "./limits.ts";

export type HedgeParts = {
  readonly clock: Clock;
  readonly backends: Backends;
  readonly pools: PoolSet;
  /** Probes a backend's readiness now. Called if requests to the backend get no response. */
  readonly expediteProbe: (backend: string) => void;
  readonly learn: (backend: string, evidence: Evidence) => void;
  /** True if another server than the apiserver is known to serve the API. */
  readonly isAggregated: (info: RequestInfo) => boolean;
};

/** All hedges of a cluster. Hedges of suspect attempts share one budget, and hedges of slow attempts another one. */
export class Hedges {
  readonly #parts: HedgeParts;
  readonly #budget: TokenBucket;
  readonly #slowBudget: TokenBucket;
  /** Number of requests that were sent twice, by the backend that had not answered the first attempt. */
  readonly counts = new BackendCounts();
  /** How many hedged requests got their response from their first attempt, and how many from their hedge. */
  readonly wins = { first: 0, hedge: 0 };

  constructor(parts: HedgeParts) {
    this.#parts = parts;
    this.#budget = new TokenBucket(parts.clock, limits.hedgeBurst, limits.hedgesPerSecond);
    this.#slowBudget = new TokenBucket(
      parts.clock,
      requestLimits.slowHedgeBurst,
      requestLimits.slowHedgesPerSecond,
    );
  }

  /** Moves or hedges an attempt that has waited for long, or whose connection or backend does not answer. */
  suspected(context: RequestContext, attempts: AttemptPair, attempt: Attempt, info: RequestInfo): void {
    if (attempt.up === undefined) this.#goElsewhere(attempts, attempt);
    else if (attempt.isSlow && !attempt.isSuspect)
      if (context.isOwn) this.#askSlow(context, attempts, attempt);
      else this.#askForeign(context, attempts, attempt, info);
    else if (isRepeatable(context) && attempts.isDoubted) this.#askTwice(attempts, attempt);
  }

  /** Records what the first response shows about the speed of the asked backends (health/read-latency.ts). */
  answered(
    context: RequestContext,
    status: number,
    attempt: Attempt,
    { rest, now }: { readonly rest: Attempt | undefined; readonly now: number },
  ): void {
    const { pools } = this.#parts;
    this.#countWin(attempt, rest, now);
    if (!context.isObjectRead || status >= 500) return;
    const tookMs = attempt.answeredMs;
    pools.poolOf(attempt.backend)?.reads.add(tookMs);
    this.#slowBudget.earn(requestLimits.slowHedgeShare, requestLimits.slowHedgeBurst);
    // A backend sends 401 and 403 without reading the object, so they say nothing about the speed of its reads.
    if ((status >= 300 && status !== 404) || !isFreshRead(context)) return;
    this.#proven(attempt.backend);
    // The proxy may have held the response back since its head arrived. The other attempt is judged by its wait until
    // then.
    const answeredAt = now - attempt.sinceSent(now) + tookMs;
    if (rest?.isSlow === true && 2 * tookMs <= rest.sinceSent(answeredAt)) this.#lostHedge(rest, answeredAt);
  }

  #countWin(attempt: Attempt, rest: Attempt | undefined, now: number): void {
    if (rest !== undefined) this.wins[attempt.sinceSent(now) < rest.sinceSent(now) ? "hedge" : "first"] += 1;
  }

  #proven(backend: string): void {
    const reads = this.#parts.pools.poolOf(backend)?.reads;
    if (reads?.isDoubted === true) this.#learn(backend, reads.proven());
  }

  /**
   * Records that a hedge was faster than this attempt. This counts against the attempt's backend only if the attempt's
   * connection answers PINGs, because otherwise the network may have caused the delay. `answeredAt`: clock reading at
   * which the head of the hedge's response arrived.
   */
  #lostHedge(attempt: Attempt, answeredAt: number): void {
    if (!attempt.isOnAnsweringConnection) return;
    const connections = this.#parts.pools.poolOf(attempt.backend);
    if (connections === undefined) return;
    const limitMs = connections.reads.hedgeAfterMs(connections.deadlines.suspectAfterMs);
    this.#learn(attempt.backend, connections.reads.lostHedge(attempt.sinceSent(answeredAt), limitMs));
  }

  #learn(backend: string, evidence: Evidence | undefined): void {
    if (evidence !== undefined) this.#parts.learn(backend, evidence);
  }

  /** Returns a backend that is known to answer, is fit for the trust class and not in `asked`; undefined: none is. */
  otherThan(asked: readonly string[], trust: AssertedTrust | undefined): string | undefined {
    const { backends, pools } = this.#parts;
    return pickOther(pools.fitFor(backends.views, trust), pools, asked);
  }

  /** Binds the client to another backend, because this one has older data than the client has already received. */
  leaveBehind(client: Client, backend: string): void {
    const { identity } = client;
    const other = this.otherThan([backend], identity.kind === "asserted" ? identity.trust : undefined);
    if (other !== undefined) client.follow(backend, other);
  }

  /** Returns a backend that may be asked next; undefined: there is none, or no attempt is left. */
  another({ tried, asked, trust }: AttemptPair): string | undefined {
    return tried.length + 1 < limits.attempts ? this.otherThan(asked, trust) : undefined;
  }

  /** Handles a request that still waits for a connection. Moves it to a backend that has not been asked yet. */
  #goElsewhere(attempts: AttemptPair, attempt: Attempt): void {
    const other = this.another(attempts);
    if (other !== undefined) attempts.move(attempt, other).dial(this.#parts.pools);
  }

  /**
   * Handles an attempt whose backend answers PINGs, but not this request. Probes the backend's readiness now. The
   * apiserver answers the request from its own storage (`isOwn`), so /readyz may show the cause of the delay. Hedges
   * only reads of one object that the apiserver must answer from etcd, because a large LIST is slow on a healthy
   * backend, too.
   */
  #askSlow(context: RequestContext, attempts: AttemptPair, attempt: Attempt): void {
    this.#parts.expediteProbe(attempt.backend);
    if (isFreshRead(context)) this.#hedgeSlow(attempts, attempt);
  }

  /** Handles a slow attempt for an aggregated API. The attempt's backend may be unable to reach the API's server. */
  #askForeign(context: RequestContext, attempts: AttemptPair, attempt: Attempt, info: RequestInfo): void {
    const { clock, isAggregated } = this.#parts;
    if (attempt.sinceSent(clock.now()) < requestLimits.foreignHedgeMs) return;
    if (isRepeatable(context) && context.kind === "plain" && isAggregated(info))
      this.#hedgeSlow(attempts, attempt);
  }

  #hedgeSlow(attempts: AttemptPair, slow: Attempt): void {
    const other = attempts.hasTwo ? undefined : this.otherThan(attempts.asked, attempts.trust);
    if (other === undefined || !this.#slowBudget.take()) return;
    this.#count(slow);
    attempts.hedge(other).dial(this.#parts.pools);
  }

  #count({ backend }: Attempt): void {
    this.counts.of(backend, "hedge").add(1);
  }

  /**
   * Sends the request again on another connection to the same backend. If that connection is silent, too, sends the
   * request to another backend, because with a wrong path MTU all connections to one backend lose the same response.
   */
  #askTwice(attempts: AttemptPair, attempt: Attempt): void {
    const isSuspect = this.#parts.backends.stateOf(attempt.backend) === "suspect";
    // Another connection to the same backend comes first: the client has read this backend's cache already (k/k 59848).
    const prompt = isSuspect ? undefined : this.#parts.pools.promptConnection(attempt.backend, attempt.key);
    const mayMove = prompt === undefined || attempts.hasTwo;
    const another = mayMove ? this.otherThan(attempts.asked, attempts.trust) : undefined;
    const own = another === undefined ? prompt : undefined;
    // If there is no other backend, a new connection to this one may work: perhaps only its present connections are
    // silent.
    const backend = another ?? (isSuspect ? undefined : attempt.backend);
    if (backend === undefined || !this.#budget.take()) return;
    this.#count(attempt);
    const hedge = attempts.hedge(backend);
    if (own === undefined) hedge.dial(this.#parts.pools);
    else hedge.ready(own);
  }
}
