/**
 * Wires everything between a listener and the backends: health, upstream connections, trust and the request handler. The
 * given parts decide where it runs: with real sockets and time (main.ts), or virtual ones (tests and the simulation).
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { inSlices } from "../../base/slices.ts";
import { guarded } from "../../events/guarded-clock.ts";
import type { Journal } from "../../events/journal.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import { FlushScheduler } from "../../h2/core/flush-scheduler.ts";
import { type BackendFacts, type BackendView, isSilent } from "../../health/backend.ts";
import { Backends, unprobed } from "../../health/backends.ts";
import type { ProbeCounts } from "../../health/prober.ts";
import { Probers, type ProbersParts } from "../../health/probers.ts";
import { StallAwareClock } from "../../health/stall-aware-clock.ts";
import { type OriginRules, Origins } from "../../kube/api-origin.ts";
import { CacheTracker } from "../../watch/cache/cache-progress.ts";
import { BookmarkRefresher } from "../../watch/detectors/bookmark-refresh.ts";
import { Histories } from "../../watch/detectors/histories.ts";
import { HungWatchDetector } from "../../watch/detectors/hung-watch.ts";
import { LaggingCacheDetector } from "../../watch/detectors/lagging-cache.ts";
import { OriginChecks } from "../../watch/detectors/origin-checks.ts";
import { Sentinels } from "../../watch/detectors/sentinels.ts";
import { StalledCacheDetector } from "../../watch/detectors/stalled-cache.ts";
import { Migrations } from "../../watch/migration/migrations.ts";
import { Admission } from "../admission/admission.ts";
import { Balance } from "../balance/balance.ts";
import type { VouchedTrust } from "../identity/client-identity.ts";
import { Trust, type TrustClass } from "../identity/trust.ts";
import type { Wire, WireOwner } from "../net/wire.ts";
import { Talk } from "../observe/ledger-tap.ts";
import { ReplayLoopDetector } from "../observe/replay-loop-detector.ts";
import { type GuardMode, StaleReadGuard } from "../observe/stale-read-guard.ts";
import type { BufferLimiter } from "../overload/buffer-limiter.ts";
import { type AccessLogLevel, accessLogger } from "../request/access-log.ts";
import { ActiveRequests } from "../request/active-requests.ts";
import type { Exchange } from "../request/exchange.ts";
import { createHandler, type RequestHandler } from "../request/handler.ts";
import { Hedges } from "../request/hedge.ts";
import { PendingQueue } from "../request/pending-queue.ts";
import { ConnectionPool, type ConnectionPoolOptions } from "../upstream/connection-pool.ts";
import type { KeepaliveTimes } from "../upstream/keepalive.ts";
import { PoolSet } from "../upstream/pool-set.ts";
import { SlowStart } from "../upstream/slow-start.ts";

export type PathOptions = OriginRules & {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Opens a connection to a backend, by its name. */
  readonly connect: (backend: string, owner: WireOwner, trust: TrustClass) => Wire;
  /** The trust classes for which the proxy has its own credential. */
  readonly vouched?: readonly VouchedTrust[];
  readonly connections: { readonly streams: number; readonly warm: number };
  readonly isPerClient: boolean;
  /** Default: true. */
  readonly alwaysRequestBookmarks?: boolean;
  /** How backends are compared (D13): by one watch of each resource on two of them, and by lists; default: "all". */
  readonly compares?: "all" | "watches" | "nothing";
  /** Default: "Observe". */
  readonly staleReadGuard?: GuardMode;
  /** Which requests are logged when they end; default: "None". */
  readonly accessLog?: AccessLogLevel;
  /** Bounds the octets that wait in this process. */
  readonly bufferLimiter: BufferLimiter;
  readonly ping: KeepaliveTimes;
  /** How backends are probed on fresh sockets. Undefined: no probes, and the loss of all upstream connections means dead. */
  readonly probes?: Pick<ProbersParts, "probe" | "times" | "random">;
};

/** Of one backend; times in ms. */
export type Detectors = {
  readonly pingP99Ms: number;
  readonly suspectMs: number;
  readonly probes: ProbeCounts;
  /** True if an operator drained the backend. */
  readonly isDrained: boolean;
};

const probed = { ...unprobed, rise: limits.riseAnswers, needsProof: true };

