/**
 * All clusters that the process serves. A request for one cluster never goes to another. All clusters share one limit
 * on buffered bytes. A reload adds, changes and removes clusters.
 */
import { getHeapStatistics } from "node:v8";
import { wallClock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { guarded } from "../../events/guarded-clock.ts";
import type { Journal } from "../../events/journal.ts";
import { type Config, type ConfigForCluster, configsByCluster } from "../../ops/config/config.ts";
import type { Gate } from "../downstream/listen.ts";
import { type Limit, limitKey } from "../limits/limit.ts";
import { OperatorLimits } from "../limits/operator-limits.ts";
import type { Tracer } from "../observe/tracer.ts";
import { BufferLimiter } from "../overload/buffer-limiter.ts";
import type { Sheddable } from "../overload/load-shedding.ts";
import type { LiveRequests } from "../request/active-requests.ts";
import { Cluster } from "./cluster.ts";
import type { OtherProcesses } from "./shared-verdict.ts";

/**
 * Share of the maximum heap size that buffers for slow peers may use. When buffers use more than half of this share,
 * flow-control windows shrink (D2).
 */
const bufferShare = 0.25;

/** A removed cluster whose clients have not left yet. `stay` cancels the removal. */
type Leaving = { readonly cluster: Cluster; readonly stay: () => void };

export type Preparation = {
  readonly take: () => void;
  /** Discards what was created for the reload. Called instead of `take` if the reload fails. */
  readonly drop: () => void;
};

type NextClusters = {
  readonly byName: Map<string, Cluster>;
  readonly changes: (() => void)[];
  readonly made: Cluster[];
};

export type ClustersAround = {
  readonly tracer?: Tracer;
  /** The other processes (the parent or the workers) that send requests to the same backends; default: none. */
  readonly others?: OtherProcesses | undefined;
};

export class Clusters {
  readonly bufferLimiter: BufferLimiter;
  readonly operatorLimits: OperatorLimits;
  readonly #journal: Journal;
  readonly #around: ClustersAround;
  #byName: ReadonlyMap<string, Cluster> = new Map();
  /** The clusters after the reload that is being prepared; undefined while no reload is being prepared. */
  #nextByName: ReadonlyMap<string, Cluster> | undefined;
  readonly #leaving = new Map<string, Leaving>();
  #onGone: (cluster: Cluster) => void = () => {};

  private constructor(journal: Journal, around: ClustersAround) {
    this.#journal = journal;
    this.#around = around;
    this.bufferLimiter = new BufferLimiter(wallClock, getHeapStatistics().heap_size_limit * bufferShare);
    this.operatorLimits = new OperatorLimits(guarded(wallClock, journal), journal);
  }

  /** Creates all clusters. Nothing is opened before `start`. */
  static of(config: Config, journal: Journal, around: ClustersAround = {}): Clusters | Failure {
    const clusters = new Clusters(journal, around);
    const all = new Map<string, Cluster>();
    for (const one of configsByCluster(config)) {
      const cluster = clusters.#make(one, config.clusters.length > 1);
      if (cluster instanceof Failure) return cluster;
      all.set(one.cluster.name, cluster);
    }
    clusters.#byName = all;
    return clusters;
  }

  get present(): readonly Cluster[] {
    return [...this.#byName.values()];
  }

  /** All clusters in use, including those that are being removed. */
  get all(): readonly Cluster[] {
    return [...this.present, ...Array.from(this.#leaving.values(), ({ cluster }) => cluster)];
  }

  named(name: string): Cluster | undefined {
    return this.#byName.get(name);
  }

  /** Returns the cluster of a backend. `backend`: the name in journal and metrics. */
  ownerOf(backend: string): Cluster | undefined {
    return this.all.find((cluster) => cluster.has(backend));
  }

  /**
   * Returns what a listener needs to serve a cluster (`Gate`). While a reload is being prepared, returns the gate that
   * applies after the reload.
   */
  gateOf(name: string): Gate {
    const cluster = (this.#nextByName ?? this.#byName).get(name);
    if (cluster === undefined) throw new Error(`There is no cluster "${name}"`); // configuration validation prevents it
    return cluster.gate;
  }

  async load(): Promise<Failure | undefined> {
    const outcomes = await Promise.all(this.present.map((cluster) => loaded(cluster)));
    return outcomes.find((outcome) => outcome !== undefined);
  }

  start(): void {
    for (const cluster of this.present) cluster.start();
  }

  /** Resolves when each cluster has settled (see `Cluster.settled`). The result is true if any backend is ready. */
  async settled(): Promise<boolean> {
    const outcomes = await Promise.all(this.present.map((cluster) => cluster.settled()));
    return outcomes.includes(true);
  }

  /** Prepares the clusters of another configuration. On a Failure, nothing has changed. */
  async prepare(config: Config): Promise<Preparation | Failure> {
    const next: NextClusters = { byName: new Map(), changes: [], made: [] };
    for (const one of configsByCluster(config)) {
      // Prepares the clusters one after the other, so that the first Failure is returned.
      // oxlint-disable-next-line no-await-in-loop
      const failure = await this.#prepareOne(one, config, next);
      if (failure === undefined) continue;
      next.made.forEach(end);
      return failure;
    }
    this.#nextByName = next.byName;
    return {
      take: () => this.#take(next, config.drain.timeoutMs),
      drop: () => {
        this.#nextByName = undefined;
        next.made.forEach(end);
      },
    };
  }

  async #prepareOne(
    config: ConfigForCluster,
    { clusters }: Config,
    { byName, changes, made }: NextClusters,
  ): Promise<Failure | undefined> {
    const { name } = config.cluster;
    // If the cluster of this name is being removed, `#take` cancels the removal.
    const known = this.#byName.get(name) ?? this.#leaving.get(name)?.cluster;
    if (known !== undefined) {
      const change = await known.prepare(config);
      if (change instanceof Failure) return withLabel(change, known.label);
      byName.set(name, known);
      changes.push(change);
      return undefined;
    }
    const cluster = this.#make(config, clusters.length > 1 || this.all.length > 0);
    if (cluster instanceof Failure) return cluster;
    byName.set(name, cluster);
    made.push(cluster);
    return loaded(cluster);
  }

  #take({ byName, changes, made }: NextClusters, graceMs: number): void {
    this.#nextByName = undefined;
    for (const change of changes) change();
    for (const cluster of made) {
      this.#journal.of(cluster.label).write({ kind: "cluster.added" });
      cluster.start();
    }
    const staying = new Set(byName.values());
    for (const [name, { cluster, stay }] of this.#leaving)
      if (staying.has(cluster)) {
        stay();
        this.#leaving.delete(name);
      }
    const gone = [...this.#byName].filter(([, cluster]) => !staying.has(cluster));
    this.#byName = byName;
    for (const [name, cluster] of gone) this.#leave(name, cluster, graceMs);
  }

  /** Sets the function that is called for each cluster that is removed, before the cluster's metrics are dropped. */
  onGone(run: (cluster: Cluster) => void): void {
    this.#onGone = run;
  }

  /** Removes a cluster after the drain timeout. Until then, its listeners drain its clients. */
  #leave(name: string, cluster: Cluster, graceMs: number): void {
    const stay = guarded(wallClock, this.#journal).after(graceMs, () => {
      this.#leaving.delete(name);
      this.#onGone(cluster);
      end(cluster);
      this.#journal.of(cluster.label).write({ kind: "cluster.removed" });
    });
    this.#leaving.set(name, { cluster, stay });
  }

  #make(config: ConfigForCluster, isBesideOthers: boolean): Cluster | Failure {
    const { name } = config.cluster;
    const label = this.#labelOf(name) ?? (isBesideOthers ? name : "");
    const { bufferLimiter, operatorLimits } = this;
    const outcome = Cluster.of(config, {
      ...this.#around,
      journal: this.#journal,
      bufferLimiter,
      operatorLimits,
      label,
    });
    return outcome instanceof Failure ? withLabel(outcome, label) : outcome;
  }

  /** Returns the label that the parent of this worker has given the cluster; undefined: this process chooses it. */
  #labelOf(name: string): string | undefined {
    const { others } = this.#around;
    return others && "labels" in others ? others.labels()[name] : undefined;
  }

  /** All request limits in force, by `limitKey`. */
  get limits(): ReadonlyMap<string, Limit> {
    const own = this.all.flatMap(({ label, path: { limits } }) =>
      limits.own.map((limit) => [limitKey(label, limit), limit] as const),
    );
    return new Map([
      ...own,
      ...this.operatorLimits.all.map((limit) => [limitKey("", limit), limit] as const),
    ]);
  }

  /** The label of each cluster (its name in journal and metrics), by the cluster's configured name. */
  get labels(): Readonly<Record<string, string>> {
    return Object.fromEntries(Array.from(this.#byName, ([name, { label }]) => [name, label]));
  }

  get exchanges(): LiveRequests {
    const own = (): readonly LiveRequests[] => this.all.map(({ path }) => path.exchanges);
    return {
      get size() {
        return own().reduce((sum, { size }) => sum + size, 0);
      },
      get live() {
        return own().flatMap(({ live }) => live);
      },
    };
  }

  get sheddable(): readonly Sheddable[] {
    return this.all.flatMap(({ path, upgrades }) => [...path.exchanges.live, ...upgrades.live]);
  }

  /** Stops discovery and reloading in all clusters, and ends their tunnels. */
  stop(): void {
    for (const { stay } of this.#leaving.values()) stay();
    for (const cluster of this.all) cluster.stop();
    this.operatorLimits.stop();
  }

  close(): void {
    for (const { path } of this.all) path.close();
  }
}

function end(cluster: Cluster): void {
  cluster.stop();
  cluster.path.closeInSlices();
}

async function loaded(cluster: Cluster): Promise<Failure | undefined> {
  const failure = await cluster.load();
  return failure && withLabel(failure, cluster.label);
}

function withLabel(failure: Failure, label: string): Failure {
  if (label === "") return failure;
  return new Failure(failure.code, failure.origin, `cluster ${label}: ${failure.message}`, failure.cause);
}
