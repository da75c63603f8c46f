/**
 * The path of requests between a listener and the backends of one cluster: health, upstream connections, trust and the
 * request handler. The options supply sockets and time: real ones in main.ts, virtual ones in tests and the simulation.
 */
import type { Clock } from "../../base/clock.ts";
import { Histogram, rttBounds } from "../../base/histogram.ts";
import { inSlices } from "../../base/slices.ts";
import { guarded } from "../../events/guarded-clock.ts";
import type { Journal } from "../../events/journal.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import { FlushScheduler } from "../../h2/core/flush-scheduler.ts";
import { type BackendView, isSilent } from "../../health/backend.ts";
import { Backends, unprobed } from "../../health/backends.ts";
import { healthLimits } from "../../health/limits.ts";
import {
  type Probe,
  type ProbeCounts,
  type ProberParts,
  Probers,
  type ProbeTimes,
} from "../../health/prober.ts";
import { StallAwareClock } from "../../health/stall-aware-clock.ts";
import { type OriginRules, Origins } from "../../kube/api-origin.ts";
import { CacheTracker } from "../../watch/cache/cache-progress.ts";
import { BookmarkRefresher } from "../../watch/detectors/bookmark-refresh.ts";
import { ForkedHistories } from "../../watch/detectors/forked-histories.ts";
import { HungWatchDetector } from "../../watch/detectors/hung-watch.ts";
import { InitialEvents } from "../../watch/detectors/initial-events.ts";
import { LaggingCacheDetector } from "../../watch/detectors/lagging-cache.ts";
import { OriginChecks } from "../../watch/detectors/origin-checks.ts";
import { Sentinels } from "../../watch/detectors/sentinels.ts";
import { StalledCacheDetector } from "../../watch/detectors/stalled-cache.ts";
import { Migrations } from "../../watch/migration/migrations.ts";
import { Admission } from "../admission/admission.ts";
import { Balance } from "../balance/balance.ts";
import type { AssertedTrust } from "../identity/asserted-identity.ts";
import { Trust, type TrustClass } from "../identity/trust.ts";
import type { Wire, WireOwner } from "../net/wire.ts";
import { LedgerTap } from "../observe/ledger-tap.ts";
import { Overhead } from "../observe/overhead.ts";
import { ReplayLoopDetector } from "../observe/replay-loop-detector.ts";
import { type GuardMode, StaleReadGuard } from "../observe/stale-read-guard.ts";
import type { BufferLimiter } from "../overload/buffer-limiter.ts";
import { type AccessLogger, type AccessLogLevel, accessLogger } from "../request/access-log.ts";
import { ActiveRequests } from "../request/active-requests.ts";
import type { Exchange } from "../request/exchange.ts";
import { createHandler, type RequestHandler } from "../request/handler.ts";
import { Hedges } from "../request/hedge.ts";
import { MissingApis } from "../request/missing-apis.ts";
import { PendingQueue } from "../request/pending-queue.ts";
import { ConnectionPool, type PoolSettings } from "../upstream/connection-pool.ts";
import type { KeepaliveTimes } from "../upstream/keepalive.ts";
import { PoolSet } from "../upstream/pool-set.ts";
import { SlowStart } from "../upstream/slow-start.ts";

/** The settings that a reload may change. */
export type PathSettings = OriginRules & {
  /** Default: true. */
  readonly alwaysRequestBookmarks?: boolean;
  /** Default: "Observe". */
  readonly staleReadGuard?: GuardMode;
  /** Which requests are journaled when they end; default: "None". */
  readonly accessLog?: AccessLogLevel;
  readonly ping: KeepaliveTimes;
  readonly connections: Omit<PoolSettings, "ping">;
};

export type PathOptions = PathSettings & {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly connect: (backend: string, owner: WireOwner, trust: TrustClass) => Wire;
  readonly asserted?: readonly AssertedTrust[];
  readonly isPerClient: boolean;
  /** How backends are compared (D13): by one watch of each resource on two of them; "all" (default): also by lists. */
  readonly compares?: "all" | "watches" | "nothing";
  readonly bufferLimiter: BufferLimiter;
  /** Returns the version that a backend reports; default: "" for all. */
  readonly versionOf?: (backend: string) => string;
  /** How backends are probed on new sockets. Without probes, a backend is dead once it has no upstream connection. */
  readonly probes?: Pick<ProberParts, "times" | "random"> & { readonly probe: Probe };
};