export class Path {
  readonly clock: Clock;
  /** The same clock without the time in which the proxy's own event loop stood still. */
  readonly stallAwareClock: StallAwareClock;
  readonly journal: Journal;
  readonly turn: FlushScheduler;
  readonly buffered: Buffered;
  readonly exchanges = new ActiveRequests();
  readonly trust: Trust;
  readonly admission: Admission;
  readonly backends: Backends;
  readonly pools: PoolSet;
  readonly hedges: Hedges;
  readonly pending: PendingQueue;
  readonly probers: Probers | undefined;
  readonly migrations: Migrations;
  readonly alwaysRequestBookmarks: boolean;
  readonly handle: RequestHandler;
  readonly staleReadGuard: StaleReadGuard;
  readonly origins: Origins;
  readonly originChecks: OriginChecks;
  readonly replays: ReplayLoopDetector;
  readonly talk: Talk;
  readonly caches = new CacheTracker();
  /** The detectors that check everything periodically. */
  readonly #rounds: readonly { start(): void; stop(): void }[];
  readonly #slowStart: SlowStart;
  readonly #leaveRelief: () => void;
  readonly refresher: BookmarkRefresher;
  readonly sentinels: Sentinels;
  readonly #histories: Histories | undefined;

  constructor(options: PathOptions) {
    const { journal, isPerClient } = options;
    const clock = guarded(options.clock, journal);
    this.stallAwareClock = new StallAwareClock(clock);
    const turn = new FlushScheduler(clock);
    const { buffered } = options.bufferLimiter;
    const trust = new Trust(clock);
    const backends = createBackends(options, { clock, stallAwareClock: this.stallAwareClock }, () =>
      this.pending.release(),
    );
    const slowStart = new SlowStart(clock);
    const pools = new PoolSet({
      poolFor: (backend) => this.#poolFor(backend, clock, options),
      isPerClient,
      shareOf: (name) => slowStart.shareOf(name),
    });
    this.clock = clock;
    this.journal = journal;
    this.turn = turn;
    this.buffered = buffered;
    this.#leaveRelief = options.bufferLimiter.add(this);
    this.trust = trust;
    this.admission = new Admission(this.stallAwareClock);
    this.backends = backends;
    this.pools = pools;
    this.pending = new PendingQueue(this.stallAwareClock);
    this.hedges = this.#createHedges();
    this.alwaysRequestBookmarks = options.alwaysRequestBookmarks ?? true;
    this.#slowStart = slowStart;
    this.migrations = new Migrations(this);
    this.refresher = new BookmarkRefresher(this);
    this.sentinels = new Sentinels(this);
    const { compares = "all" } = options;
    this.#histories = compares === "all" ? new Histories(this) : undefined;
    this.#rounds = this.#createRounds(compares !== "nothing");
    backends.onVerdict = (view) => this.#judged(view);
    backends.onNeed = (name, isNeeded) => pools.poolOf(name)?.judged(isNeeded);
    this.probers = options.probes && this.#createProbers(options.probes);
    this.origins = new Origins(options);
    this.originChecks = new OriginChecks(this);
    const mode = options.staleReadGuard ?? "Observe";
    this.staleReadGuard = new StaleReadGuard({ clock, journal, origins: this.origins, mode });
    this.replays = new ReplayLoopDetector(clock, journal);
    this.talk = new Talk(clock, journal);
    this.exchanges.onEnd = accessLogger(options.accessLog ?? "None", journal);
    this.handle = createHandler(this);
  }

