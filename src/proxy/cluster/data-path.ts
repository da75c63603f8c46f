/**
 * The path of requests between a listener and the backends of one cluster: health, upstream connections, trust and the
 * request handler. `#periodic` lists what runs at intervals; watch/detectors/detector-list.ts creates the detectors of
 * faulty watches. The options supply sockets and time: real ones in main.ts, virtual ones in tests and the simulation.
 */
import type { Clock } from "../../base/clock.ts";
import type { Failure } from "../../base/failure.ts";
import { Histogram, rttBounds } from "../../base/histogram.ts";
import { inSlices } from "../../base/slices.ts";
import { guarded } from "../../events/guarded-clock.ts";
import type { Journal } from "../../events/journal.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import { FlushScheduler } from "../../h2/core/flush-scheduler.ts";
import { type BackendFacts, type BackendView, isSilent } from "../../health/backend.ts";
import { Backends, unprobed } from "../../health/backends.ts";
import type { Evidence } from "../../health/evidence.ts";
import { healthLimits } from "../../health/limits.ts";
import {
  type Probe,
  type ProbeCounts,
  Prober,
  type ProberParts,
  Probers,
  type ProbeTimes,
} from "../../health/prober.ts";
import { StallAwareClock } from "../../health/stall-aware-clock.ts";
import { type OriginRules, Origins } from "../../kube/api-origin.ts";
import type { ShieldConfig } from "../../ops/config/cluster.ts";
import type { LimitConfig } from "../../ops/config/limit.ts";
import type { Client } from "../../upstream/context/client.ts";
import type { Asserted, AssertedTrust } from "../../upstream/identity/asserted-identity.ts";
import { isAsserted, Trust, type TrustClass } from "../../upstream/identity/trust.ts";
import type { Wire, WireOwner } from "../../upstream/net/wire.ts";
import { alike, BackendShares, type BackendTraits } from "../../upstream/pool/backend-shares.ts";
import { ConnectionPool, type PoolSettings } from "../../upstream/pool/connection-pool.ts";
import type { KeepaliveTimes } from "../../upstream/pool/keepalive.ts";
import { type Assertions, PoolSet } from "../../upstream/pool/pool-set.ts";
import { CacheTracker } from "../../watch/cache/cache-progress.ts";
import type { BackendDelay } from "../../watch/cache/write-delays.ts";
import { BookmarkRefresher } from "../../watch/detectors/bookmark-refresh.ts";
import {
  type Comparisons,
  type PeriodicDetector,
  WatchDetectors,
} from "../../watch/detectors/detector-list.ts";
import { InitialEvents } from "../../watch/detectors/initial-events.ts";
import { OriginChecks } from "../../watch/detectors/origin-checks.ts";
import { Migrations, type MigrationsParts } from "../../watch/migration/migrations.ts";
import { Admission } from "../admission/admission.ts";
import { Balance, type BalanceShares } from "../balance/balance.ts";
import type { Limit } from "../limits/limit.ts";
import type { OperatorLimits } from "../limits/operator-limits.ts";
import { RequestLimits } from "../limits/request-limits.ts";
import { type ShieldStatus, Shields, shieldOff } from "../limits/shields.ts";
import { BackendLoads, type LoadFacts } from "../load/backend-load.ts";
import { RequestObservers } from "../load/request-observer.ts";
import { type LedgerFact, LedgerTap } from "../observe/ledger-tap.ts";
import { Overhead } from "../observe/overhead.ts";
import { ReplayLoopDetector } from "../observe/replay-loop-detector.ts";
import { type GuardMode, StaleReadGuard } from "../observe/stale-read-guard.ts";
import { Tracer } from "../observe/tracer.ts";
import type { BufferLimiter } from "../overload/buffer-limiter.ts";
import { type AccessLogger, type AccessLogLevel, accessLogger } from "../request/access-log.ts";
import { ActiveRequests } from "../request/active-requests.ts";
import { AvoidedApis } from "../request/avoided-apis.ts";
import type { Exchange } from "../request/exchange.ts";
import { createHandler, limitsOfUpgrade, type RequestHandler } from "../request/handler.ts";
import { Hedges } from "../request/hedge.ts";
import { PendingQueue } from "../request/pending-queue.ts";
import { type RemoteJudge, remoteProber, type SharedEvidence, type Symptom } from "./shared-verdict.ts";

