/** Connects all parts of the process: turns a configuration into a running proxy, or returns a Failure. */

import { isDeepStrictEqual } from "node:util";
import { textOf } from "./base/address.ts";
import { wallClock } from "./base/clock.ts";
import { Failure } from "./base/failure.ts";
import { Interval } from "./base/interval.ts";
import { isRecord, textAt } from "./base/json.ts";
import { limits } from "./base/limits.ts";
import { guarded, inPart, onDataPath } from "./events/guarded-clock.ts";
import type { EntryOf, Journal } from "./events/journal.ts";
import { WorkerAnswers } from "./fleet/reports/worker-answers.ts";
import { Parent } from "./fleet/workers/parent.ts";
import type { Worker } from "./fleet/workers/worker.ts";
import type { ServingWorker, WorkerLink } from "./fleet/workers/worker-link.ts";
import { startWorkerProcess } from "./fleet/workers/worker-process.ts";
import { shrinkOutput } from "./h2/core/output-buffers.ts";
import { shrinkRoom, slabLookMs } from "./h2/core/slabs.ts";
import { type AdminParts, AdminRecords, AdminServers } from "./ops/admin/admin-servers.ts";
import { type Readiness, readinessOf } from "./ops/admin/server/probes.ts";
import { TraceExporter } from "./ops/admin/tracing/trace-exporter.ts";
import { type Config, changedParts, heldOf } from "./ops/config/config.ts";
import { ownVersion } from "./ops/program/version.ts";
import { apiSecurityOf } from "./proxy/cluster/api-security.ts";
import type { Cluster } from "./proxy/cluster/cluster.ts";
import { Clusters } from "./proxy/cluster/clusters.ts";
import { Operations, type Outcome, type ReloadOutcome } from "./proxy/cluster/operations.ts";
import { PeerSockets } from "./proxy/cluster/peer-sockets.ts";
import { type DrainTimes, drain } from "./proxy/cluster/shutdown-drain.ts";
import { Intake, mostSockets } from "./proxy/downstream/intake.ts";
import type { Gate } from "./proxy/downstream/listen.ts";
import { Listeners } from "./proxy/downstream/listeners.ts";
import { Tracer } from "./proxy/observe/tracer.ts";
import { collect, monitorHeap } from "./proxy/overload/heap-monitor.ts";
import { HeapLoad, LoadShedding } from "./proxy/overload/load-shedding.ts";
import type { LiveRequests } from "./proxy/request/active-requests.ts";
import { adminName, Descriptors } from "./upstream/net/descriptors.ts";

export type Running = {
  /** The address of each listener, such as "127.0.0.1:8443", by the listener's name. */
  readonly addresses: ReadonlyMap<string, string>;
  readonly adminAddress: string;
  /** The address of the JSON API; "" while its port cannot be bound, for example because another process has it. */
  readonly apiAddress: string;
  readonly exchanges: LiveRequests;
  /**
   * Applies another configuration completely or not at all. Returns the names of the changed settings that take effect
   * only after a restart. `loaded`: undefined if the file could not be loaded.
   */
  reload(loaded: Config | undefined): Promise<readonly string[] | Failure>;
  /** `freeze` returns the limits that operators have set by command, and blocks changes to them until `thaw`. */
  readonly operatorLimits: { readonly freeze: () => string; readonly thaw: () => void };
  /** The file descriptor of each listening socket, by its listener's name. A successor process inherits them. */
  readonly descriptors: ReadonlyMap<string, number>;
  /** The workers; empty if this process serves all clients itself. */
  readonly workers: readonly Pick<Worker, "number" | "pid" | "state" | "sockets">[];
  /**
   * Drains and stops. `hurry` shortens the drain. `isHandedOver`: true if another process already accepts clients.
   * `times`: the delays and timeouts of the drain; default: those of the configuration.
   */
  stop(hurry: AbortSignal, isHandedOver?: boolean, times?: DrainTimes): Promise<void>;
};

