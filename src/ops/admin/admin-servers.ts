/**
 * The two admin ports: one serves metrics and probes, the other the JSON API and the admin page. The proxy does not
 * start if the port of metrics and probes cannot be bound.
 */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { type Address, textOf } from "../../base/address.ts";
import { type Clock, wallClock } from "../../base/clock.ts";
import type { Failure } from "../../base/failure.ts";
import { guarded } from "../../events/guarded-clock.ts";
import type { Journal } from "../../events/journal.ts";
import { Forwarding } from "../../fleet/replicas/forwarding.ts";
import { type ReplicaFacts, replicaAnswer, replicaName, replicaPath } from "../../fleet/replicas/replica.ts";
import { askReplica, replicaClient, type SendToReplica } from "../../fleet/replicas/replica-client.ts";
import { Replicas } from "../../fleet/replicas/replicas.ts";
import { resolver } from "../../fleet/replicas/resolver.ts";
import { type ProcessCosts, type Workers, WorkerTotals } from "../../fleet/reports/worker-totals.ts";
import type { ApiSecurity } from "../../proxy/cluster/api-security.ts";
import type { DataPath } from "../../proxy/cluster/data-path.ts";
import type { Operations } from "../../proxy/cluster/operations.ts";
import type { OperatorLimits } from "../../proxy/limits/operator-limits.ts";
import type { Exchange } from "../../proxy/request/exchange.ts";
import {
  type AccessConfig,
  type AdminConfig,
  hasUnprotectedMetrics,
  unprotectedMetrics,
} from "../config/admin.ts";
import type { Config } from "../config/config.ts";
import { ExpiryWatch } from "../incidents/certificate-expiry.ts";
import { Incidents } from "../incidents/incidents.ts";
import { apiPages, createApi, type Pages } from "./api/api.ts";
import { openapiRoutes } from "./api/openapi.ts";
import { operationPosts, refused } from "./api/operation-posts.ts";
import { ProcessMonitor, type Stats, statsOf } from "./api/stats.ts";
import { type AccessRequest, Authorization } from "./authorization/authorization.ts";
import { BackendHistory } from "./events/backend-history.ts";
import { EventRing } from "./events/event-ring.ts";
import { EventStreams } from "./events/event-stream.ts";
import { History } from "./history/history.ts";
import type { RecordedCluster } from "./history/recorded.ts";
import { pageRoutes } from "./http/page-files.ts";
import { jsonReply, type Routes } from "./http/reply.ts";
import { type Times, timesOf } from "./http/times.ts";
import { backendStatusesOf } from "./metrics/cluster-view.ts";
import type { LiveCluster, Process } from "./metrics/metric.ts";
import { Metrics } from "./metrics/registry.ts";
import { Port } from "./port.ts";
import { Answers } from "./server/answers.ts";
import { CachedProbes } from "./server/cached-probes.ts";
import { ProbeThread } from "./server/probe-thread.ts";
import type { Readiness } from "./server/probes.ts";
import { type Admin, guardOf, metricsGuard, startAdmin, startApi } from "./server/server.ts";
import { zPages } from "./server/z-pages.ts";

type ListedCluster = LiveCluster & {
  readonly path: Pick<DataPath, "ledgerTap" | "exchanges" | "caches" | "backends" | "limits">;
  /** Default: the cluster's listeners assert no identities. */
  readonly credentials?: { identitiesOf(backend: string): readonly string[] };
};

export type AdminParts = Omit<Process, "incidents" | "clock" | "clusters" | "operatorLimits" | "replicas"> & {
  /** Returns all clusters, including those that are being removed. */
  readonly clusters: () => readonly ListedCluster[];
  readonly current: () => Config;
  /** Returns the bound address of each listener by name. */
  readonly addresses: () => ReadonlyMap<string, string>;
  /** Descriptor of the listening socket for metrics and probes, inherited from a predecessor; undefined: none. */
  readonly inherited: number | undefined;
  /** Loads a port's TLS certificate and authorization. The port stops both later. */
  readonly secure: (port: "admin" | "metrics", config: AccessConfig) => Promise<ApiSecurity>;
  readonly operations: Operations;
  readonly operatorLimits: Pick<OperatorLimits, "all" | "replicas">;
  /** Returns the checks of /readyz. A check fails if new clients should connect to another watchkeeper instance. */
  readonly ready: () => readonly Readiness[];
  /** The workers of this process; undefined: the process has no workers. */
  readonly workers?: Workers | undefined;
};

/**
 * Returns the only check of /livez. It always passes. CachedProbes adds a second check, which fails if the event loop
 * hangs.
 */
const alive = (): readonly Readiness[] => [{ name: "ping", ok: true }];

/**
 * The part of the journal that the admin ports show: incidents, state changes and the latest entries. Must be created
 * before the first entry is written, so that it misses no entry.
 */
