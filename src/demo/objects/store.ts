/**
 * The equivalent of etcd: objects under one global revision, and a bounded history of changes. Several apiservers share
 * one store. It is single-threaded, so a read and a write in the same turn need no lock.
 */
import type { KubeObject } from "./json.ts";

/** How far back watches may start, in changes; a real apiserver keeps 100 to 102,400 per resource. */
const historyChanges = 10_000;

/** One committed write. `object` carries the version of this change, also for DELETED. */
export type Change = {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly resource: string;
  readonly version: number;
  readonly object: KubeObject;
  /** The object before this change; a watch needs it to detect objects that leave its selector. */
  readonly previous: KubeObject | undefined;
};

/** Where a watch reads its events: the store itself, or one apiserver's cache of it. */
export type Source = {
  /** The version of the latest change of any resource that it knows. */
  readonly revision: number;
  /**
   * The version up to which it knows this resource completely. A cache that etcd notifies rarely is behind `revision`.
   */
  revisionOf(resource: string): number;
  /** The lowest version for which `since` has the complete history. */
  readonly oldest: number;
  get(resource: string, namespace: string, name: string): KubeObject | undefined;
  list(resource: string, namespace?: string): KubeObject[];
  since(resource: string, version: number): Change[] | undefined;
  subscribe(watcher: (change: Change) => void): () => void;
};

export class Store implements Source {
  #revision = 1;
  /** Resource → namespace/name → object. */
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  readonly #historyLimit: number;
  #history: Change[] = [];
  /** Changes up to this version are dropped: a watch may start at it, not below. */
  #forgotten = 1;
  readonly #watchers = new Set<(change: Change) => void>();

  constructor(historyLimit: number = historyChanges) {
    this.#historyLimit = historyLimit;
  }

  /** The version of the latest change of any resource. */
  get revision(): number {
    return this.#revision;
  }

  revisionOf(): number {
    return this.#revision;
  }

  /** The lowest version for which `since` has the complete history. */
  get oldest(): number {
    return this.#forgotten;
  }

  get(resource: string, namespace: string, name: string): KubeObject | undefined {
    return this.#objects.get(resource)?.get(`${namespace}/${name}`);
  }

  /** In key order, as etcd returns them; without a namespace, those of all namespaces. */
  list(resource: string, namespace?: string): KubeObject[] {
    const all = [...(this.#objects.get(resource) ?? [])];
    const wanted = namespace === undefined ? all : all.filter(([key]) => key.startsWith(`${namespace}/`));
    return wanted.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  /** Returns resource and name of every object in a namespace. */
  within(namespace: string): [string, string][] {
    return [...this.#objects.keys()].flatMap((resource) =>
      this.list(resource, namespace).map(({ metadata }): [string, string] => [resource, metadata.name]),
    );
  }

  /** Adds or replaces the object; returns it with its new version. */
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

  /** Returns the object with the version of its removal, or undefined if there was none. */
  remove(resource: string, namespace: string, name: string): KubeObject | undefined {
    const previous = this.get(resource, namespace, name);
    if (previous === undefined) return undefined;
    this.#objects.get(resource)?.delete(`${namespace}/${name}`);
    const object = this.#versioned(previous);
    this.#commit({ type: "DELETED", resource, version: this.#revision, object, previous });
    return object;
  }

  /** Removes all of them at one version, as the expiry of a shared lease does (k/k 110210). Returns how many existed. */
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

  /** Drops every change up to `version`, as etcd's compaction does. */
  compact(version: number): void {
    this.#forgotten = Math.max(this.#forgotten, Math.min(version, this.#revision));
    this.#history = this.#history.filter((change) => change.version > this.#forgotten);
  }

  /** Returns every change of this resource above `version`, oldest first; undefined if some of them were dropped. */
  since(resource: string, version: number): Change[] | undefined {
    if (version < this.#forgotten) return undefined;
    return this.#history.filter((change) => change.version > version && change.resource === resource);
  }

  /** Returns another store with the state at `version`: a restored backup, whose history differs from there on. */
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

  /** Calls `watcher` for every later change in version order; the returned function unsubscribes. */
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

  /** A watcher must not write: later watchers would get its change before this one. */
  #commit(change: Change): void {
    this.#history.push(change);
    if (this.#history.length > this.#historyLimit * 2) this.#forget();
    for (const watcher of this.#watchers) watcher(change);
  }

  /** Drops half at a time, so that a write does not copy the whole history. */
  #forget(): void {
    const kept = this.#history.slice(-this.#historyLimit);
    this.#forgotten = this.#history.at(-this.#historyLimit - 1)?.version ?? this.#forgotten;
    this.#history = kept;
  }
}