export type Surroundings = {
  readonly journal: Journal;
  readonly droppedLogLines?: () => number;
  /** Called with the logging settings of each configuration that a reload has applied. */
  readonly configureLog?: (logging: Config["logging"]) => void;
  /** Inherited listening sockets. The proxy waits for a ready backend before it accepts clients on them. */
  readonly inherited?: Descriptors;
  /** True if another process serves until this one is ready. Without a ready backend, the start then fails. */
  readonly isSuccessor?: boolean;
  /** The limits that operators had set in the predecessor process; default: none. */
  readonly inheritedLimits?: string;
  readonly readAgain?: () => Promise<ReloadOutcome>;
  /**
   * The connection to the parent process; undefined: this process is no worker. The parent has the listening sockets
   * and the admin ports, and decides which backends are healthy.
   */
  readonly worker?: WorkerLink;
};

/**
 * Opens the admin ports and all listeners. If one cannot be opened, closes the others and returns a Failure. The port
 * of the JSON API is an exception: the proxy also starts without it.
 */
export async function startWatchkeeper(config: Config, around: Surroundings): Promise<Running | Failure> {
  const { journal, worker } = around;
  const parent = parentOf(config, around);
  const traces = new TraceExporter({ clock: guarded(wallClock, journal, "tracing"), journal });
  const tracer = new Tracer(wallClock, traces);
  const clusters = Clusters.of(config, journal, {
    tracer,
    others: worker?.others ?? (parent && { parent: parent.hooks }),
  });
  if (clusters instanceof Failure) return clusters;
  parent?.attach(clusters);
  const proxy = new Watchkeeper(config, clusters, { ...around, traces, tracer, parent });
  return (await proxy.start()) ?? proxy;
}

/**
 * Returns the Parent that manages the worker processes. Returns undefined if this process serves clients itself, either
 * as a worker or as the only process.
 */
function parentOf(config: Config, { journal, worker }: Surroundings): Parent | undefined {
  if (worker !== undefined || config.workers === 1) return undefined;
  const clock = guarded(wallClock, journal);
  return new Parent({ clock, journal, config, startProcess: startWorkerProcess });
}

type Parts = Surroundings & {
  readonly traces: TraceExporter;
  readonly tracer: Tracer;
  readonly parent: Parent | undefined;
};

class Watchkeeper implements Running {
  #config: Config;
  readonly #around: Parts;
  readonly #clusters: Clusters;
  readonly #listeners: Listeners;
  readonly #inherited: Descriptors;
  /**
   * Passes sockets to other watchkeeper processes on this machine. Unused in a worker, because its parent passes the
   * sockets.
   */
  readonly #peers: PeerSockets;
  /** The part of the journal that the admin ports show; undefined in a worker, because its parent has these ports. */
  readonly #records: AdminRecords | undefined;
  readonly #intake: Intake;
  readonly #stopOverload: () => void;
  readonly #intervals: readonly Interval[];
  #servers: AdminServers | undefined;
  #isDraining = false;
  /**
   * True during the start until the listeners are open, if this process inherited no sockets. /readyz fails meanwhile.
   * (On an inherited socket, a predecessor or the kernel accepts connections even during the start.)
   */
  #isClosed = false;
  #configState = { isGood: true, loadedAtMs: wallClock.wall(), waiting: [] as readonly string[] };