/** The settings that a reload may change. */
export type PathSettings = OriginRules & {
  /** True if the proxy requests bookmarks even if clients did not; default: true. */
  readonly alwaysRequestBookmarks?: boolean;
  /** Whether stale reads are ignored, reported or prevented; default: "Observe" (reported). */
  readonly staleReadGuard?: GuardMode;
  /** Which requests are journaled when they end; default: "None". */
  readonly accessLog?: AccessLogLevel;
  /** True if requests avoid a backend that cannot reach their API; default: true. */
  readonly avoidUnreachableAPIs?: boolean;
  /** The request limits in the configuration; default: none. */
  readonly limits?: readonly LimitConfig[];
  /** Settings of the shield, which limits lists at a backend that has just started or is overloaded; default: none. */
  readonly shield?: ShieldConfig;
  readonly ping: KeepaliveTimes;
  readonly connections: Omit<PoolSettings, "ping">;
};

export type PathOptions = PathSettings & {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly connect: (backend: string, owner: WireOwner, trust: TrustClass) => Wire;
  readonly asserted?: readonly AssertedTrust[];
  /** Which backends take the identities that the proxy asserts; default: all take all. */
  readonly assertions?: Assertions | undefined;
  readonly isPerClient: boolean;
  /**
   * Which results of backends are compared (D13). "watches": the events that sentinels get; a sentinel is a watch with
   * streams on two backends. "all" (default): these events, and lists. "nothing": neither.
   */
  readonly compares?: Comparisons;
  readonly bufferLimiter: BufferLimiter;
  /** Decides which requests are traced; default: no request is traced. */
  readonly tracer?: Tracer | undefined;
  /** The request limits that operators set at run time; default: none. */
  readonly operatorLimits?: OperatorLimits;
  /**
   * Returns what is configured about a backend; default: all backends have the same weight and are in the proxy's zone.
   */
  readonly traitsOf?: (backend: string) => BackendTraits;
  /** Returns a random number in [0, 1); default: 0. */
  readonly random?: () => number;
  /** Returns the version that a backend reports; default: "" for all. */
  readonly versionOf?: (backend: string) => string;
  /** How backends are probed on new sockets. Without probes, a backend is dead once it has no upstream connection. */
  readonly probes?: Pick<ProberParts, "times" | "random"> & { readonly probe: Probe };
  /** Set in a worker: the process that judges and probes the backends; default: this process. */
  readonly judge?: RemoteJudge | undefined;
  /**
   * Set in a worker: reports to the parent's ledger, which judges leader leases and relist storms for all processes.
   */
  readonly tellLedger?: ((fact: LedgerFact) => void) | undefined;
  /**
   * Set in a parent of workers: the evidence of all processes about the backends. Default: no other process has any.
   */
  readonly shared?: SharedEvidence | undefined;
};