export class AdminRecords {
  /** Identifies this process among the replicas. */
  readonly id = randomUUID();
  readonly startedAt: string;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly times: Times = timesOf(wallClock);
  readonly incidents: Incidents;
  readonly history: BackendHistory;
  readonly ring: EventRing;

  constructor(journal: Journal) {
    this.journal = journal;
    this.clock = guarded(wallClock, journal, "admin");
    this.startedAt = this.times.timeOf(this.times.now());
    this.incidents = new Incidents(this.clock, journal);
    this.history = new BackendHistory(journal);
    this.ring = new EventRing(journal, this.times);
  }

  stop(): void {
    this.ring.stop();
    this.incidents.stop();
  }
}

type ProbeSettings = AccessConfig & Pick<AdminConfig, "probeThread"> & { readonly address: Address };
type ApiSettings = Pick<AdminConfig, "address" | "tls" | "authorization">;

export class AdminServers {
  readonly #records: AdminRecords;
  readonly #parts: AdminParts;
  readonly #metrics: Metrics;
  readonly #answers: Answers;
  readonly #monitor: ProcessMonitor;
  /**
   * The history's own monitor. It cannot share `#monitor`, because each read of a monitor restarts its measurement of
   * the event loop's delay.
   */
  readonly #historyMonitor: ProcessMonitor;
  readonly #history: History;
  readonly #expiryWatch: ExpiryWatch;
  readonly #page = pageRoutes();
  readonly #routes: Routes;
  readonly #events: EventStreams;
  readonly #replicas: Replicas;
  readonly #forwarding: Forwarding;
  #config: AdminConfig;
  readonly #probes: Port<ProbeSettings>;
  readonly #api: Port<ApiSettings>;

  private constructor(records: AdminRecords, parts: AdminParts) {
    const { journal, clock, times } = records;
    const { ready, current, secure } = parts;
    const port = { clock, journal, secure };
    // With `reusePort`, two processes may run on one node. One of them binds the API's port, and the other waits.
    const isShared = (): boolean => current().listeners.some(({ reusePort }) => reusePort);
    const certificates = (): ReturnType<Process["certificates"]> => [
      ...parts.certificates(),
      ...this.#api.certificates,
      ...this.#probes.certificates,
    ];
    const all = { ...parts, certificates };
    const send = replicaClient(clock);
    const replicas = replicasOf(records, parts, send);
    const totals = parts.workers && new WorkerTotals(parts.workers);
    const metrics = metricsOf(records, { ...all, replicas }, totals);
    const monitor = new ProcessMonitor(times);
    const stats = (): Stats => statsIn(metrics, withWorkers(monitor.read(), totals), parts, times);
    this.#records = records;
    this.#parts = parts;
    this.#config = current().admin;
    this.#metrics = metrics;
    this.#answers = new Answers({ journal, clock, live: alive, ready, metrics: () => metrics.text() });
    this.#monitor = monitor;
    this.#expiryWatch = new ExpiryWatch({ clock, journal, certificates });
    this.#historyMonitor = new ProcessMonitor(times);
    this.#history = this.#startHistory(totals);
    this.#replicas = replicas;
    const api = apiOf(records, all, { stats, history: this.#history, replicas, totals });
    this.#forwarding = new Forwarding({
      replicas,
      send,
      api: api.routes,
      refusal: (target, posted) =>
        this.#config.readOnly ? refused(parts.operations, "forward", target, posted) : undefined,
      now: () => clock.now(),
    });
    const others = otherRoutesOf(records, parts, api.pages);
    this.#routes = (path) =>
      api.routes(path) ?? this.#forwarding.routes(path) ?? others(path) ?? this.#page(path);
    this.#events = new EventStreams(records.ring, clock);
    this.#probes = new Port({ ...port, listener: "metrics", bind: (...one) => this.#bindProbes(...one) });
    this.#api = new Port({ ...port, listener: "admin", isShared, bind: (to, by) => this.#bindApi(to, by) });
  }

  /** Opens both ports. Returns a Failure if the port of metrics and probes cannot be bound. */
  static async open(records: AdminRecords, parts: AdminParts): Promise<AdminServers | Failure> {
    const servers = new AdminServers(records, parts);
    const failure = await servers.#open();
    if (failure === undefined) return servers;
    servers.stop();
    await servers.close();
    return failure;
  }