  constructor(config: Config, clusters: Clusters, around: Parts) {
    this.#config = config;
    this.#around = around;
    this.#clusters = clusters;
    this.#records = around.worker === undefined ? new AdminRecords(around.journal) : undefined;
    this.#configureTracing();
    const { journal, inherited = new Descriptors() } = around;
    this.#inherited = inherited;
    const clock = guarded(wallClock, journal);
    const gateOf = (cluster: string): Gate => clusters.gateOf(cluster);
    const load = new HeapLoad();
    const intake = new Intake({ clock, most: mostSockets(), isShort: () => load.isShort });
    const listeners = new Listeners(
      {
        clock,
        journal,
        gateOf,
        intake,
        keepalive: () => this.#config.health.tcpKeepalive,
        sockets: around.worker ? "passed" : around.parent,
      },
      inherited,
    );
    const overload = new LoadShedding({
      clock,
      journal,
      load,
      idle: () => listeners.idle,
      exchanges: () => clusters.sheddable,
      collect,
    });
    this.#intake = intake;
    this.#listeners = listeners;
    this.#peers = new PeerSockets({ clock, journal, listeners });
    this.#intervals = [
      new Interval(clock, slabLookMs, shrinkRoom),
      new Interval(clock, slabLookMs, shrinkOutput),
      new Interval(clock, limits.heapLookMs, () => overload.beat()),
    ];
    for (const interval of this.#intervals) interval.start();
    this.#stopOverload = monitorHeap((heap) => overload.look(heap));
  }

  get addresses(): ReadonlyMap<string, string> {
    return this.#listeners.addresses;
  }

  get adminAddress(): string {
    return this.#servers?.adminAddress ?? "";
  }

  get apiAddress(): string {
    return this.#servers?.apiAddress ?? "";
  }

  get operatorLimits(): Running["operatorLimits"] {
    return this.#clusters.operatorLimits;
  }

  get exchanges(): LiveRequests {
    return this.#clusters.exchanges;
  }

  get workers(): Running["workers"] {
    return this.#around.parent?.workers ?? [];
  }

