/**
 * One cluster with everything that belongs to it alone: its backends and their CA, the proxy's credentials for them,
 * and the path that requests, Upgrades and passthrough connections take to them.
 */
import { type Clock, wallClock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { guarded, onDataPath } from "../../events/guarded-clock.ts";
import type { Journal } from "../../events/journal.ts";
import type { BackendView } from "../../health/backend.ts";
import { BackendVersions } from "../../health/backend-versions.ts";
import type { Evidence } from "../../health/evidence.ts";
import type { Probe } from "../../health/prober.ts";
import { Expiries, loopbackName } from "../../health/probes/certificate.ts";
import { createReadyProbe } from "../../health/probes/ready.ts";
import { readRetransmissions } from "../../health/probes/retransmissions.ts";
import type { ConfigForCluster } from "../../ops/config/config.ts";
import { addressesOf } from "../../ops/discovery/discover.ts";
import { identify } from "../../upstream/context/upstream-fields.ts";
import {
  connectConnection,
  connectThrough,
  connectUpgrade,
  openSocket,
  openUntrusting,
} from "../../upstream/net/connect.ts";
import { createH1 } from "../downstream/h1-connection.ts";
import type { Gate } from "../downstream/listen.ts";
import type { OperatorLimits } from "../limits/operator-limits.ts";
import type { Tracer } from "../observe/tracer.ts";
import type { BufferLimiter } from "../overload/buffer-limiter.ts";
import { assertedIn, Credentials } from "../tls/credentials.ts";
import type { Expiry } from "../tls/sni-hosts.ts";
import { type DialUpgradeParts, dialUpgrade } from "../tunnel/dial-upgrade.ts";
import { Passthrough } from "../tunnel/passthrough.ts";
import { HungTunnels, type WatchTunnel } from "../tunnel/stuck-sockets.ts";
import { UpgradeHandler } from "../tunnel/upgrade-handler.ts";
import { BackendSet } from "./backend-set.ts";
import { DataPath, type PathSettings } from "./data-path.ts";
import { NamedAddresses } from "./named-addresses.ts";
import { type OtherProcesses, SharedEvidence } from "./shared-verdict.ts";

export type ClusterParts = {
  readonly journal: Journal;
  readonly bufferLimiter: BufferLimiter;
  readonly tracer?: Tracer | undefined;
  readonly operatorLimits: OperatorLimits;
  /**
   * The cluster's name in journal and metrics; "" if the cluster was the only one when it was created. This name never
   * changes.
   */
  readonly label: string;
  /** The other processes (the parent or the workers) that send requests to the same backends; default: none. */
  readonly others?: OtherProcesses | undefined;
};

export class Cluster {
  readonly label: string;
  readonly path: DataPath;
  readonly backends: BackendSet;
  readonly upgrades: UpgradeHandler;
  readonly passthrough: Passthrough;
  readonly gate: Gate;
  /** The evidence of all processes about the backends; undefined unless this process has workers. */
  readonly shared: SharedEvidence | undefined;
  readonly #parts: ClusterParts;
  /** What the canaries have shown (proxy/tls/credentials.ts). In a worker: what the parent has told. */
  readonly credentials: Credentials;
  readonly #expiries: Expiries;
  readonly #names: NamedAddresses;
  /** The Kubernetes versions of the backends. In a worker: what the parent has told. */
  readonly versions: BackendVersions;
  #config: ConfigForCluster;

  private constructor(config: ConfigForCluster, backends: BackendSet, parts: ClusterParts) {
    const { label, journal, others } = parts;
    this.#config = config;
    this.#parts = parts;
    this.label = label;
    this.shared = sharedIn(others);
    this.backends = backends;
    const ofCertificates = { clock: guarded(wallClock, journal, "certificates"), journal };
    this.credentials = new Credentials({
      ...ofCertificates,
      prefix: prefixOf(label),
      random: Math.random,
      onSwap: (trust, wasProven) => this.path.pools.renew(trust, wasProven),
      backends: () => backends.all,
      isReady: (name) => this.isReady(name),
      onProof: () => this.#proven(),
      isTold: others !== undefined && "judge" in others,
    });
    this.#expiries = new Expiries({
      ...ofCertificates,
      openLoopback: (backend) => openUntrusting(backends.addressOf(backend), loopbackName),
    });
    this.versions = new BackendVersions(ofCertificates.clock, journal);
    this.path = this.#createPath();
    this.#names = this.#createNames();
    const { backends: judged, clock, turn, buffered, handle } = this.path;
    const tunnels = new HungTunnels({ clock, backends: judged, read: readRetransmissions });
    const watchTunnel: WatchTunnel = (tunnel, cut) => tunnels.watchTunnel(tunnel, cut);
    this.upgrades = this.#createUpgradeHandler(watchTunnel);
    this.passthrough = this.#createPassthrough(watchTunnel);
    const h1 = createH1({
      handle,
      clock,
      journal,
      upgrade: (request, socket, head, client) => this.upgrades.upgrade(request, socket, head, client),
    });
    this.gate = { clock, turn, buffered, journal, handle, h1, passthrough: this.passthrough };
  }

  /** Creates the cluster. Nothing is opened before `start`. */
  static of(config: ConfigForCluster, parts: ClusterParts): Cluster | Failure {
    const journal = parts.journal.of(parts.label);
    // `cluster` is undefined until the Cluster exists. The backends are created before the cluster, but use it only
    // after they are started.
    let cluster: Cluster | undefined;
    const backends = BackendSet.of(config, {
      clock: guarded(wallClock, journal, "discovery"),
      journal,
      prefix: prefixOf(parts.label),
      onChange: (names) => onDataPath(() => cluster?.reconcile(names)),
      isReady: (name) => cluster?.isReady(name) === true,
      answers: (name) => cluster?.answers(name) === true,
      isTold: parts.others !== undefined && "judge" in parts.others,
    });
    if (backends instanceof Failure) return backends;
    cluster = new Cluster(config, backends, { ...parts, journal });
    return cluster;
  }

  /** Replaces connections to addresses that a backend's name has no longer. */
  #createNames(): NamedAddresses {
    return new NamedAddresses({
      clock: guarded(wallClock, this.#parts.journal, "discovery"),
      backends: () => this.backends.all,
      lookup: addressesOf,
      onAnswer: (name, isUnnamed) =>
        onDataPath(() => this.path.pools.poolOf(name)?.leaveAddresses(isUnnamed)),
    });
  }

  #createPath(): DataPath {
    const { health, cluster } = this.#config;
    const { others, label, ...parts } = this.#parts;
    const judge = others && "judge" in others ? others.judge : undefined;
    return new DataPath({
      ...settingsOf(this.#config),
      ...parts,
      clock: wallClock,
      probes: { probe: this.#createProbe(), times: health.probe, random: Math.random },
      random: Math.random,
      traitsOf: (backend) => this.backends.traitsOf(backend),
      versionOf: (backend) => this.versions.of(backend),
      shared: this.shared,
      judge,
      tellLedger: judge && ((fact) => judge.tellLedger(label, fact)),
      isPerClient: cluster.connectionPool.perClient,
      // Address, credentials and CA are looked up at each dial. A change thus applies to the next connection.
      connect: (backend, owner, trust) => {
        const pair = this.credentials.pairFor(trust);
        const { tcpKeepalive: keepalive } = this.#config.health;
        const { journal } = this.#parts;
        // An operator's command or a new certificate may lead to this dial.
        return onDataPath(() =>
          connectConnection(this.backends.addressOf(backend), owner, { journal, keepalive, pair }),
        );
      },
      asserted: assertedIn(this.#config),
      assertions: this.credentials,
    });
  }

  /** Sends the requests that have waited for a backend to take their identity, and tells the workers. */
  #proven(): void {
    this.path.pending.release();
    const { others } = this.#parts;
    if (others && "parent" in others) others.parent.onProofs(this.label, this.credentials.told);
  }

  /** True if each certificate with which the listeners assert identities was proven, at any backend, at any time. */
  get isProven(): boolean {
    return this.credentials.areAllProven;
  }

  #createProbe(): Probe {
    return createReadyProbe({
      prefix: () => this.#config.cluster.pathPrefix,
      path: () => this.#config.health.probe.path,
      open: (backend) => openSocket(this.backends.addressOf(backend), "http/1.1"),
      seen: (backend, notAfter) => this.#expiries.seen(backend, notAfter),
      versions: this.versions,
    });
  }

  #createPassthrough(watchTunnel: WatchTunnel): Passthrough {
    const { backends, pools, pending } = this.path;
    return new Passthrough({
      clock: wallClock,
      journal: this.#parts.journal,
      prefix: prefixOf(this.label),
      backends,
      pools,
      pending,
      watchTunnel,
      connect: (backend, ends) =>
        connectThrough(this.backends.addressOf(backend), ends, this.#config.health.tcpKeepalive),
    });
  }

  #createUpgradeHandler(watchTunnel: WatchTunnel): UpgradeHandler {
    const { backends, pools, pending } = this.path;
    const connect: DialUpgradeParts["connect"] = (backend, withinMs, { trust, ends }) => {
      const pair = this.credentials.pairFor(trust);
      const { tcpKeepalive: keepalive } = this.#config.health;
      return connectUpgrade(this.backends.addressOf(backend), { keepalive, pair, ends }, withinMs);
    };
    const tunnels = (backend: string): number => this.upgrades.openOn(backend);
    return new UpgradeHandler({
      pathPrefix: () => this.#config.cluster.pathPrefix,
      identify: (request, client) => identify(request, client, wallClock),
      limitsOf: (request, client, asserted) => this.path.limitsOfUpgrade(request, client, asserted),
      clock: wallClock,
      journal: this.#parts.journal,
      watchTunnel,
      dialUpgrade: (client, trust) =>
        dialUpgrade(client, { backends, pools, pending, tunnels, connect, trust }),
    });
  }

  /** Loads the proxy's credentials for backends. Called before `start`, which dials connections. */
  load(): Promise<Failure | undefined> {
    return this.#takeCredentials(this.#config);
  }

  start(): void {
    this.backends.start();
    this.#names.start();
  }

  /**
   * Resolves when all backends have a known state, one of them is ready, and the certificates that assert identities are
   * proven, or after `limits.settleMs`. The result is true if a backend is ready and the certificates are proven.
   */
  settled(): Promise<boolean> {
    const isProven = (): boolean => this.isProven;
    return waitUntilReady(() => this.path.backends.views, wallClock, { withinMs: limits.settleMs, isProven });
  }

  /**
   * Prepares another configuration. The certificates that the proxy presents to backends are used immediately, because
   * requests from a new listener may need them. Returns a function that applies the rest.
   */
  async prepare(config: ConfigForCluster): Promise<(() => void) | Failure> {
    const take = await this.backends.prepare(config);
    if (take instanceof Failure) return take;
    const failure = await this.#takeCredentials(config);
    if (failure !== undefined) return failure;
    return () => {
      this.#config = config;
      this.path.configure(settingsOf(config), config.health.probe);
      take();
    };
  }

  async #takeCredentials(config: ConfigForCluster): Promise<Failure | undefined> {
    const take = await this.credentials.prepare(config);
    return take instanceof Failure ? take : take();
  }

  reconcile(names: readonly string[]): void {
    this.path.reconcile(names);
    this.passthrough.reconcile(names, this.#config.drain.timeoutMs);
    this.#expiries.reconcile(names);
    this.versions.reconcile(names);
    this.credentials.reconcile();
    const { others } = this.#parts;
    if (others && "parent" in others) others.parent.onBackends(this.label, this.backends.found);
  }

  /** Records a worker's evidence about a backend. `process`: the worker's number. */
  learnFrom(process: number, backend: string, evidence: Evidence): void {
    this.path.learn(backend, this.shared?.merged(backend, evidence, process));
  }

  /**
   * Records that a worker itself has closed its last connection to a backend. This is no evidence about the backend's
   * health.
   */
  unconnected(process: number, backend: string): void {
    this.path.learn(backend, this.shared?.unconnected(backend, process));
  }

  /** Drops the evidence of a worker that has ended. */
  ended(process: number): void {
    for (const [backend, evidence] of this.shared?.ended(process) ?? []) this.path.learn(backend, evidence);
  }

  /** True if the cluster has this backend. `backend`: the name in journal and metrics. */
  has(backend: string): boolean {
    return this.path.backends.stateOf(backend) !== undefined;
  }

  get isAnyReady(): boolean {
    return this.path.backends.views.some(({ state }) => state === "ready");
  }

  isReady(backend: string): boolean {
    return this.path.backends.stateOf(backend) === "ready";
  }

  /**
   * True if the backend is ready or suspect. A suspect backend may answer, too, for example after an outage of etcd.
   */
  answers(backend: string): boolean {
    return this.isReady(backend) || this.path.backends.stateOf(backend) === "suspect";
  }

  /**
   * The expiry times of certificates, with the purposes "backend-ca", "client" (the certificate that the proxy presents
   * to backends), "backend" and "backend-loopback".
   */
  get certificates(): readonly Expiry[] {
    return [
      ...this.backends.certificates,
      ...this.credentials.certificates.map((one) => ({ purpose: "client", ...one })),
      ...this.#expiries.all,
    ];
  }

  /** Number of Upgrades and passthrough connections that are open or being opened. */
  get tunnelCount(): number {
    return this.upgrades.openCount + this.passthrough.openCount;
  }

  /** Stops discovery and file reloads. Ends Upgrades and passthrough connections, which outlive their listeners. */
  stop(): void {
    this.backends.stop();
    this.#names.stop();
    this.credentials.stop();
    this.upgrades.cut();
    this.passthrough.cut();
  }
}

