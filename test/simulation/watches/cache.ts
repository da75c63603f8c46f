/**
 * The watch cache of one apiserver. It follows the store with a delay, may stop while the store goes on, and has no
 * events from before its own start, so a fresh cache refuses older versions (watch.md §5.4). It learns its current
 * revision of a resource from a change of that resource or from etcd's progress notification (§6.1).
 */

import type { KubeObject } from "../../../demo/objects/json.ts";
import type { Change, Source, Store } from "../../../demo/objects/store.ts";
import type { Clock } from "../../../src/base/clock.ts";

/**
 * `everyMs` is the interval of etcd's progress notifications. `isAsked`: the apiserver requests a notification when it
 * needs one. Without a `Progress` a cache always knows the store's revision.
 */
export type Progress = { readonly everyMs: number; readonly isAsked: boolean };

export class Cache implements Source {
  readonly #clock: Clock;
  #store: Store;
  #leaveStore: () => void;
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  readonly #watchers = new Set<(change: Change) => void>();
  /** Watchers that get only the changes of objects with this value of the label `app`. */
  readonly #byApp = new Map<string, Set<(change: Change) => void>>();
  /** The value of the label `app` that the next subscriber selects. Undefined: it gets all changes. */
  selectedApp: string | undefined;
  #history: Change[] = [];
  /** Changes that the cache has not received yet, each with the time at which it may receive it. */
  readonly #coming: { readonly change: Change; readonly at: number }[] = [];
  #isFrozen = false;
  #isDue = false;
  /** The delay between a write to the store and its arrival here. */
  lagMs = 0;
  revision: number;
  oldest: number;
  readonly #progress: Progress | undefined;
  /** The first revision of each cache that is filled only on request. */
  readonly #begunAt = new Map<string, number>();
  readonly #revisions = new Map<string, number>();

  constructor(store: Store, clock: Clock, resources: readonly string[], progress?: Progress) {
    this.#progress = progress;
    this.#store = store;
    this.#clock = clock;
    this.revision = store.revision;
    this.oldest = store.revision;
    for (const resource of resources) this.#fill(resource);
    this.#leaveStore = store.subscribe((change) => this.#hear(change));
    if (progress !== undefined) this.#notify(progress.everyMs);
  }

  #notify(everyMs: number): void {
    this.#clock.after(everyMs, () => {
      for (const resource of this.#revisions.keys()) this.#revisions.set(resource, this.revision);
      this.#notify(everyMs);
    });
  }

  /**
   * A request waits until this cache is as new as etcd. The apiserver then requests etcd's progress, if `isAsked` is
   * set.
   */
  catchUp(resource: string): void {
    if (this.#progress?.isAsked === true) this.#revisions.set(resource, this.revision);
  }

  revisionOf(resource: string): number {
    return this.#progress === undefined ? this.revision : (this.#revisions.get(resource) ?? this.revision);
  }

  get(resource: string, namespace: string, name: string): KubeObject | undefined {
    return this.#objects.get(resource)?.get(`${namespace}/${name}`);
  }

  list(resource: string, namespace?: string): KubeObject[] {
    const all = [...(this.#objects.get(resource) ?? [])];
    const wanted = namespace === undefined ? all : all.filter(([key]) => key.startsWith(`${namespace}/`));
    return wanted.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  /** The cache of this resource is filled now, so it has no events from before. */
  begin(resource: string): void {
    this.#begunAt.set(resource, this.revision);
  }

  oldestOf(resource: string): number {
    return Math.max(this.oldest, this.#begunAt.get(resource) ?? 0);
  }

  since(resource: string, version: number): Change[] | undefined {
    if (version < this.oldestOf(resource)) return undefined;
    return this.#history.filter((change) => change.version > version && change.resource === resource);
  }

  subscribe(watcher: (change: Change) => void): () => void {
    const { selectedApp: app } = this;
    if (app !== undefined) return this.#subscribeTo(app, watcher);
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #subscribeTo(app: string, watcher: (change: Change) => void): () => void {
    const all = this.#byApp.get(app) ?? new Set();
    this.#byApp.set(app, all);
    all.add(watcher);
    return () => {
      all.delete(watcher);
      if (all.size === 0 && this.#byApp.get(app) === all) this.#byApp.delete(app);
    };
  }

  #watchersOf({ object, previous }: Change): ((change: Change) => void)[] {
    const apps = new Set([object, previous].flatMap((one) => one?.metadata.labels["app"] ?? []));
    return [...this.#watchers, ...Array.from(apps).flatMap((app) => [...(this.#byApp.get(app) ?? [])])];
  }

  /** Its connection to etcd is cut: the cache stops at its present content and still answers from it. */
  freeze(): void {
    this.#isFrozen = true;
  }

  thaw(): void {
    this.#isFrozen = false;
    this.#take();
  }

  /**
   * Begins again as a restarted process does, possibly on another store: with all present objects and without history.
   */
  restart(store: Store = this.#store): void {
    this.#leaveStore();
    this.#store = store;
    this.#leaveStore = store.subscribe((change) => this.#hear(change));
    this.#isFrozen = false;
    this.#coming.length = 0;
    this.#watchers.clear();
    this.#byApp.clear();
    this.#history = [];
    this.revision = this.#store.revision;
    this.oldest = this.revision;
    for (const resource of Array.from(this.#objects.keys())) this.#fill(resource);
  }

  /** Forgets the events up to and including `version`. */
  compact(version: number): void {
    this.oldest = Math.max(this.oldest, Math.min(version, this.revision));
    this.#history = this.#history.filter((change) => change.version > this.oldest);
  }

  #fill(resource: string): void {
    const objects = this.#store.list(resource).map((object): [string, KubeObject] => {
      const { namespace, name } = object.metadata;
      return [`${namespace}/${name}`, object];
    });
    this.#objects.set(resource, new Map(objects));
    this.#revisions.set(resource, this.revision);
  }

  #hear(change: Change): void {
    this.#coming.push({ change, at: this.#clock.now() + this.lagMs });
    // Deferred to a later tick, so that all changes of one version are applied together, as etcd sends them.
    if (!this.#isDue) this.#wake(this.lagMs);
  }

  #wake(ms: number): void {
    this.#isDue = true;
    this.#clock.after(ms, () => {
      this.#isDue = false;
      this.#take();
    });
  }

  #take(): void {
    const now = this.#clock.now();
    while (!this.#isFrozen) {
      const [next] = this.#coming;
      if (next === undefined) return;
      if (next.at > now) return this.#isDue ? undefined : this.#wake(next.at - now);
      this.#applyVersion(next.change.version);
    }
  }

  /** Applies all changes of one version before any watch receives the first of them. */
  #applyVersion(version: number): void {
    const changes: Change[] = [];
    while (this.#coming[0]?.change.version === version) {
      const first = this.#coming.shift();
      if (first !== undefined) changes.push(first.change);
    }
    this.revision = version;
    for (const change of changes) this.#apply(change);
    for (const change of changes) for (const watcher of this.#watchersOf(change)) watcher(change);
  }

  #apply(change: Change): void {
    const { type, resource, object, version } = change;
    this.#revisions.set(resource, version);
    const key = `${object.metadata.namespace}/${object.metadata.name}`;
    const objects = this.#objects.get(resource) ?? new Map<string, KubeObject>();
    this.#objects.set(resource, objects);
    if (type === "DELETED") objects.delete(key);
    else objects.set(key, object);
    this.#history.push(change);
  }
}
