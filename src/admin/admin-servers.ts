/** The two admin ports: one for metrics and probes, without which the proxy does not start, and one for the JSON API. */
import { textOf } from "../base/address.ts";
import { type Clock, wallClock } from "../base/clock.ts";
import { Failure } from "../base/failure.ts";
import type { Config } from "../config/config.ts";
import type { Journal } from "../events/journal.ts";
import { ExpiryWatch } from "../incidents/certificate-expiry.ts";
import { Incidents } from "../incidents/incidents.ts";
import { type ApiSecurity, closeApiSecurity } from "../proxy/cluster/api-security.ts";
import type { Operations } from "../proxy/cluster/operations.ts";
import type { Path } from "../proxy/cluster/path.ts";
import { apiPages, createApi } from "./api/api.ts";
import { openapiRoutes } from "./api/openapi.ts";
import { operationPosts } from "./api/operation-posts.ts";
import { ProcessMonitor, type Stats, statsOf } from "./api/stats.ts";
import { Authorization } from "./authorization/authorization.ts";
import { BackendHistory } from "./events/backend-history.ts";
import { EventRing } from "./events/event-ring.ts";
import { EventStreams } from "./events/event-stream.ts";
import { pageRoutes } from "./http/page-files.ts";
import type { Routes } from "./http/reply.ts";
import { type Times, timesOf } from "./http/times.ts";
import { backendStatusesOf } from "./metrics/cluster-view.ts";
import type { LiveCluster, Process } from "./metrics/metric.ts";
import { Metrics } from "./metrics/registry.ts";
import { Answers } from "./server/answers.ts";
import { ApiPort } from "./server/api-port.ts";
import { ProbeThread } from "./server/probe-thread.ts";
import type { Readiness } from "./server/probes.ts";
import type { Admin } from "./server/server.ts";
import { guardOf } from "./server/server.ts";
import { zPages } from "./server/z-pages.ts";

type ListedCluster = LiveCluster & {
  readonly path: Pick<Path, "ledgerTap" | "exchanges" | "caches" | "backends">;
};

export type AdminParts = Omit<Process, "incidents" | "clock" | "clusters"> & {
  /** Returns all clusters, including those that are being removed. */
  readonly clusters: () => readonly ListedCluster[];
  readonly name: string;
  readonly addresses: Config["admin"];
  readonly current: () => Config;
  /** Descriptor of an inherited listening socket for metrics and probes; undefined: none. */
  readonly inherited: number | undefined;
  /** TLS and authorization of the API. AdminServers closes them. */
  readonly security: ApiSecurity;
  readonly operations: Operations;
  /** Returns the checks of /readyz, which fail if new clients should connect to another instance. */
  readonly ready: () => readonly Readiness[];
};

/** A check of /livez that always passes. CachedProbes adds one that fails if the event loop hangs. */
const alive = (): readonly Readiness[] => [{ name: "ping", ok: true }];

/** The journal's incidents, state changes and latest entries. Must be constructed before the first entry is written. */
export class AdminRecords {
  readonly journal: Journal;
  readonly clock: Clock = wallClock;
  readonly times: Times = timesOf(wallClock);
  readonly incidents: Incidents;
  readonly history: BackendHistory;
  readonly ring: EventRing;

  constructor(journal: Journal) {
    this.journal = journal;
    this.incidents = new Incidents(this.clock, journal);
    this.history = new BackendHistory(journal);
    this.ring = new EventRing(journal, this.times);
  }

  stop(): void {
    this.ring.stop();
    this.incidents.stop();
  }
}

type Opened = {
  readonly metrics: Metrics;
  readonly monitor: ProcessMonitor;
  readonly expiryWatch: ExpiryWatch;
  readonly probes: Admin;
  readonly api: ApiPort;
  readonly security: ApiSecurity;
};

export class AdminServers {
  readonly #opened: Opened;

  private constructor(opened: Opened) {
    this.#opened = opened;
  }