  async start(): Promise<Failure | undefined> {
    const { inheritedLimits = "", journal } = this.#around;
    journal.write({ kind: "process.started", ...startOf(this.#config) });
    this.#clusters.operatorLimits.restore(inheritedLimits);
    const failure = this.#around.worker === undefined ? await this.#open() : await this.#openWorker();
    this.#inherited.closeRest();
    if (failure !== undefined) await this.#abandon();
    return failure;
  }

  async #open(): Promise<Failure | undefined> {
    const isAwaited = this.#awaitsBackends;
    this.#isClosed = this.#inherited.isEmpty;
    const { handoverDirectory } = this.#config.drain;
    const tellPeer = await this.#peers.takeListeners(handoverDirectory, this.#inherited);
    const failure =
      (await this.#clusters.load()) ??
      (isAwaited ? await this.#awaitBackends() : undefined) ??
      (await this.#openPorts(isAwaited));
    if (failure !== undefined) return failure;
    this.#isClosed = false;
    tellPeer();
    this.#peers.serve(handoverDirectory);
    return undefined;
  }

  /**
   * Opens the listeners before any backend is ready. Clients wait in this process until a worker or a backend can serve
   * them.
   */
  async #openFirst(): Promise<Failure | undefined> {
    const failure = await this.#listeners.reconcile(this.#config.listeners);
    if (failure !== undefined) return failure;
    // Backends are dialled only after the listeners are open, for two reasons. Opening the listeners loads the
    // certificates that dials need. It also fails before the first dial if a port is already in use.
    this.#clusters.start();
    return this.#around.parent?.start();
  }

  /** Opens the listeners only when clients can be served, because another process may serve them until then. */
  async #openLast(): Promise<Failure | undefined> {
    return (await this.#around.parent?.start()) ?? this.#listeners.reconcile(this.#config.listeners);
  }

  /**
   * Starts this process as a worker. A worker need not wait for a ready backend, because its parent has already waited.
   */
  async #openWorker(): Promise<Failure | undefined> {
    const failure = await this.#clusters.load();
    if (failure !== undefined) return failure;
    collect();
    const closed = await this.#listeners.reconcile(this.#config.listeners);
    if (closed !== undefined) return closed;
    this.#clusters.start();
    this.#around.worker?.attach(this.#servingWorker());
    return undefined;
  }

  /**
   * Opens the admin ports before the listeners, because health checks may come as soon as clients are accepted. Between
   * the two steps, runs a garbage collection, because the start leaves 10 MB of garbage that V8 would otherwise keep.
   *
   * If systemd keeps the listening sockets and no predecessor serves, clients may already wait for this process. The
   * listeners are then opened first, without a garbage collection. That saves these clients 0.2 s.
   */
  async #openPorts(isAwaited: boolean): Promise<Failure | undefined> {
    const listen = (): Promise<Failure | undefined> => (isAwaited ? this.#openLast() : this.#openFirst());
    if (this.#inherited.areKept && this.#around.isSuccessor !== true)
      return (await listen()) ?? this.#openAdmin();
    const failure = await this.#openAdmin();
    if (failure !== undefined) return failure;
    collect();
    return listen();
  }

  async #abandon(): Promise<void> {
    this.#cut();
    await this.#servers?.close();
  }

  /**
   * True if the proxy waits for a ready backend before it accepts clients. On inherited sockets, clients may already be
   * in the accept queue, and the proxy could not serve them yet. On a shared port, it would take clients that another
   * process could serve.
   */
  get #awaitsBackends(): boolean {
    const isShared = this.#config.listeners.some(({ reusePort }) => reusePort);
    return isShared || !this.#inherited.isEmpty;
  }

  async #awaitBackends(): Promise<Failure | undefined> {
    this.#clusters.start();
    const { isSuccessor } = this.#around;
    if ((await this.#clusters.settled()) || isSuccessor !== true) return undefined;
    const message = `No backend was ready, and had proven the certificates that assert identities, in ${limits.settleMs} ms`;
    return new Failure("no-backend", "proxy", message);
  }

  /** Returns the functions with which the parent's messages control this worker. */
  #servingWorker(): ServingWorker {
    const [clusters, listeners] = [this.#clusters, this.#listeners];
    const { journal } = this.#around;
    const answers = new WorkerAnswers({
      ...this.#facts(),
      journal,
      clock: guarded(wallClock, journal, "admin"),
    });
    return {
      clusters,
      accept: (listener, socket) => listeners.accept(listener, socket),
      reload: (config) => this.#takeData(config),
      load: () => ({
        sockets: listeners.socketCount,
        ...listeners.sessionCount,
        requests: clusters.exchanges.size + this.#tunnelCount,
        complaint: this.#intake.complaint,
      }),
      answer: (question) => answers.answer(question),
    };
  }

  get #tunnelCount(): number {
    return this.#clusters.all.reduce((sum, { tunnelCount }) => sum + tunnelCount, 0);
  }

  async reload(loaded: Config | undefined): Promise<readonly string[] | Failure> {
    const outcome = loaded === undefined ? undefined : await this.#take(loaded);
    const isGood = outcome !== undefined && !(outcome instanceof Failure);
    this.#configState = isGood
      ? { isGood, loadedAtMs: wallClock.wall(), waiting: outcome }
      : { ...this.#configState, isGood };
    return outcome ?? [];
  }

  async #take(config: Config): Promise<readonly string[] | Failure> {
    const { admin } = this.#config;
    const apply = async (settings: Config["admin"]): Promise<Failure | undefined> =>
      inPart("admin", () => this.#servers?.apply(settings));
    const failure = await apply(config.admin);
    if (failure !== undefined) return failure;
    const outcome = await onDataPath(() => this.#takeData(config));
    if (outcome instanceof Failure) await apply(admin);
    return outcome;
  }

  /**
   * Applies everything except the settings of the admin ports. New connections to a new listener wait until the workers
   * have the listener's settings.
   */
  async #takeData(config: Config): Promise<readonly string[] | Failure> {
    const isOther = !isDeepStrictEqual(this.#config.listeners, config.listeners);
    const release = isOther ? this.#around.parent?.hold() : undefined;
    const outcome = await this.#takeAll(config, this.#config);
    release?.();
    return outcome;
  }

  /** `before`: what to return to if a worker cannot apply the configuration; undefined: nothing. */
  async #takeAll(config: Config, before: Config | undefined): Promise<readonly string[] | Failure> {
    const prepared = await this.#clusters.prepare(config);
    if (prepared instanceof Failure) return prepared;
    const unopened = await this.#listeners.reconcile(config.listeners);
    if (unopened !== undefined) {
      prepared.drop();
      return unopened;
    }
    const waiting = changedParts(this.#config, config);
    this.#config = heldOf(this.#config, config);
    prepared.take();
    this.#around.configureLog?.(config.logging);
    this.#configureTracing();
    if (this.#around.worker === undefined) this.#peers.serve(config.drain.handoverDirectory);
    const failure = await this.#around.parent?.configure(this.#config);
    if (failure !== undefined && before !== undefined) await this.#takeAll(before, undefined);
    return failure ?? waiting;
  }

  #configureTracing(): void {
    const { tracing } = this.#config;
    this.#around.traces.configure(tracing?.endpoint ?? "");
    this.#around.tracer.configure(tracing && tracing.samplingRatePerMillion / 1_000_000);
  }

  get descriptors(): ReadonlyMap<string, number> {
    const admin = this.#servers?.descriptor;
    return new Map([
      ...this.#listeners.descriptors,
      ...(admin === undefined ? [] : [[adminName, admin] as const]),
    ]);
  }

  async stop(
    hurry: AbortSignal,
    isHandedOver = false,
    given: DrainTimes = this.#config.drain,
  ): Promise<void> {
    this.#isDraining = true;
    // A successor now serves the admin port, so requests must no longer reach this process.
    if (isHandedOver) await this.#servers?.close();
    this.#peers.stop();
    // With workers, a port that systemd keeps open is drained like any other port, because workers cannot know when the
    // next process takes the port over.
    const isPortKept = this.#inherited.areKept && this.#around.parent === undefined;
    const times = isHandedOver ? { ...given, shutdownDelayMs: 0 } : { ...given, isPortKept };
    const parts = {
      clock: wallClock,
      journal: this.#around.journal,
      exchanges: this.exchanges,
      queuedBytes: () => this.#clusters.bufferLimiter.buffered.bytes,
      upgrades: () => this.#tunnelCount,
      workers: this.#around.parent,
      opening: () => this.#listeners.openingCount,
      passListeners: () => this.#peers.passListeners(isHandedOver),
      close: () => this.#listeners.close(),
      goAway: () => this.#listeners.drain(),
      cut: () => this.#cut(),
    };
    await drain(parts, times, hurry);
    await this.#around.traces.stop();
    if (!isHandedOver) await this.#servers?.close();
  }

  #cut(): void {
    this.#stopOverload();
    for (const interval of this.#intervals) interval.stop();
    this.#servers?.stop();
    this.#records?.stop();
    this.#peers.close();
    this.#around.parent?.kill();
    this.#clusters.stop();
    this.#listeners.cut();
    this.#clusters.close();
  }

  #adminDescriptor(): number | undefined {
    const socket = this.#inherited.take(adminName);
    return typeof socket === "number" ? socket : undefined;
  }

  async #openAdmin(): Promise<Failure | undefined> {
    const { journal, parent } = this.#around;
    const clusters = this.#clusters;
    const clusterOf = (name: string): Cluster | undefined => clusters.named(name);
    const records = this.#records;
    if (records === undefined) return undefined;
    const parts: AdminParts = {
      ...this.#facts(),
      current: () => this.#config,
      addresses: () => this.addresses,
      inherited: this.#adminDescriptor(),
      secure: (name, settings) => apiSecurityOf(settings, { name, journal, clusterOf }),
      ready: () => this.#ready(),
      workers: parent,
    };
    const servers = await inPart("admin", () => AdminServers.open(records, parts));
    if (servers instanceof Failure) return servers;
    this.#servers = servers;
    clusters.onGone((cluster) => servers.gone(cluster));
    return undefined;
  }

  /** Returns the data about this process that the admin ports show. A worker sends such data to its parent instead. */
  #facts(): ProcessFacts {
    const { journal, traces, parent, droppedLogLines = () => 0 } = this.#around;
    const [clusters, listeners] = [this.#clusters, this.#listeners];
    return {
      version: ownVersion(),
      clusters: () => clusters.all,
      sessions: () => parent?.sessions ?? listeners.sessionCount,
      handshakeErrors: () => listeners.handshakeErrors,
      fullestSourceShare: () => listeners.fullestSourceShare,
      queuedBytes: () => clusters.bufferLimiter.buffered.bytes,
      config: () => this.#configState,
      certificates: () => [
        ...listeners.certificates,
        ...clusters.all.flatMap(({ label, certificates }) =>
          certificates.map((one) => ({ ...one, cluster: label })),
        ),
      ],
      droppedLogLines: () => droppedLogLines() + (parent?.droppedEntries ?? 0),
      traceSpans: () => traces.counts,
      workerStates: parent && (() => parent.workers.map(({ state }) => state)),
      operatorLimits: clusters.operatorLimits,
      operations: new Operations({
        journal,
        paths: () => clusters.all.map(({ path }) => path),
        limits: clusters.operatorLimits,
        moveInWorkers: parent && ((auditId) => movedIn(parent, auditId)),
        reload: this.#around.readAgain,
      }),
    };
  }

  /** Returns the checks of /readyz. It fails while the proxy drains, refuses clients, or has no ready backend or no worker. */
  #ready(): readonly Readiness[] {
    const clusters = this.#clusters.present.map(({ path }) => path.backends.views.map(({ state }) => state));
    const lost = this.#isClosed ? this.#config.listeners.map(({ name }) => name) : this.#listeners.lost;
    const asserting = this.#clusters.present.filter(({ credentials }) => credentials.isAsserting);
    const unproven = asserting.filter(({ isProven }) => !isProven);
    return readinessOf({
      clusters,
      unproven: asserting.length === 0 ? undefined : unproven.map(({ label }) => label || "the cluster"),
      lost,
      isDraining: this.#isDraining,
      refusing: this.#around.parent?.complaint || this.#intake.complaint,
      servingWorkers: this.#around.parent?.serving.length,
    });
  }
}

type ProcessFacts = Omit<AdminParts, "current" | "inherited" | "secure" | "ready" | "workers" | "addresses">;

/** Asks the workers to move a watch to another backend. Resolves with undefined if no worker serves the watch. */
async function movedIn(parent: Parent, id: string): Promise<Outcome | undefined> {
  const answers = await parent.ask({ of: "move", id });
  const outcomes = answers.map((answer): Outcome => {
    if (!isRecord(answer)) return String(answer);
    const isMissing = answer["code"] === "misdirected";
    return new Failure(isMissing ? "misdirected" : "bad-request", "client", textAt(answer, "message"));
  });
  const found = outcomes.filter((outcome) => !(outcome instanceof Failure) || outcome.code !== "misdirected");
  return found.find((outcome) => !(outcome instanceof Failure)) ?? found[0];
}

function startOf(config: Config): Omit<EntryOf<"process.started">, "kind"> {
  const { file, sha256, listeners, clusters } = config;
  const of = (name: string, backend: string): string =>
    clusters.length > 1 ? `${name}/${backend}` : backend;
  return {
    binaryVersion: ownVersion(),
    nodeVersion: process.version,
    file,
    sha256,
    listeners: listeners.map(({ name, address }) => `${name} ${textOf(address)}`),
    backends: clusters.flatMap(({ name, backends }) =>
      backends.map((backend) => `${of(name, backend.name)} ${backend.url}`),
    ),
  };
}
