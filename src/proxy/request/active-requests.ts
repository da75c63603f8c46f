/** The active exchanges (requests with their responses), for the drain and observers, and counts of ended ones. */
import { Histogram, LatencyCounts, requestBounds } from "../../base/histogram.ts";
import type { Kind } from "../../kube/request-info.ts";
import type { Client } from "../../upstream/context/client.ts";
import { isSafe } from "../../upstream/context/request-context.ts";
import { BackendCount, BackendCounts } from "../../upstream/pool/backend-counts.ts";
import type { WatchTally } from "../../watch/session/session-progress.ts";
import { type AccessLogger, endTrace } from "./access-log.ts";
import type { Exchange, ExchangeEnd } from "./exchange.ts";
import { requestLimits } from "./limits.ts";

/** All other verbs share the metric label "other". Otherwise clients could create any number of label values (A54). */
const verbs = new Set(
  "get list watch create update patch delete deletecollection proxy head post put options".split(" "),
);

export type RequestCount = {
  readonly verb: string;
  readonly code: number;
  readonly backend: string;
  readonly count: number;
};

export type WatchCounts = {
  /** Number of events, by the backend that sent them. Removed backends are summed under "other". */
  readonly events: ReadonlyMap<string, number>;
  readonly bytes: number;
  /** Number of events that were older than an event that the same backend had delivered before (incident 001). */
  readonly versionRegressions: number;
  /** Number of watches by state. Watches that are undecodable or unanswered count as opaque. */
  readonly states: ReadonlyMap<string, number>;
};

export type LiveRequests = Pick<ActiveRequests, "size" | "live">;

/** Returns the buffered bytes of one exchange. After the exchange's end, its head no longer counts (A26). */
export function heldBytesOf({ queuedBytes, headBytes, isEnded }: Exchange): number {
  return queuedBytes + (isEnded ? 0 : headBytes);
}

/** `#sweep` runs when this many ended exchanges have unread bytes, and again each time their number has doubled. */
const sweptSize = 64;