  async #open(): Promise<Failure | undefined> {
    const failure = await this.#probes.start(probeSettings(this.#config), this.#parts.inherited);
    if (failure !== undefined) return failure;
    if (hasUnprotectedMetrics(this.#config))
      this.#records.journal.write({ kind: "metrics.unprotected", reason: unprotectedMetrics(this.#config) });
    this.#expiryWatch.start();
    // A failure is ignored, because the proxy also starts without the API, and the port tries again.
    await this.#api.start(apiSettings(this.#config));
    // Called last, when the ports are open: the list of replicas may contain this process, whose first request to
    // itself would otherwise fail.
    this.#replicas.configure(this.#config.replicas);
    return undefined;
  }

  #bindProbes(
    { address, probeThread }: ProbeSettings,
    { tls, reviewer, audiences }: ApiSecurity,
    inherited?: number,
  ): Promise<Admin | Failure> {
    const { journal, clock } = this.#records;
    const answers = this.#answers;
    const { contentType } = this.#metrics;
    const authorization =
      reviewer && new Authorization({ clock, journal, reviewer, audiences, pathPrefix: "" });
    const port = { ...address, inherited, journal, contentType, tls };
    if (probeThread) {
      const admit = authorization && ((request: AccessRequest) => authorization.admit(request));
      return ProbeThread.start({ ...port, clock, answers, admit });
    }
    const asker = new CachedProbes({ clock, journal, loop: answers, first: answers.standing() });
    return startAdmin({ ...port, asker, guard: authorization && metricsGuard(authorization) });
  }

  #bindApi({ address }: ApiSettings, { tls, reviewer, audiences }: ApiSecurity): Promise<Admin | Failure> {
    const { journal, clock } = this.#records;
    const authorization = reviewer && new Authorization({ clock, journal, reviewer, audiences });
    const posts = operationPosts(this.#parts.operations, () => this.#config.readOnly);
    const isPublic = (path: string): boolean => path === replicaPath || this.#page(path) !== undefined;
    return startApi({
      ...address,
      journal,
      routes: this.#routes,
      posts: (path) => posts(path) ?? this.#forwarding.posts(path),
      events: this.#events,
      tls,
      guard: authorization && guardOf(authorization, isPublic),
    });
  }

  /**
   * Applies another configuration. A port whose settings stay the same stays open. If a port cannot be bound, both
   * ports keep their settings, and the result is a Failure.
   */
  async apply(config: AdminConfig): Promise<Failure | undefined> {
    const failure = await this.#probes.move(probeSettings(config));
    if (failure !== undefined) return failure;
    const ofApi = await this.#api.move(apiSettings(config));
    if (ofApi !== undefined) {
      await this.#probes.move(probeSettings(this.#config));
      return ofApi;
    }
    this.#config = config;
    this.#replicas.configure(config.replicas);
    return undefined;
  }

  /** Address of metrics and probes, as host:port. */
  get adminAddress(): string {
    return this.#probes.address;
  }

  /** Address of the JSON API, as host:port; "" while its port is not bound. */
  get apiAddress(): string {
    return this.#api.address;
  }

  /** Descriptor of the listening socket of metrics and probes, which a successor process inherits; undefined: none. */
  get descriptor(): number | undefined {
    return this.#probes.descriptor;
  }

  /**
   * Removes a cluster from the metrics. Its counters keep their values, with "other" in the labels `cluster` and
   * `backend`.
   */
  gone(cluster: LiveCluster): void {
    this.#metrics.gone(cluster);
  }

