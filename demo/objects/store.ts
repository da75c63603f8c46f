/**
 * Stores objects as etcd does: with one global revision and a limited history of changes. Several apiservers share one
 * store. All code runs in one thread, so a read and a write in one turn of the event loop need no lock.
 */
import type { KubeObject } from "./json.ts";

/**
 * Number of most recent changes that the history always keeps. When the history has twice as many, the older half is
 * dropped. A watch may start at any change in the history. A real apiserver keeps 100 to 102,400 changes per resource.
 */
const historyChanges = 10_000;

/** A committed write. `object` has the version of this change, even for DELETED. */
export type Change = {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly resource: string;
  readonly version: number;
  readonly object: KubeObject;
  /**
   * The object before this change; undefined: there was none. A watch with a selector needs the objects before and
   * after the change, to decide whether the client must get ADDED, MODIFIED or DELETED.
   */
  readonly previous: KubeObject | undefined;
};

/** A source of objects for reads and watches: the store itself, or the cache of one apiserver. */
export type Source = {
  /** The highest version in the source, over all resources. */
  readonly revision: number;
  /** Returns the version up to which the source contains all changes of the resource. It may be below `revision`. */
  revisionOf(resource: string): number;
  /** The lowest version from which `since` can return the complete history. */
  readonly oldest: number;
  get(resource: string, namespace: string, name: string): KubeObject | undefined;
  list(resource: string, namespace?: string): KubeObject[];
  since(resource: string, version: number): Change[] | undefined;
  subscribe(watcher: (change: Change) => void): () => void;
};

export class Store implements Source {
  #revision = 1;
  /** Objects by resource, then by "namespace/name". */
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  readonly #historyLimit: number;
  #history: Change[] = [];
  /** Version of the newest change that was dropped from the history. A watch may start at it, but not before it. */
  #forgotten = 1;
  readonly #watchers = new Set<(change: Change) => void>();

  constructor(historyLimit: number = historyChanges) {
    this.#historyLimit = historyLimit;
  }

  get revision(): number {
    return this.#revision;
  }

  revisionOf(): number {
    return this.#revision;
  }

  get oldest(): number {
    return this.#forgotten;
  }

  get(resource: string, namespace: string, name: string): KubeObject | undefined {
    return this.#objects.get(resource)?.get(`${namespace}/${name}`);
  }

  /** Returns objects in the order of their keys, as etcd does. Without a namespace, returns those of all namespaces. */
  list(resource: string, namespace?: string): KubeObject[] {
    const all = [...(this.#objects.get(resource) ?? [])];
    const wanted = namespace === undefined ? all : all.filter(([key]) => key.startsWith(`${namespace}/`));
    return wanted.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  /** Returns the resource and the name of each object in a namespace. */
  within(namespace: string): [string, string][] {
    return [...this.#objects.keys()].flatMap((resource) =>
      this.list(resource, namespace).map(({ metadata }): [string, string] => [resource, metadata.name]),
    );
  }

  /** Adds or replaces an object. Returns the object with its new version. */
  put(resource: string, object: KubeObject): KubeObject {
    const { namespace, name } = object.metadata;
    const previous = this.get(resource, namespace, name);
    const objects = this.#objects.get(resource) ?? new Map<string, KubeObject>();
    this.#objects.set(resource, objects);
    const stored = this.#versioned(object);
    objects.set(`${namespace}/${name}`, stored);
    this.#commit({
      type: previous === undefined ? "ADDED" : "MODIFIED",
      resource,
      version: this.#revision,
      object: stored,
      previous,
    });
    return stored;
  }

  /** Removes an object. Returns it with the version of the removal; undefined: there was no such object. */
  remove(resource: string, namespace: string, name: string): KubeObject | undefined {
    const previous = this.get(resource, namespace, name);
    if (previous === undefined) return undefined;
    this.#objects.get(resource)?.delete(`${namespace}/${name}`);
    const object = this.#versioned(previous);
    this.#commit({ type: "DELETED", resource, version: this.#revision, object, previous });
    return object;
  }

  /**
   * Removes several objects in one change, so that all these deletions have the same version. The expiry of an etcd
   * lease has the same effect (k/k 110210). Returns how many of the objects existed.
   */
  expire(resource: string, objects: readonly KubeObject[]): number {
    const present = objects.flatMap(({ metadata: { namespace, name } }) => {
      const previous = this.get(resource, namespace, name);
      return previous === undefined ? [] : [previous];
    });
    if (present.length > 0) this.#revision += 1;
    for (const previous of present) {
      this.#objects.get(resource)?.delete(`${previous.metadata.namespace}/${previous.metadata.name}`);
      const object = this.#stamped(previous);
      this.#commit({ type: "DELETED", resource, version: this.#revision, object, previous });
    }
    return present.length;
  }

  /** Drops all changes up to and including `version`, as etcd's compaction does. */
  compact(version: number): void {
    this.#forgotten = Math.max(this.#forgotten, Math.min(version, this.#revision));
    this.#history = this.#history.filter((change) => change.version > this.#forgotten);
  }

  /** Returns all changes of a resource after `version`, oldest first; undefined: some of them were dropped. */
  since(resource: string, version: number): Change[] | undefined {
    if (version < this.#forgotten) return undefined;
    return this.#history.filter((change) => change.version > version && change.resource === resource);
  }

  /**
   * Returns a copy of the store as of `version`, like a restored backup. The histories of the store and of the copy may
   * then diverge.
   */
  copyAt(version: number): Store {
    const copy = new Store(this.#historyLimit);
    copy.#revision = Math.min(this.#revision, Math.max(version, this.#forgotten));
    copy.#forgotten = copy.#revision;
    for (const [resource, objects] of this.#objects) copy.#objects.set(resource, new Map(objects));
    const undone = this.#history.filter((change) => change.version > copy.#revision);
    for (const { resource, object, previous } of undone.toReversed()) {
      const key = `${object.metadata.namespace}/${object.metadata.name}`;
      if (previous === undefined) copy.#objects.get(resource)?.delete(key);
      else copy.#objects.get(resource)?.set(key, previous);
    }
    return copy;
  }

  /** Calls `watcher` for each later change, in the order of versions. Returns a function that unsubscribes. */
  subscribe(watcher: (change: Change) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #versioned(object: KubeObject): KubeObject {
    this.#revision += 1;
    return this.#stamped(object);
  }

  #stamped(object: KubeObject): KubeObject {
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#revision) } };
  }

  /**
   * Passes a change to all watchers. A watcher must not write, because the other watchers would then get the new change
   * before this one.
   */
  #commit(change: Change): void {
    this.#history.push(change);
    if (this.#history.length > this.#historyLimit * 2) this.#forget();
    for (const watcher of this.#watchers) watcher(change);
  }

  /**
   * Drops the older half of the history in one step. To drop changes one by one would copy all other changes each time.
   */
  #forget(): void {
    const kept = this.#history.slice(-this.#historyLimit);
    this.#forgotten = this.#history.at(-this.#historyLimit - 1)?.version ?? this.#forgotten;
    this.#history = kept;
  }
}