export class ActiveRequests {
  /**
   * An array and not a Set, because a Set that is filled and emptied all the time keeps the memory of its old entries
   * (h2/session/stream-table.ts).
   */
  readonly #live: Exchange[] = [];
  /** Ended exchanges whose clients have not read the whole response. The buffer limiter may cut them. */
  readonly #unread = new Set<Exchange>();
  #sweepAt = sweptSize;
  readonly #ends: Record<ExchangeEnd, number> = {
    complete: 0,
    client_gone: 0,
    backend_gone: 0,
    refused: 0,
  };
  /** By verb: durations in seconds of requests that are neither watches nor long-running. */
  readonly durations = new Map<string, Histogram>();
  /**
   * The verb of the request that was measured last, and its histogram. Most requests have the same verb as the previous
   * one.
   */
  #lastVerb = "";
  #lastDurations: Histogram | undefined;
  /** By backend: response times of completely answered requests that are neither watches nor long-running. */
  readonly latencies = new Map<string, LatencyCounts>();
  /** Clients that caused much work with short requests since the last `takeBusy`. */
  #busy = new Set<Client>();
  #onEnd: AccessLogger | undefined;
  /** Number of ended requests, by backend and by key: the verb and the status code. */
  readonly #counts = new BackendCounts<`${string} ${number}`>();
  /** The request that was counted last. Most requests have the labels of the previous one, and need no lookup. */
  readonly #last = { verb: "", status: -1, count: new BackendCount<string>("", "") };
  /**
   * The latencies that were recorded last, and their backend. Most requests end at the same backend as the previous
   * request.
   */
  #lastLatencies = new LatencyCounts();
  #lastBackend = "";
  readonly #active: Record<Kind, number> = { plain: 0, watch: 0, "long-running": 0 };
  readonly #watches: WatchTally = {
    events: new BackendCounts(),
    bytes: 0,
    versionRegressions: 0,
    phases: { opening: 0, listing: 0, live: 0, opaque: 0, ended: 0 },
  };

  constructor(onEnd?: AccessLogger) {
    this.#onEnd = onEnd;
  }

  /** Sets the logger for requests that end from now on; undefined: none. */
  logWith(onEnd: AccessLogger | undefined): void {
    this.#onEnd = onEnd;
  }

  /** Adds the counts of removed backends to "other", and drops their latencies. */
  reconcile(backends: readonly string[]): void {
    this.#watches.events.reconcile(backends);
    this.#counts.reconcile(backends);
    // Forgets the latest counter: a backend that is removed and added again gets a new one.
    this.#last.status = -1;
    for (const backend of this.latencies.keys())
      if (!backends.includes(backend)) this.latencies.delete(backend);
    this.#lastBackend = "";
    this.#lastLatencies = new LatencyCounts();
  }

  add(exchange: Exchange): void {
    const { caller, at, verb } = exchange.context;
    caller.began(at, verb);
    exchange.index = this.#live.push(exchange) - 1;
    this.#active[exchange.context.kind] += 1;
    if (exchange.context.kind === "watch") exchange.tally = this.#watches;
  }

  remove(exchange: Exchange, end: ExchangeEnd, now: number): void {
    if (exchange.context.kind === "plain") this.#took(exchange, end, now);
    this.#work(exchange);
    this.#charge(exchange, end);
    this.#forget(exchange);
    if (exchange.queuedBytes > 0) this.#keepUnread(exchange);
    this.#ends[end] += 1;
    this.#onEnd?.(exchange, end, now);
    if (exchange.attempts.trace !== undefined) endTrace(exchange, end, now);
    exchange.tally = undefined;
    exchange.watch?.progress.countOut();
    this.#count(exchange);
  }

  /**
   * Adds the work of a finished request to its client's sum. The bytes of the response were added when they were sent
   * (exchange.ts).
   */
  #work({ context }: Exchange): void {
    const bytes = isSafe(context) ? requestLimits.requestWorkBytes : requestLimits.writeWorkBytes;
    if (context.client.work.add(bytes) < requestLimits.busyBytes) return;
    if (this.#busy.size < requestLimits.busyClients) this.#busy.add(context.client);
  }

  /** Returns the clients that caused much work since the last call. */
  takeBusy(): ReadonlySet<Client> {
    const busy = this.#busy;
    if (busy.size > 0) this.#busy = new Set();
    return busy;
  }

  /**
   * Counts the request's end in its caller's entry in the ledger (src/ops/ledger). A request that got no status counts as
   * an error, unless the client itself ended it.
   */
  #charge({ context, sentBytes, status }: Exchange, end: ExchangeEnd): void {
    context.caller.ended(sentBytes, status >= 400 || (status === 0 && end !== "client_gone"));
  }

  /**
   * Measures only requests that are neither watches nor long-running, because those last as long as their clients want.
   */
  #took({ backend, context: { verb, at, auditId } }: Exchange, end: ExchangeEnd, now: number): void {
    if (end === "complete") this.#latenciesOf(backend).add(now - at);
    if (verb !== this.#lastVerb) {
      this.#lastVerb = verb;
      this.#lastDurations = this.#durationsOf(verbs.has(verb) ? verb : "other");
    }
    this.#lastDurations?.observe((now - at) / 1000, auditId, now);
  }

  #durationsOf(verb: string): Histogram {
    const histogram = this.durations.get(verb) ?? new Histogram(requestBounds);
    this.durations.set(verb, histogram);
    return histogram;
  }

  #latenciesOf(backend: string): LatencyCounts {
    if (this.#lastBackend === backend) return this.#lastLatencies;
    const counts = this.latencies.get(backend) ?? new LatencyCounts();
    this.latencies.set(backend, counts);
    this.#lastBackend = backend;
    this.#lastLatencies = counts;
    return counts;
  }

  /** Removes an exchange in constant time: the last exchange of the array takes the index of the removed one. */
  #forget(exchange: Exchange): void {
    this.#active[exchange.context.kind] -= 1;
    const last = this.#live.pop();
    if (last === undefined || last === exchange) return;
    this.#live[exchange.index] = last;
    last.index = exchange.index;
  }

  #count({ status, backend, context: { verb } }: Exchange): void {
    const last = this.#last;
    if (last.status !== status || last.count.backend !== backend || last.verb !== verb) {
      last.verb = verb;
      last.status = status;
      last.count = this.#countOf(verbs.has(verb) ? verb : "other", status, backend);
    }
    last.count.add(1);
  }

  /**
   * A backend may send any three-digit code. Once 500 combinations of verb, code and backend are counted, further
   * requests are counted under the class of their code only, such as 400 for 422.
   */
  #countOf(verb: string, status: number, backend: string): BackendCount {
    const code = this.#counts.size < 500 ? status : Math.floor(status / 100) * 100;
    return this.#counts.of(backend, `${verb} ${code}`);
  }

  /**
   * Keeps an ended exchange whose client has not read everything yet, so that `holders` still counts its bytes. Nothing
   * reports that a client has read the last byte, so `#sweep` removes exchanges that hold no bytes any more.
   */
  #keepUnread(exchange: Exchange): void {
    this.#unread.add(exchange);
    if (this.#unread.size >= this.#sweepAt) this.#sweep();
  }

  #sweep(): void {
    for (const exchange of this.#unread) if (exchange.queuedBytes === 0) this.#unread.delete(exchange);
    this.#sweepAt = Math.max(sweptSize, 2 * this.#unread.size);
  }

  /** The exchanges that hold bytes, those with the most bytes first. */
  get holders(): readonly Exchange[] {
    this.#sweep();
    return [...this.#live, ...this.#unread]
      .filter((exchange) => heldBytesOf(exchange) > 0)
      .toSorted((a, b) => heldBytesOf(b) - heldBytesOf(a));
  }

  get size(): number {
    return this.#live.length;
  }

  /** Returns a copy, because exchanges may end while the caller iterates. */
  get live(): readonly Exchange[] {
    return [...this.#live];
  }

  get counts(): readonly RequestCount[] {
    return this.#counts.all.map(({ backend, key, count }) => {
      const [verb = "", code] = key.split(" ");
      return { verb, code: Number(code), backend, count };
    });
  }

  get ends(): Readonly<Record<ExchangeEnd, number>> {
    return this.#ends;
  }

  get watched(): WatchCounts {
    const { events, bytes, versionRegressions, phases } = this.#watches;
    let unread = this.#active.watch;
    for (const count of Object.values(phases)) unread -= count;
    const all = Object.entries({ ...phases, opaque: phases.opaque + unread });
    return {
      events: new Map(events.all.map(({ backend, count }) => [backend, count])),
      bytes,
      versionRegressions,
      states: new Map(all.filter(([, count]) => count > 0)),
    };
  }

  active(kind: Kind): number {
    return this.#active[kind];
  }
}
