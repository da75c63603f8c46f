/**
 * The ports for operators: metrics and probes, without which the proxy does not start, and the JSON API. Reads the journal
 * from construction on.
 */
import { textOf } from "../base/address.ts";
import { type Clock, wallClock } from "../base/clock.ts";
import { Failure } from "../base/failure.ts";
import type { Config } from "../config/config.ts";
import type { Journal } from "../events/journal.ts";
import { ExpiryWatch } from "../incidents/certificate-expiry.ts";
import { Incidents } from "../incidents/incidents.ts";
import type { ApiSecurity } from "../proxy/cluster/api-security.ts";
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
import { timesOf } from "./http/times.ts";
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
  /** Includes clusters that are being removed. */
  readonly clusters: () => readonly ListedCluster[];
  /** The configuration's name. */
  readonly name: string;
  readonly addresses: Config["admin"];
  /** Returns the configuration in effect. */
  readonly current: () => Config;
  /** An inherited listening socket for metrics. */
  readonly inherited: number | undefined;
  /** TLS and authorization of the API. */
  readonly security: ApiSecurity;
  /** Operations that the API offers. */
  readonly operations: Operations;
  /** Returns the checks of readiness: whether new clients may be sent here. */
  readonly ready: () => readonly Readiness[];
};

/** An answer is enough: the probe thread detects an event loop that does not turn. */
const alive = (): readonly Readiness[] => [{ name: "ping", ok: true }];

export class AdminServers {
  readonly #clock: Clock = wallClock;
  readonly #journal: Journal;
  readonly #incidents: Incidents;
  readonly #history: BackendHistory;
  readonly #ring: EventRing;
  #expiryWatch: ExpiryWatch | undefined;
  #monitor: ProcessMonitor | undefined;
  #admin: Admin | undefined;
  #metrics: Metrics | undefined;
  #api: ApiPort | undefined;

  constructor(journal: Journal) {
    this.#journal = journal;
    this.#incidents = new Incidents(this.#clock, journal);
    this.#history = new BackendHistory(journal);
    this.#ring = new EventRing(journal, timesOf(this.#clock));
  }

  /** The address of metrics and probes. */
  get adminAddress(): string {
    return this.#admin?.address ?? "";
  }

  /** The address of the JSON API; "" while another process uses its port. */
  get apiAddress(): string {
    return this.#api?.address ?? "";
  }

  /** The listening socket of metrics, for a successor. */
  get descriptor(): number | undefined {
    return this.#admin?.descriptor;
  }

  async open(parts: AdminParts): Promise<Failure | undefined> {
    const { addresses, inherited, ready } = parts;
    const journal = this.#journal;
    const clock = this.#clock;
    const metrics = new Metrics(journal, { ...parts, clock, incidents: this.#incidents.store });
    this.#metrics = metrics;
    const answers = new Answers({ journal, clock, live: alive, ready, metrics: () => metrics.text() });
    const { contentType } = metrics;
    const port = { ...addresses.metricsAddress, inherited, journal, clock, answers, contentType };
    const admin = await ProbeThread.start(port);
    if (admin instanceof Failure) return admin;
    this.#admin = admin;
    const { certificates } = parts;
    this.#expiryWatch = new ExpiryWatch({ clock: this.#clock, journal, certificates });
    this.#expiryWatch.start();
    const page = pageRoutes();
    const routes = this.#routes(parts, metrics, page);
    const posts = operationPosts(parts.operations, addresses.readOnly);
    const events = new EventStreams(this.#ring, this.#clock);
    const { tls, reviewer, audiences } = parts.security;
    const authorization = reviewer && new Authorization({ clock: this.#clock, journal, reviewer, audiences });
    const guard = authorization && guardOf(authorization, page);
    this.#api = new ApiPort(
      { ...addresses.address, journal, routes, posts, events, tls, guard },
      this.#clock,
    );
    await this.#api.start();
    return undefined;
  }

  /** Removes a cluster from the listings; its counters stay. */
  gone(cluster: LiveCluster): void {
    this.#metrics?.gone(cluster);
  }

  /** Closes both ports. Incidents are still written to the journal. */
  async close(): Promise<void> {
    await Promise.all([this.#admin?.stop(), this.#api?.stop()]);
  }

  stop(): void {
    this.#monitor?.stop();
    this.#ring.stop();
    this.#incidents.stop();
    this.#expiryWatch?.stop();
  }

  /** The JSON API and the admin page. */
  #routes(parts: AdminParts, metrics: Metrics, page: Routes): Routes {
    const { clusters, certificates, name } = parts;
    const clock = this.#clock;
    const times = timesOf(clock);
    const { store } = this.#incidents;
    const monitor = new ProcessMonitor(name, times);
    this.#monitor = monitor;
    const pages = apiPages(
      {
        clock,
        incidents: store,
        ledgers: () => clusters().map(({ label, path: { ledgerTap } }) => ({ cluster: label, ledgerTap })),
        backends: () => clusters().flatMap(backendStatusesOf),
        live: () => clusters().flatMap(({ path }) => path.exchanges.live),
        history: this.#history,
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
    const { version, current } = parts;
    const stats = (): Stats => statsOf(metrics, { ...monitor.read(), version }, times);
    const api = createApi({ pages, incidents: store, stats, times });
    const z = zPages({ ...times, version, config: current, words: process.argv.slice(2) });
    const described = openapiRoutes(pages, version);
    return (path) => api(path) ?? z(path) ?? described(path) ?? page(path);
  }
}

/** Returns the cluster that this backend belongs to. */
function ownerIn(clusters: readonly ListedCluster[], backend: string): ListedCluster | undefined {
  return clusters.find(({ path }) => path.backends.views.some(({ name }) => name === backend));
}