  /** Closes both ports. Afterwards, incidents are still detected and written to the journal. */
  async close(): Promise<void> {
    await Promise.all([this.#probes.stop(), this.#api.stop()]);
  }

  #startHistory(totals: WorkerTotals | undefined): History {
    const { clock, journal, times } = this.#records;
    const { sessions, clusters } = this.#parts;
    const history = new History({
      clock,
      journal,
      times,
      clusters: () => clusters().map((cluster) => recordedOf(cluster)),
      process: () => {
        const { cpuMs, eventLoopDelayMs, rssBytes } = withWorkers(this.#historyMonitor.read(), totals);
        const { h1, h2 } = sessions();
        return { cpuMs, eventLoopDelayMs, rssMiB: rssBytes / 2 ** 20, clientConnections: h1 + h2 };
      },
      workers: totals?.recorded,
    });
    history.start();
    return history;
  }

  /**
   * Stops all measurements, certificate reloads, authorization reviews and requests to other replicas. Does not close
   * the ports.
   */
  stop(): void {
    this.#monitor.stop();
    this.#historyMonitor.stop();
    this.#history.stop();
    this.#expiryWatch.stop();
    this.#replicas.stop();
    this.#probes.release();
    this.#api.release();
  }
}

function metricsOf(
  { journal, clock, incidents }: AdminRecords,
  parts: Omit<Process, "clock" | "incidents">,
  totals: WorkerTotals | undefined,
): Metrics {
  const metrics = new Metrics(journal, { ...parts, clock, incidents: incidents.store }, totals);
  totals?.onEnded((snapshot) => metrics.ended(snapshot));
  return metrics;
}

function statsIn(
  metrics: Metrics,
  measured: ReturnType<ProcessMonitor["read"]>,
  { version, current, config, addresses }: AdminParts,
  times: Times,
): Stats {
  const { waiting: restartRequired } = config();
  const listeners = Array.from(addresses(), ([name, address]) => ({ name, address }));
  return statsOf(metrics, { ...measured, version, name: current().name, restartRequired, listeners }, times);
}

function probeSettings({ metricsAddress: address, probeThread, metrics }: AdminConfig): ProbeSettings {
  return { address, probeThread, ...metrics };
}

function apiSettings({ address, tls, authorization }: AdminConfig): ApiSettings {
  return { address, tls, authorization };
}

type OwnData = {
  readonly stats: () => Stats;
  readonly history: History;
  readonly replicas: Replicas;
  readonly totals: WorkerTotals | undefined;
};

type Api = { readonly routes: Routes; readonly pages: Pages };

function apiOf(
  { clock, times, incidents: { store }, history: changes }: AdminRecords,
  { clusters, certificates, operatorLimits }: AdminParts,
  { stats, history, replicas, totals }: OwnData,
): Api {
  const live = (): readonly Exchange[] => clusters().flatMap(({ path }) => path.exchanges.live);
  const own = apiPages(
    {
      clock,
      incidents: store,
      ledgers: () => clusters().map(({ label, path: { ledgerTap } }) => ({ cluster: label, ledgerTap })),
      limits: () => [
        ...operatorLimits.all.map((limit) => ({ cluster: "", limit })),
        ...clusters().flatMap(({ label, path: { limits } }) =>
          limits.own.map((limit) => ({ cluster: label, limit })),
        ),
      ],
      replicas: () => replicas.rows,
      backends: () => clusters().flatMap(backendStatusesOf),
      live,
      history: changes,
      addressOf: (backend) => {
        const address = ownerIn(clusters(), backend)?.backends.addressOf(backend);
        return address === undefined ? "" : textOf(address);
      },
      certificates,
      stalledWith: (backend) =>
        ownerIn(clusters(), backend)?.path.caches.stalledAt(backend, clock.now()) ?? [],
      identitiesOf: (backend) => ownerIn(clusters(), backend)?.credentials?.identitiesOf(backend) ?? [],
      parts: totals?.backendParts,
    },
    times,
  );
  const pages = totals?.pagesOf(own) ?? own;
  const watchElsewhere = totals && ((id: string) => totals.watch(id));
  const routes = createApi({ pages, incidents: store, live, watchElsewhere, stats, history, times, clock });
  return { pages, routes };
}

/** Returns the routes that the API's port serves outside of /api/v1/, except those of the admin page. */
function otherRoutesOf(records: AdminRecords, parts: AdminParts, pages: Pages): Routes {
  const { version, current } = parts;
  const self = selfOf(records, parts);
  const z = zPages({ ...records.times, version, config: current, words: process.argv.slice(2) });
  const described = openapiRoutes(pages, version);
  return (path) =>
    path === replicaPath ? () => jsonReply(200, replicaAnswer(self())) : (z(path) ?? described(path));
}

function replicasOf(records: AdminRecords, parts: AdminParts, send: SendToReplica): Replicas {
  const { clock, journal } = records;
  return new Replicas({
    clock,
    journal,
    self: selfOf(records, parts),
    ask: (target) => askReplica(send, target),
    resolve: resolver({ clock, journal }),
    shared: parts.operatorLimits.replicas,
  });
}

/**
 * Returns `own` with CPU time and memory summed over this process and its workers, and the longest event-loop delay of
 * any of them.
 */
function withWorkers<T extends ProcessCosts>(own: T, totals: WorkerTotals | undefined): T {
  if (totals === undefined) return own;
  const { cpuMs, rssBytes, eventLoopDelayMs } = totals.monitored;
  return {
    ...own,
    cpuMs: own.cpuMs + cpuMs,
    rssBytes: own.rssBytes + rssBytes,
    eventLoopDelayMs: Math.max(own.eventLoopDelayMs, eventLoopDelayMs),
  };
}

/** Returns a function that collects what this process tells other replicas about itself. */
function selfOf(
  { id, startedAt, incidents: { store } }: AdminRecords,
  { version, current }: AdminParts,
): () => ReplicaFacts {
  const name = replicaName(hostname());
  return () => ({
    id,
    name,
    version,
    startedAt,
    clusters: current().clusters.map((cluster) => cluster.name),
    activeIncidents: store.active.length,
  });
}

function ownerIn(clusters: readonly ListedCluster[], backend: string): ListedCluster | undefined {
  return clusters.find(({ path }) => path.backends.views.some(({ name }) => name === backend));
}

function recordedOf({ path }: ListedCluster): RecordedCluster {
  return { exchanges: path.exchanges, backends: () => backendStatusesOf({ path }) };
}