/** What the proxy has measured of one backend; times in ms. */
export type BackendMeasurements = {
  readonly pingP99Ms: number;
  readonly suspectMs: number;
  /** Seconds that each answered PING took; undefined: the backend has been removed. */
  readonly pings: Histogram | undefined;
  readonly probes: ProbeCounts;
  readonly isDrained: boolean;
  /** The apiserver version that the backend reports, such as "v1.36.1"; "": unknown. */
  readonly version: string;
};

type PeriodicDetector = { start(): void; stop(): void };

type Base = Pick<
  DataPath,
  "clock" | "journal" | "buffered" | "caches" | "exchanges" | "pending" | "backends" | "pools"
>;

const noProbes: ProbeCounts = { answers: 0, failures: 0, lastMs: 0, durations: new Histogram(rttBounds) };
const defaultMode: GuardMode = "Observe";
const probed = { rise: healthLimits.riseAnswers, needsProof: true };

export class DataPath {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly turn: FlushScheduler;
  readonly buffered: Buffered;
  readonly exchanges: ActiveRequests;
  readonly admission: Admission;
  readonly backends: Backends;
  readonly pools: PoolSet;
  readonly hedges: Hedges;
  readonly overhead: Overhead;
  readonly pending: PendingQueue;
  readonly probers: Probers | undefined;
  readonly migrations: Migrations;
  readonly handle: RequestHandler;
  readonly staleReadGuard: StaleReadGuard;
  readonly origins: Origins;
  readonly ledgerTap: LedgerTap;
  readonly caches = new CacheTracker();
  readonly refresher: BookmarkRefresher;
  readonly sentinels: Sentinels;
  readonly #stallAwareClock: StallAwareClock;
  readonly #histories: ForkedHistories | undefined;
  readonly #detectors: readonly PeriodicDetector[];
  readonly #slowStart: SlowStart;
  readonly #originChecks: OriginChecks;
  readonly #versionOf: (backend: string) => string;
  readonly #leaveBufferLimiter: () => void;
  #settings: PathSettings;
  #probeTimes: ProbeTimes | undefined;

  constructor(options: PathOptions) {
    const { journal, bufferLimiter, probes, compares = "all", staleReadGuard: mode = defaultMode } = options;
    this.#settings = options;
    this.#probeTimes = probes?.times;
    const clock = guarded(options.clock, journal);
    const stallAwareClock = new StallAwareClock(clock);
    const exchanges = new ActiveRequests(accessLoggerFor(options, journal));
    const pending = new PendingQueue(stallAwareClock);
    const slowStart = new SlowStart(clock);
    const backends = this.#createBackends(options, { clock, stallAwareClock });
    const pools = this.#createPoolSet(options, clock, slowStart);
    const [{ caches }, { buffered }] = [this, bufferLimiter];
    const base = { clock, stallAwareClock, journal, buffered, caches, exchanges, pending, backends, pools };
    const migrations = new Migrations({
      ...base,
      refresher: { refused: (watch) => this.refresher.refused(watch) },
      initialEvents: new InitialEvents(base),
    });
    const watched = { ...base, migrations, refresher: new BookmarkRefresher({ ...base, migrations }) };
    this.clock = clock;
    this.#stallAwareClock = stallAwareClock;
    this.journal = journal;
    this.turn = new FlushScheduler(clock);
    this.overhead = new Overhead(clock, this.turn);
    this.buffered = buffered;
    this.exchanges = exchanges;
    this.pending = pending;
    this.backends = backends;
    this.pools = pools;
    this.#slowStart = slowStart;
    this.#versionOf = options.versionOf ?? (() => "");
    this.migrations = migrations;
    this.refresher = watched.refresher;
    this.sentinels = new Sentinels(watched);
    this.#histories = compares === "all" ? new ForkedHistories(watched) : undefined;
    this.#detectors = this.#createDetectors(compares);
    this.probers = probes && new Probers((name) => this.#proberOf(name, clock, probes));
    this.admission = new Admission(stallAwareClock);
    this.hedges = this.#createHedges();
    this.origins = new Origins(options);
    this.staleReadGuard = new StaleReadGuard({ clock, journal, origins: this.origins, mode });
    this.ledgerTap = new LedgerTap(clock, journal);
    this.#leaveBufferLimiter = bufferLimiter.add({ exchanges, journal });
    this.#originChecks = new OriginChecks({ ...base, origins: this.origins });
    this.handle = this.#createHandler(base);
  }

  #createBackends(options: PathOptions, clocks: { clock: Clock; stallAwareClock: Clock }): Backends {
    const { journal, probes, ping } = options;
    return new Backends([], {
      ...clocks,
      journal,
      rules: probes ? probed : unprobed,
      deadAfterWhenAllSilentMs: ping.deadAfterWhenAllSilentMs,
      onVerdict: (view) => this.#judged(view),
      onNeed: (name, isNeeded) => this.pools.poolOf(name)?.judged(isNeeded),
      onAnswer: () => this.pending.release(),
    });
  }