  /** Opens both ports. Returns a Failure if the port of metrics and probes cannot be bound. */
  static async open(records: AdminRecords, parts: AdminParts): Promise<AdminServers | Failure> {
    const { journal, clock, times } = records;
    const { addresses, inherited, ready, certificates, name } = parts;
    const metrics = new Metrics(journal, { ...parts, clock, incidents: records.incidents.store });
    const answers = new Answers({ journal, clock, live: alive, ready, metrics: () => metrics.text() });
    const { contentType } = metrics;
    const port = { ...addresses.metricsAddress, inherited, journal, clock, answers, contentType };
    const probes = await ProbeThread.start(port);
    if (probes instanceof Failure) {
      closeApiSecurity(parts.security);
      return probes;
    }
    const expiryWatch = new ExpiryWatch({ clock, journal, certificates });
    expiryWatch.start();
    const monitor = new ProcessMonitor(name, times);
    const page = pageRoutes();
    const stats = (): Stats => statsOf(metrics, { ...monitor.read(), version: parts.version }, times);
    const routes = apiRoutesOf(records, parts, { page, stats });
    const posts = operationPosts(parts.operations, addresses.readOnly);
    const events = new EventStreams(records.ring, clock);
    const { tls, reviewer, audiences } = parts.security;
    const authorization = reviewer && new Authorization({ clock, journal, reviewer, audiences });
    const guard = authorization && guardOf(authorization, page);
    const api = new ApiPort({ ...addresses.address, journal, routes, posts, events, tls, guard }, clock);
    await api.start();
    return new AdminServers({ metrics, monitor, expiryWatch, probes, api, security: parts.security });
  }

  /** Address of metrics and probes, as host:port. */
  get adminAddress(): string {
    return this.#opened.probes.address;
  }

  /** Address of the JSON API, as host:port; "" while another process uses its port. */
  get apiAddress(): string {
    return this.#opened.api.address;
  }

  /** Descriptor of the listening socket of metrics and probes, for a process that takes over; undefined: none. */
  get descriptor(): number | undefined {
    return this.#opened.probes.descriptor;
  }

  /** Removes a cluster from the metrics. The cluster's counts stay, with the label backend="other". */
  gone(cluster: LiveCluster): void {
    this.#opened.metrics.gone(cluster);
  }

  /** Closes both ports. Incidents are still written to the journal. */
  async close(): Promise<void> {
    await Promise.all([this.#opened.probes.stop(), this.#opened.api.stop()]);
  }

  /** Stops the measurements, the reloads of certificates and the requests for authorization. The ports stay open. */
  stop(): void {
    this.#opened.monitor.stop();
    this.#opened.expiryWatch.stop();
    closeApiSecurity(this.#opened.security);
  }
}

function apiRoutesOf(
  { clock, times, incidents: { store }, history }: AdminRecords,
  { clusters, certificates, version, current }: AdminParts,
  { page, stats }: { readonly page: Routes; readonly stats: () => Stats },
): Routes {
  const pages = apiPages(
    {
      clock,
      incidents: store,
      ledgers: () => clusters().map(({ label, path: { ledgerTap } }) => ({ cluster: label, ledgerTap })),
      backends: () => clusters().flatMap(backendStatusesOf),
      live: () => clusters().flatMap(({ path }) => path.exchanges.live),
      history,
      addressOf: (backend) => {
        const address = ownerIn(clusters(), backend)?.backends.addressOf(backend);
        return address === undefined ? "" : textOf(address);
      },
      certificates,
      stalledWith: (backend) =>
        ownerIn(clusters(), backend)?.path.caches.stalledAt(backend, clock.now()) ?? [],
    },
    times,
  );
  const api = createApi({ pages, incidents: store, stats, times });
  const z = zPages({ ...times, version, config: current, words: process.argv.slice(2) });
  const described = openapiRoutes(pages, version);
  return (path) => api(path) ?? z(path) ?? described(path) ?? page(path);
}

function ownerIn(clusters: readonly ListedCluster[], backend: string): ListedCluster | undefined {
  return clusters.find(({ path }) => path.backends.views.some(({ name }) => name === backend));
}