function settingsOf({ health, cluster, watches, logging }: ConfigForCluster): PathSettings {
  const { maxStreamsPerConnection: streams, minIdleConnections: warm } = cluster.connectionPool;
  return {
    ...watches,
    avoidUnreachableAPIs: cluster.avoidUnreachableAPIs,
    ping: health.ping,
    connections: { streams, warm, pathPrefix: cluster.pathPrefix },
    accessLog: logging.accessLog,
    limits: cluster.limits,
    shield: cluster.shield,
  };
}

function sharedIn(others: OtherProcesses | undefined): SharedEvidence | undefined {
  return others && "parent" in others ? new SharedEvidence(others.parent.onFacts) : undefined;
}

function prefixOf(label: string): string {
  return label === "" ? "" : `${label}/`;
}

const verdictCheckMs = 20;

/**
 * Resolves when all backends have a known state, one of them is ready and `isProven` returns true, or after `withinMs`.
 * The result is true if a backend is ready and `isProven` returns true.
 */
export function waitUntilReady(
  views: () => readonly BackendView[],
  clock: Clock,
  { withinMs, isProven }: { readonly withinMs: number; readonly isProven: () => boolean },
): Promise<boolean> {
  const until = clock.now() + withinMs;
  return new Promise((resolve) => {
    const look = (): void => {
      const isAnyReady = views().some(({ state }) => state === "ready") && isProven();
      const isAnyUnknown = views().some(({ state }) => state === "unknown");
      if ((isAnyReady && !isAnyUnknown) || clock.now() >= until) resolve(isAnyReady);
      else clock.after(verdictCheckMs, look);
    };
    look();
  });
}