  #poolFor(backend: string, clock: Clock, options: PathOptions): ConnectionPool {
    const { connect, connections, ping, vouched = [] } = options;
    const { turn, buffered, journal, backends } = this;
    return new ConnectionPool({
      ...connections,
      backend,
      stallAwareClock: this.stallAwareClock,
      clock,
      turn,
      buffered,
      journal,
      ping,
      learn: (evidence) => {
        backends.learn(backend, evidence);
        // Probe at once if all connections are silent or lost, instead of at the next interval.
        if (isSilent(backends.held(backend))) this.probers?.probeNow(backend);
      },
      doubtLarge: () => this.probers?.doubtLarge(backend),
      known: () => knownOf(backends.held(backend)),
      othersAnsweredAt: () => this.#othersAnsweredAt(backend),
      silenceOverAt: () => backends.silenceOverAt,
      connect: (owner, of) => connect(backend, owner, of),
      vouched,
    });
  }

  #createHedges(): Hedges {
    const { clock, backends, pools } = this;
    return new Hedges({
      clock,
      backends,
      pools,
      expediteProbe: (name) => this.probers?.expediteProbe(name),
      learn: (name, evidence) => backends.learn(name, evidence),
    });
  }

  #createRounds(hasSentinels: boolean): readonly { start(): void; stop(): void }[] {
    const { clock, journal, caches, exchanges, migrations, refresher } = this;
    return [
      ...(hasSentinels ? [this.sentinels] : []),
      ...(this.#histories === undefined ? [] : [this.#histories]),
      this.stallAwareClock,
      new HungWatchDetector(clock, exchanges),
      new StalledCacheDetector({ clock, journal, caches, migrations, refresher }),
      new LaggingCacheDetector({
        clock,
        caches,
        migrations,
        afterMs: (name) => this.pools.poolOf(name)?.deadlines.suspectAfterMs,
      }),
      new Balance({ clock, exchanges, migrations, shares: () => this.#shares() }),
    ];
  }

  /** Adds and removes backends; those that stay are not touched. */
  reconcile(names: readonly string[]): void {
    this.#slowStart.reconcile(names);
    this.backends.reconcile(names);
    this.pools.reconcile(names);
    this.caches.reconcile(names);
    this.probers?.reconcile(names);
    this.exchanges.reconcile(names);
    this.pending.release();
    for (const rounds of this.#rounds)
      if (names.length > 0) rounds.start();
      else rounds.stop();
  }

  /** Ends everything that is left, because the process ends. */
  close(): void {
    for (const exchange of this.exchanges.live) exchange.cut();
    this.#closeRest();
  }

  /** The same for a cluster that is removed while others are served: ending 50,000 watches takes 0.6 s. */
  closeInSlices(): void {
    inSlices(this.clock, this.exchanges.live, cutLive, () => this.#closeRest());
  }

  #closeRest(): void {
    this.reconcile([]);
    // Responses that slow readers have not taken.
    for (const exchange of this.exchanges.holders) exchange.cut();
    this.#leaveRelief();
  }

  /** Acts on a verdict, in addition to what `pick` reads of it. */
  #judged({ name, state }: BackendView): void {
    const { pools } = this;
    if (state === "ready") this.#histories?.returned(name);
    if (this.#slowStart.judged({ name, state })) this.refresher.returned(name);
    if (state === "dead") {
      pools.poolOf(name)?.abandon();
      // A backend that comes back has another cache.
      this.caches.forget(name);
    }
    if (state === "draining") pools.leave(name);
    if (state !== "dead") this.pending.release();
  }

  /** When the latest PING or probe was sent that another backend has answered. */
  #othersAnsweredAt(name: string): number {
    let latest = 0;
    for (const [other, { shards: rows }] of this.pools.all) {
      if (other === name) continue;
      latest = Math.max(latest, this.backends.held(other).answeredAt);
      for (const connection of rows.flatMap(({ connections }) => connections))
        latest = Math.max(latest, connection.answeredPingAt);
    }
    return latest;
  }

  #shares(): ReadonlyMap<string, number> {
    const ready = this.backends.views.filter(({ state }) => state === "ready");
    return new Map(ready.map(({ name }) => [name, this.#slowStart.shareOf(name)]));
  }

  /** What the detectors of one backend have measured, for metrics. */
  detectors(name: string): Detectors {
    return {
      pingP99Ms: this.pools.poolOf(name)?.rtt.quantile(0.99) ?? 0,
      suspectMs: this.backends.suspectMs(name),
      isDrained: this.backends.held(name).isDrained,
      probes: this.probers?.all.get(name)?.counts ?? { answers: 0, failures: 0, lastMs: 0 },
    };
  }

  #createProbers(probes: Pick<ProbersParts, "probe" | "times" | "random">): Probers {
    const { clock, backends, pools } = this;
    return new Probers({
      ...probes,
      clock,
      backends,
      dialMs: (name) => {
        const suspectAfterMs = pools.poolOf(name)?.deadlines.suspectAfterMs ?? 0;
        return Math.max(limits.probeDialMs, 2 * suspectAfterMs);
      },
      mayLoseLarge: (name) => pools.poolOf(name)?.mayLoseLarge === true,
      passesSmall: (name, since) => pools.poolOf(name)?.passesSmall(since) === true,
      answered: (name, ms) => pools.poolOf(name)?.redialStuck(ms),
    });
  }
}

type Clocks = { readonly clock: Clock; readonly stallAwareClock: Clock };

function createBackends(options: PathOptions, clocks: Clocks, onAnswer: () => void): Backends {
  const { journal, probes, ping } = options;
  const rules = probes ? probed : unprobed;
  const backends = new Backends([], {
    ...clocks,
    journal,
    rules,
    deadAfterWhenAllSilentMs: ping.deadAfterWhenAllSilentMs,
  });
  backends.onAnswer = onAnswer;
  return backends;
}

function cutLive(exchange: Exchange): void {
  if (!exchange.isEnded) exchange.cut();
}

/** What connections must know of their backend before they dial it. */
function knownOf({
  fresh,
  isUntrusted,
  answersAgainAt,
}: BackendFacts): ReturnType<ConnectionPoolOptions["known"]> {
  return { isAnswering: fresh === "answer", isUntrusted, answersAgainAt };
}