  #createPoolSet(options: PathOptions, clock: Clock, slowStart: SlowStart): PoolSet {
    return new PoolSet({
      poolFor: (backend) => this.#createPool(backend, clock, options),
      isPerClient: options.isPerClient,
      shareOf: (name) => slowStart.shareOf(name),
    });
  }

  #createPool(backend: string, clock: Clock, options: PathOptions): ConnectionPool {
    const { connect, asserted = [] } = options;
    const { connections, ping } = this.#settings;
    const { turn, buffered, journal, backends } = this;
    return new ConnectionPool({
      ...connections,
      backend,
      stallAwareClock: this.#stallAwareClock,
      clock,
      turn,
      buffered,
      journal,
      ping,
      learn: (evidence) => {
        backends.learn(backend, evidence);
        // If all its connections are silent or lost, the backend is probed at once.
        if (isSilent(backends.factsOf(backend))) this.probers?.of(backend)?.probeNow();
      },
      probeLargePackets: () => this.probers?.of(backend)?.probeLargePackets(),
      facts: () => backends.factsOf(backend),
      othersAnsweredAt: () => this.#othersAnsweredAt(backend),
      silenceOverAt: () => backends.silenceOverAt,
      connect: (owner, of) => connect(backend, owner, of),
      asserted,
    });
  }

  #createHedges(): Hedges {
    const { clock, backends, pools } = this;
    return new Hedges({
      clock,
      backends,
      pools,
      expediteProbe: (name) => this.probers?.of(name)?.expediteProbe(),
      learn: (name, evidence) => backends.learn(name, evidence),
    });
  }

  #createDetectors(compares: PathOptions["compares"]): readonly PeriodicDetector[] {
    const { clock, journal, caches, exchanges, migrations, refresher } = this;
    return [
      ...(compares === "nothing" ? [] : [this.sentinels]),
      ...(this.#histories === undefined ? [] : [this.#histories]),
      this.#stallAwareClock,
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

  #proberOf(
    name: string,
    clock: Clock,
    { probe, times, random }: NonNullable<PathOptions["probes"]>,
  ): ProberParts {
    const { backends, pools } = this;
    return {
      clock,
      times: this.#probeTimes ?? times,
      random,
      probe: (ear) => probe(name, ear),
      facts: () => backends.factsOf(name),
      learn: (evidence) => {
        backends.learn(name, evidence);
        if (evidence.kind === "fresh" && evidence.met === "answer")
          pools.poolOf(name)?.redialStuck(evidence.ms);
      },
      dialMs: () =>
        Math.max(healthLimits.probeDialMs, 2 * (pools.poolOf(name)?.deadlines.suspectAfterMs ?? 0)),
      mayLoseLargePackets: () => pools.poolOf(name)?.health.mayLoseLargePackets === true,
      passesSmallPackets: (since) => pools.poolOf(name)?.health.passesSmallPackets(since) === true,
    };
  }

  #createHandler(base: Base): RequestHandler {
    const { migrations, origins, hedges, overhead, probers, admission, staleReadGuard, ledgerTap } = this;
    const { clock, journal } = base;
    return createHandler({
      ...base,
      trust: new Trust(clock),
      migrations,
      origins,
      hedges,
      overhead,
      missingApis: new MissingApis(clock, journal),
      probers,
      admission,
      staleReadGuard,
      ledgerTap,
      replays: new ReplayLoopDetector(clock, journal),
      originChecks: this.#originChecks,
      alwaysRequestBookmarks: () => this.#settings.alwaysRequestBookmarks ?? true,
    });
  }

  /** Applies other settings at once. Health states, connections and open requests stay. */
  configure(settings: PathSettings, probeTimes: ProbeTimes): void {
    const { ping, connections, staleReadGuard = defaultMode } = settings;
    this.#settings = settings;
    this.#probeTimes = probeTimes;
    this.exchanges.logWith(accessLoggerFor(settings, this.journal));
    this.staleReadGuard.mode = staleReadGuard;
    this.#originChecks.configure(settings);
    this.backends.deadAfterWhenAllSilentMs = ping.deadAfterWhenAllSilentMs;
    this.pools.configure({ ...connections, ping });
    this.probers?.configure(probeTimes);
  }

  /** Adds and removes backends. Nothing changes for backends that stay. */
  reconcile(names: readonly string[]): void {
    this.#slowStart.reconcile(names);
    this.backends.reconcile(names);
    this.pools.reconcile(names);
    this.caches.reconcile(names);
    this.probers?.reconcile(names);
    this.exchanges.reconcile(names);
    this.pending.release();
    for (const detector of this.#detectors)
      if (names.length > 0) detector.start();
      else detector.stop();
  }

  /** Ends all requests and connections, as the process ends. */
  close(): void {
    for (const exchange of this.exchanges.live) exchange.cut();
    this.#closeRest();
  }

  /** Ends a removed cluster while others are served: in slices, because ending 50,000 watches takes 0.6 s. */
  closeInSlices(): void {
    inSlices(this.clock, this.exchanges.live, cutLive, () => this.#closeRest());
  }

  #closeRest(): void {
    this.reconcile([]);
    // These exchanges have ended, but slow clients have not read all of their responses.
    for (const exchange of this.exchanges.holders) exchange.cut();
    this.#leaveBufferLimiter();
  }

  /** Called when a backend's health state has changed. */
  #judged({ name, state }: BackendView): void {
    const { pools } = this;
    if (state === "ready") this.#histories?.returned(name);
    if (this.#slowStart.judged({ name, state })) this.refresher.returned(name);
    if (state === "dead") {
      pools.poolOf(name)?.abandon();
      // When this backend comes back, its watch caches are new.
      this.caches.forget(name);
    }
    if (state === "draining") pools.leave(name);
    if (state !== "dead") this.pending.release();
  }

  /** Returns when (clock reading) the proxy sent the latest PING or probe that another backend has answered. */
  #othersAnsweredAt(name: string): number {
    let latest = 0;
    for (const [other, { shards }] of this.pools.all) {
      if (other === name) continue;
      latest = Math.max(latest, this.backends.factsOf(other).answeredAt);
      for (const connection of shards.flatMap(({ connections }) => connections))
        latest = Math.max(latest, connection.answeredPingAt);
    }
    return latest;
  }

  #shares(): ReadonlyMap<string, number> {
    const ready = this.backends.views.filter(({ state }) => state === "ready");
    return new Map(ready.map(({ name }) => [name, this.#slowStart.shareOf(name)]));
  }

  measurementsOf(name: string): BackendMeasurements {
    return {
      pingP99Ms: this.pools.poolOf(name)?.rtt.quantile(0.99) ?? 0,
      suspectMs: this.backends.suspectMs(name),
      isDrained: this.backends.factsOf(name).isDrained,
      version: this.#versionOf(name),
      pings: this.pools.poolOf(name)?.pings,
      probes: this.probers?.of(name)?.counts ?? noProbes,
    };
  }
}

function accessLoggerFor({ accessLog = "None" }: PathSettings, journal: Journal): AccessLogger | undefined {
  return accessLogger(accessLog, journal);
}

function cutLive(exchange: Exchange): void {
  if (!exchange.isEnded) exchange.cut();
}