/** What the proxy has measured of one backend; times in ms. */
export type BackendMeasurements = {
  /**
   * Ms since the oldest write that the backend's watches have not delivered yet; 0: they have delivered all writes;
   * undefined: the backend has no watch of a whole resource.
   */
  readonly watchLagMs: number | undefined;
  /**
   * The longest delay between a write and its event on the backend's watches. Counts writes whose event is still
   * missing, and writes whose event was delivered in the last 10 to 20 s.
   */
  readonly watchDelay: BackendDelay | undefined;
  /** Aggregated API groups whose server this backend cannot reach, although another backend can. */
  readonly unreachableApis: readonly string[];
  readonly pingP99Ms: number;
  readonly suspectMs: number;
  /** Round-trip times of PINGs in seconds; undefined: the backend has been removed. */
  readonly pings: Histogram | undefined;
  readonly probes: ProbeCounts;
  readonly load: LoadFacts & {
    /**
     * Sum of open streams, requests that wait for a connection, and `activity` (short requests, converted to streams).
     */
    readonly streams: number;
  };
  readonly isDrained: boolean;
  readonly shield: ShieldStatus;
  /** The apiserver version that the backend reports, such as "v1.36.1"; "": unknown. */
  readonly version: string;
};

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
  readonly loads: BackendLoads;
  readonly overhead: Overhead;
  readonly avoidedApis: AvoidedApis;
  readonly pending: PendingQueue;
  readonly probers: Probers | undefined;
  readonly migrations: Migrations;
  readonly handle: RequestHandler;
  readonly staleReadGuard: StaleReadGuard;
  readonly origins: Origins;
  readonly ledgerTap: LedgerTap;
  readonly limits: RequestLimits;
  readonly balance: Balance;
  readonly shields: Shields;
  readonly caches = new CacheTracker();
  readonly refresher: BookmarkRefresher;
  readonly #stallAwareClock: StallAwareClock;
  readonly detectors: WatchDetectors;
  readonly #periodic: readonly PeriodicDetector[];
  readonly #trust: Trust;
  readonly #shares: BackendShares;
  readonly #originChecks: OriginChecks;
  readonly #leaveBufferLimiter: () => void;
  readonly #options: Pick<PathOptions, "judge" | "shared" | "versionOf" | "assertions">;
  #settings: PathSettings;
  #probeTimes: ProbeTimes | undefined;

  constructor(options: PathOptions) {
    const { journal, bufferLimiter, probes, compares = "all", staleReadGuard: mode = defaultMode } = options;
    this.#settings = options;
    this.#options = options;
    this.#probeTimes = probes?.times;
    const clock = guarded(options.clock, journal);
    const stallAwareClock = new StallAwareClock(clock);
    const exchanges = new ActiveRequests(accessLoggerFor(options, journal));
    const pending = new PendingQueue(stallAwareClock);
    const backends = this.#createBackends(options, { clock, stallAwareClock });
    this.#shares = this.#createShares(options, clock);
    const pools = this.#createPoolSet(options, clock);
    const [{ caches }, { buffered }] = [this, bufferLimiter];
    const base = { clock, stallAwareClock, journal, buffered, caches, exchanges, pending, backends, pools };
    const migrations = this.#createMigrations(base);
    const watched = { ...base, migrations, refresher: new BookmarkRefresher({ ...base, migrations }) };
    this.clock = clock;
    this.loads = new BackendLoads(clock, (name) => this.#isWarm(name));
    this.avoidedApis = new AvoidedApis(clock, journal);
    this.avoidedApis.mayAvoid = options.avoidUnreachableAPIs ?? true;
    this.shields = new Shields({ clock: stallAwareClock, loads: this.loads }, options.shield);
    this.#stallAwareClock = stallAwareClock;
    this.journal = journal;
    this.turn = new FlushScheduler(clock);
    this.overhead = new Overhead(clock, this.turn);
    this.buffered = buffered;
    this.exchanges = exchanges;
    this.pending = pending;
    this.backends = backends;
    this.pools = pools;
    this.migrations = migrations;
    this.refresher = watched.refresher;
    this.detectors = new WatchDetectors({ ...watched, guard: () => this.staleReadGuard }, compares);
    this.balance = new Balance({ clock, exchanges, migrations, shares: this.#balanceShares() });
    this.#periodic = [this.detectors, stallAwareClock, this.loads, this.shields, this.balance];
    this.probers = this.#createProbers(options, clock);
    this.admission = new Admission(stallAwareClock);
    this.hedges = this.#createHedges();
    this.origins = new Origins(options);
    this.staleReadGuard = new StaleReadGuard({ clock, journal, origins: this.origins, mode });
    this.ledgerTap = new LedgerTap(clock, journal, options.tellLedger);
    this.#trust = new Trust(clock);
    this.limits = new RequestLimits({ clock, journal }, options.limits, options.operatorLimits);
    this.#leaveBufferLimiter = bufferLimiter.add({ exchanges, journal });
    this.#originChecks = new OriginChecks({ ...base, origins: this.origins });
    this.handle = this.#createHandler(base, options.tracer);
  }

  #createProbers({ judge, probes }: PathOptions, clock: Clock): Probers | undefined {
    if (judge !== undefined) return new Probers((name) => remoteProber(clock, judge, noProbes, name));
    return probes && new Probers((name) => new Prober(this.#proberOf(name, clock, probes)));
  }

  #createMigrations(base: Omit<MigrationsParts, "refresher" | "initialEvents" | "versionOf">): Migrations {
    return new Migrations({
      ...base,
      versionOf: (backend) => this.#options.versionOf?.(backend) ?? "",
      refresher: { refused: (watch) => this.refresher.refused(watch) },
      initialEvents: new InitialEvents(base),
    });
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
      report: this.#options.judge?.report,
      onFacts:
        this.#options.shared &&
        ((name, facts, evidence) => this.#options.shared?.judged(name, facts, evidence)),
    });
  }

  #createShares(options: PathOptions, clock: Clock): BackendShares {
    return new BackendShares({
      clock,
      traitsOf: options.traitsOf ?? (() => alike),
      capacityOf: (name) => this.loads.capacity(name),
      isPaused: (name) => this.loads.isPaused(name),
      random: options.random ?? (() => 0),
    });
  }

  #createPoolSet(options: PathOptions, clock: Clock): PoolSet {
    return new PoolSet({
      poolFor: (backend) => this.#createPool(backend, clock, options),
      isPerClient: options.isPerClient,
      assertions: options.assertions,
      shares: this.#shares,
      activityOf: (name) => this.loads.of(name)?.activity ?? 0,
    });
  }

  #createPool(backend: string, clock: Clock, options: PathOptions): ConnectionPool {
    const { connect, asserted = [], assertions } = options;
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
        this.learn(backend, this.#options.shared ? this.#options.shared.merged(backend, evidence) : evidence);
      },
      unconnected: this.#onUnconnected(backend),
      probeLargePackets: () => this.probers?.of(backend)?.probeLargePackets(),
      facts: () => backends.factsOf(backend),
      othersAnsweredAt: () => this.#othersAnsweredAt(backend),
      silenceOverAt: () => backends.silenceOverAt,
      connect: (owner, of) => connect(backend, owner, of),
      mayCarry: assertions && ((trust) => !isAsserted(trust) || assertions.isProven(trust, backend)),
      asserted,
    });
  }

  /**
   * Records evidence about a backend; undefined: none. If all connections to the backend are silent or lost, probes it
   * at once.
   */
  learn(backend: string, evidence: Evidence | undefined): void {
    if (evidence === undefined) return;
    this.backends.learn(backend, evidence);
    if (evidence.kind === "history") this.detectors.histories?.checked(backend);
    if (isSilent(this.backends.factsOf(backend))) this.probers?.of(backend)?.probeNow();
  }

  /** Takes over the verdict about a backend from the process that judges it. */
  adopt(backend: string, facts: BackendFacts, evidence: Evidence): void {
    // If the backend was not ready, restarts dials that take much longer than the judging process's probe. Dials to a
    // ready backend go on: they may take long only because this process is busier than the judging process.
    const wasSilent = this.backends.stateOf(backend) !== "ready";
    this.backends.adopt(backend, facts, evidence);
    if (wasSilent) this.#redialAfter(backend, evidence);
    if (evidence.kind === "history") this.detectors.histories?.judged(backend, evidence);
  }

  /** Probes a backend at once, because a worker saw a symptom. */
  probe(backend: string, symptom: Symptom): void {
    const prober = this.probers?.of(backend);
    if (symptom === "failed") prober?.probeNow();
    else if (symptom === "slow") prober?.expediteProbe();
    else {
      this.#options.shared?.suspectLargePackets(backend, this.clock.now());
      prober?.probeLargePackets();
    }
  }

  #onUnconnected(backend: string): (() => void) | undefined {
    const { judge, shared } = this.#options;
    if (shared !== undefined) return () => this.learn(backend, shared.unconnected(backend));
    return (
      judge &&
      (() => {
        this.backends.unconnected(backend);
        judge.unconnected(backend);
      })
    );
  }

  #redialAfter(backend: string, evidence: Evidence): void {
    if (evidence.kind === "fresh" && evidence.met === "answer")
      this.pools.poolOf(backend)?.redialStuck(evidence.ms);
  }

  #createHedges(): Hedges {
    const { clock, backends, pools } = this;
    return new Hedges({
      clock,
      backends,
      pools,
      expediteProbe: (name) => this.probers?.of(name)?.expediteProbe(),
      learn: (name, evidence) => backends.learn(name, evidence),
      isAggregated: (info) => {
        const { isForeign, isKnown } = this.origins.of(info);
        return isForeign && isKnown;
      },
    });
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
        this.#redialAfter(name, evidence);
      },
      dialMs: () =>
        Math.max(healthLimits.probeDialMs, 2 * (pools.poolOf(name)?.deadlines.suspectAfterMs ?? 0)),
      mayLoseLargePackets: () =>
        pools.poolOf(name)?.mayLoseLargePackets === true ||
        this.#options.shared?.mayLoseLargePackets(name, clock.now()) === true,
      passesSmallPackets: (since) => pools.poolOf(name)?.passesSmallPackets(since) === true,
    };
  }

  #createHandler(base: Base, tracer = new Tracer(base.clock, { take() {} })): RequestHandler {
    const { migrations, origins, hedges, overhead, probers, admission, staleReadGuard, ledgerTap, limits } =
      this;
    const { clock, journal } = base;
    return createHandler({
      ...base,
      trust: this.#trust,
      migrations,
      origins,
      hedges,
      observers: new RequestObservers([this.loads, this.avoidedApis]),
      overhead,
      avoidedApis: this.avoidedApis,
      probers,
      admission,
      staleReadGuard,
      ledgerTap,
      tracer,
      limits,
      shields: this.shields,
      replays: new ReplayLoopDetector(clock, journal),
      originChecks: this.#originChecks,
      pathPrefix: () => this.#settings.connections.pathPrefix ?? "",
      alwaysRequestBookmarks: () => this.#settings.alwaysRequestBookmarks ?? true,
    });
  }

  /**
   * Checks an Upgrade against the request limits. Returns the limits that count the Upgrade until its response. If the
   * Upgrade exceeds a limit, returns the refusal instead.
   */
  limitsOfUpgrade(
    request: RequestHead,
    client: Client,
    asserted: Asserted | undefined,
  ): readonly Limit[] | Failure {
    const { clock, limits, ledgerTap } = this;
    return limitsOfUpgrade({ clock, limits, ledgerTap, trust: this.#trust }, request, client, asserted);
  }

  /** Applies changed settings immediately. Health states, connections and open requests stay. */
  configure(settings: PathSettings, probeTimes: ProbeTimes): void {
    const { ping, connections, staleReadGuard = defaultMode, avoidUnreachableAPIs = true } = settings;
    this.#settings = settings;
    this.#probeTimes = probeTimes;
    this.exchanges.logWith(accessLoggerFor(settings, this.journal));
    this.staleReadGuard.mode = staleReadGuard;
    this.avoidedApis.mayAvoid = avoidUnreachableAPIs;
    this.limits.configure(settings.limits ?? []);
    this.shields.configure(settings.shield ?? shieldOff);
    this.#originChecks.configure(settings);
    this.backends.deadAfterWhenAllSilentMs = ping.deadAfterWhenAllSilentMs;
    this.pools.configure({ ...connections, ping });
    this.probers?.configure(probeTimes);
  }

  /** Adds and removes backends. Nothing changes for backends that stay. */
  reconcile(names: readonly string[]): void {
    this.#shares.reconcile(names);
    this.backends.reconcile(names);
    this.#options.shared?.reconcile(names);
    this.loads.reconcile(names);
    this.avoidedApis.reconcile(names);
    this.shields.reconcile(names);
    this.pools.reconcile(names);
    this.caches.reconcile(names);
    this.probers?.reconcile(names);
    this.exchanges.reconcile(names);
    this.hedges.counts.reconcile(names);
    this.migrations.lives.hedges.reconcile(names);
    this.pending.release();
    for (const periodic of this.#periodic)
      if (names.length > 0) periodic.start();
      else periodic.stop();
  }

  /** Ends all requests and connections when the process ends. */
  close(): void {
    for (const exchange of this.exchanges.live) exchange.cut();
    this.#closeRest();
  }

  /**
   * Ends all requests and connections of a removed cluster. Works in slices, because ending 50,000 watches takes 0.6 s,
   * during which the proxy could not serve the other clusters.
   */
  closeInSlices(): void {
    inSlices(this.clock, this.exchanges.live, cutLive, () => this.#closeRest());
  }

  #closeRest(): void {
    this.reconcile([]);
    // These exchanges have ended, but slow clients have not read all of their responses.
    for (const exchange of this.exchanges.holders) exchange.cut();
    this.#leaveBufferLimiter();
    this.limits.stop();
  }

  /** Called when a backend becomes ready again after a time without clients. Notifies the parts that depend on this. */
  #returned(name: string): void {
    this.refresher.returned(name);
    this.shields.returned(name);
    this.loads.returned(name);
  }

  /** Passes a backend's new health state to the parts that depend on it. */
  #judged({ name, state }: BackendView): void {
    const { pools } = this;
    if (state === "ready") this.detectors.histories?.returned(name);
    if (state === "ready") this.#options.assertions?.ready(name);
    if (this.#shares.judged({ name, state })) this.#returned(name);
    this.shields.judged({ name, state });
    if (state === "dead") {
      pools.poolOf(name)?.abandon();
      // A backend that comes back may have been restarted, and then has new watch caches.
      this.caches.forget(name);
    }
    if (state === "draining") pools.leave(name);
    if (state !== "dead") this.pending.release();
  }

  /**
   * Returns the clock reading at which the proxy sent the latest of the PINGs and probes that other backends have
   * answered; 0: there is none.
   */
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

  #isWarm(name: string): boolean {
    return this.backends.stateOf(name) === "ready" && this.#shares.isWarm(name);
  }

  #balanceShares(): BalanceShares {
    return {
      of: () => this.#readyShares(),
      mayGet: (name) => this.#shares.isWarm(name) && !this.#shares.isPaused(name),
      isNear: (name) => this.#shares.isNear(name),
      measured: (name, activity) => {
        const load = this.loads.of(name);
        if (load !== undefined) load.activity = activity;
      },
    };
  }

  #readyShares(): ReadonlyMap<string, number> {
    const ready = this.backends.views.filter(({ state }) => state === "ready");
    return new Map(ready.map(({ name }) => [name, this.#shares.of(name)]));
  }

  #loadOf(name: string): BackendMeasurements["load"] {
    const facts = this.loads.facts(name);
    return { ...facts, streams: this.pools.loadOf(name) + facts.activity };
  }

  measurementsOf(name: string): BackendMeasurements {
    const { writeDelays } = this.caches;
    const now = this.clock.now();
    return {
      watchLagMs: writeDelays.lagMs(name, now),
      watchDelay: writeDelays.recent(name, now),
      unreachableApis: this.avoidedApis.unreachableFrom(name),
      pingP99Ms: this.pools.poolOf(name)?.rtt.quantile(0.99) ?? 0,
      suspectMs: this.backends.suspectMs(name),
      isDrained: this.backends.factsOf(name).isDrained,
      shield: this.shields.statusOf(name),
      version: this.#options.versionOf?.(name) ?? "",
      pings: this.pools.poolOf(name)?.pings,
      probes: this.probers?.of(name)?.counts ?? noProbes,
      load: this.#loadOf(name),
    };
  }
}

function accessLoggerFor({ accessLog = "None" }: PathSettings, journal: Journal): AccessLogger | undefined {
  return accessLogger(accessLog, journal);
}

function cutLive(exchange: Exchange): void {
  if (!exchange.isEnded) exchange.cut();
}
