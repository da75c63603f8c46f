/**
 * The true history, and a validator that compares one watch with it. A client must receive exactly the matching
 * changes, each once and in order, from the version at which the watch began (G1-G6).
 */

import type { KubeObject } from "../../../demo/objects/json.ts";
import type { Change, Store } from "../../../demo/objects/store.ts";
import type { Clock } from "../../../src/base/clock.ts";
import type { WatchEvent } from "./events.ts";
import type { Findings } from "./findings.ts";

/** What a watch selects. */
export type Interest = {
  readonly resource: string;
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
  /** The required value of the label `app`. Undefined: no selector. */
  readonly app: string | undefined;
};

/**
 * Changes in the order of their versions. Old changes can be forgotten: the log then begins with the objects that they
 * have left, and positions in the log stay valid.
 */
export class ChangeLog {
  readonly #changes: Change[] = [];
  /** For each object that exists after the forgotten changes, the latest of them. */
  readonly #before = new Map<string, Change>();
  #forgotten = 0;

  /** The position of the oldest change that is kept. */
  get first(): number {
    return this.#forgotten;
  }

  at(position: number): Change | undefined {
    return this.#changes[position - this.#forgotten];
  }

  from(position: number): readonly Change[] {
    return this.#changes.slice(Math.max(0, position - this.#forgotten));
  }

  push(change: Change): void {
    this.#changes.push(change);
  }

  forgetBefore(version: number): void {
    const found = this.#changes.findIndex((change) => change.version >= version);
    const gone = this.#changes.splice(0, found < 0 ? this.#changes.length : found);
    this.#forgotten += gone.length;
    for (const change of gone) {
      if (change.type === "DELETED") this.#before.delete(keyOf(change.object));
      else this.#before.set(keyOf(change.object), change);
    }
  }

  /** Returns the objects that match at `version`: the key of each and the version of its last change. */
  stateAt(interest: Interest, version: number): Map<string, number> {
    const state = new Map<string, number>();
    for (const [key, change] of this.#before)
      if (matches(interest, change.object)) state.set(key, change.version);
    for (const change of this.#changes) {
      if (change.version > version) break;
      const type = typeFor(interest, change);
      if (type === "DELETED") state.delete(keyOf(change.object));
      else if (type !== undefined) state.set(keyOf(change.object), change.version);
    }
    return state;
  }
}

export class Truth {
  readonly store: Store;
  readonly #clock: Clock;
  /**
   * The changes of each resource, and those of each resource and value of the label `app`. With a selector, a watch reads
   * few changes of others.
   */
  readonly #logs = new Map<string, ChangeLog>();
  /** The time at which each version was written. */
  readonly #times = new Map<number, number>();

  constructor(store: Store, clock: Clock) {
    this.store = store;
    this.#clock = clock;
    store.subscribe((change) => {
      this.#times.set(change.version, clock.now());
      for (const name of logsOf(change)) this.#log(name).push(change);
    });
  }

  /** Returns a log with all changes that concern the interest, and with others. */
  logOf({ resource, app }: Interest): ChangeLog {
    return this.#log(app === undefined ? resource : nameOf(resource, app));
  }

  /** Returns the time at which a version was written, or NaN if there is no such version. */
  timeOf(version: number): number {
    return this.#times.get(version) ?? Number.NaN;
  }

  /** Returns the objects that match at `version`: the key of each and the version of its last change. */
  stateAt(interest: Interest, version: number): Map<string, number> {
    return this.logOf(interest).stateAt(interest, version);
  }

  /**
   * Forgets the changes that are older than `ms`, so that a run of a whole day needs no more memory than one of an hour.
   * A watch that has not received one of them is reported at its next event.
   */
  forget(ms: number): void {
    const until = this.#clock.now() - ms;
    let oldest = 0;
    for (const [version, at] of this.#times) {
      oldest = version;
      if (at >= until) break;
      this.#times.delete(version);
    }
    for (const log of this.#logs.values()) log.forgetBefore(oldest);
  }

  /** Forgets the changes with a label that no watch selects any more. */
  drop({ resource, app }: Interest): void {
    if (app !== undefined) this.#logs.delete(nameOf(resource, app));
  }

  #log(name: string): ChangeLog {
    const known = this.#logs.get(name);
    if (known !== undefined) return known;
    const log = new ChangeLog();
    this.#logs.set(name, log);
    return log;
  }
}

/** Returns the names of the logs of a change. If the label `app` changes, both values' selectors match the change. */
function logsOf({ resource, object, previous }: Change): ReadonlySet<string> {
  const apps = [object, previous].flatMap((one) => one?.metadata.labels["app"] ?? []);
  return new Set([resource, ...apps.map((app) => nameOf(resource, app))]);
}

function nameOf(resource: string, app: string): string {
  return `${resource} ${app}`;
}

export function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}

function matches({ namespace, app }: Interest, object: KubeObject | undefined): boolean {
  if (object === undefined) return false;
  const { metadata } = object;
  return (
    (namespace === undefined || metadata.namespace === namespace) &&
    (app === undefined || metadata.labels["app"] === app)
  );
}

/**
 * Returns the event type of a change for this watch: ADDED if the object begins to match the selector, DELETED if it
 * ceases to match. Undefined if the change concerns no matching object.
 */
export function typeFor(interest: Interest, change: Change): string | undefined {
  const was = matches(interest, change.previous);
  const is = change.type !== "DELETED" && matches(interest, change.object);
  if (is) return was ? "MODIFIED" : "ADDED";
  return was ? "DELETED" : undefined;
}

export type Beginning =
  /** K1: only changes after this version. */
  | { readonly from: "version"; readonly version: number }
  /** K2: initial events, which a bookmark ends, and then changes. */
  | { readonly from: "state" }
  /** K3: changes from a version that the server chooses. */
  | { readonly from: "now" };

export class Follower {
  readonly #truth: Truth;
  readonly #log: ChangeLog;
  readonly #findings: Findings;
  readonly #interest: Interest;
  readonly #wantsBookmarks: boolean;
  readonly name: string;
  phase: "listing" | "unplaced" | "live";
  /** The initial events so far: the version of each object by its key. */
  readonly #listed = new Map<string, number>();
  /** Position in the log. All earlier changes were delivered or do not match this watch. */
  #position: number;
  /** The version of the last event or bookmark. */
  version = 0;
  /**
   * The last version of which the client has certainly received all events. One version of `events` may have several
   * events (watch.md §5.3).
   */
  wholeVersion = 0;
  #bookmarked = 0;
  /** The first version that was received, for a watch that began at a version of the server's choice. */
  #placedAt = 0;

  constructor(
    parts: {
      readonly truth: Truth;
      readonly findings: Findings;
      readonly wantsBookmarks: boolean;
      readonly name: string;
    },
    interest: Interest,
    beginning: Beginning,
  ) {
    this.#truth = parts.truth;
    this.#log = parts.truth.logOf(interest);
    this.#position = this.#log.first;
    this.#findings = parts.findings;
    this.#wantsBookmarks = parts.wantsBookmarks;
    this.name = parts.name;
    this.#interest = interest;
    this.phase = beginning.from === "version" ? "live" : beginning.from === "now" ? "unplaced" : "listing";
    if (beginning.from !== "version") return;
    this.#placeAfter(beginning.version);
    this.wholeVersion = beginning.version;
  }

  /** True if all received events have the same version and no bookmark has shown that it is complete. */
  get isFirstVersionOpen(): boolean {
    return this.#placedAt !== 0 && this.version === this.#placedAt && this.#bookmarked < this.version;
  }

  /**
   * Number of matching changes that the client has not received. It must be 0 at the end, whichever side ended the
   * watch.
   */
  get missing(): number {
    return this.#log.from(this.#position).filter((change) => typeFor(this.#interest, change) !== undefined)
      .length;
  }

  /** Checks one event and records what is wrong with it. The caller handles ERROR events. */
  take(event: WatchEvent): void {
    if (event.type === "BOOKMARK") return this.#bookmark(event);
    if (this.phase === "listing") return this.#list(event);
    if (this.phase === "unplaced") this.#place(event);
    this.#follow(event);
  }

  #list(event: WatchEvent): void {
    if (event.type !== "ADDED") this.#wrong("reliable", `${shown(event)} before the end of the state`);
    if (this.#listed.has(event.key)) this.#wrong("unique", `${shown(event)} twice in the state`);
    this.#listed.set(event.key, event.version);
  }

  #bookmark(event: WatchEvent): void {
    const { version, isInitialEnd } = event;
    if (!this.#wantsBookmarks) this.#wrong("bookmarkable", `${shown(event)} was not asked for`);
    if (isInitialEnd !== (this.phase === "listing"))
      this.#wrong(
        "bookmarkable",
        isInitialEnd ? "the state ended twice" : `${shown(event)} inside the state`,
      );
    if (this.phase === "listing") this.#closeState(version);
    if (version < this.version) this.#wrong("ordered", `${shown(event)} after ${this.version}`);
    if (version > this.#truth.store.revision) this.#wrong("bookmarkable", `${shown(event)} is in the future`);
    const next = this.#next();
    if (this.phase === "live" && next !== undefined && next.version <= version)
      this.#wrong("bookmarkable", `${shown(event)} passes over ${keyOf(next.object)}@${next.version}`);
    this.phase = "live";
    this.#placeAfter(version);
    this.#bookmarked = version;
    this.wholeVersion = version;
    this.version = Math.max(version, this.version);
  }

  #closeState(version: number): void {
    const expected = this.#truth.stateAt(this.#interest, version);
    for (const [key, at] of expected)
      if (this.#listed.get(key) !== at) this.#wrong("reliable", `the state at ${version} lacks ${key}@${at}`);
    for (const [key, at] of this.#listed)
      if (!expected.has(key)) this.#wrong("reliable", `the state at ${version} has ${key}@${at}`);
  }

  /** The first event of a watch from K3 shows at which version the watch began. */
  #place(event: WatchEvent): void {
    this.phase = "live";
    this.#placedAt = event.version;
    this.#placeAfter(event.version - 1);
  }

  #follow(event: WatchEvent): void {
    const next = this.#next();
    if (event.version < this.version) this.#wrong("ordered", `${shown(event)} after ${this.version}`);
    else if (next === undefined || next.version > event.version)
      this.#wrong("unique", `${shown(event)} was told before, or never was`);
    else if (next.version < event.version)
      this.#wrong("reliable", `${shown(event)} passes over ${keyOf(next.object)}@${next.version}`);
    else this.#compare(event, next);
    if (event.version > this.version && this.version > 0) this.wholeVersion = this.version;
    this.version = event.version;
    if (next?.version === event.version) this.#position += 1;
    else this.#placeAfter(event.version);
  }

  #compare(event: WatchEvent, change: Change): void {
    const type = typeFor(this.#interest, change);
    const key = keyOf(change.object);
    if (event.type !== type || event.key !== key)
      this.#wrong("reliable", `${shown(event)} instead of ${type} ${key}@${change.version}`);
  }

  /** Returns the next change that matches this watch. */
  #next(): Change | undefined {
    for (;;) {
      if (this.#position < this.#log.first) this.#forgotten();
      const change = this.#log.at(this.#position);
      if (change === undefined || typeFor(this.#interest, change) !== undefined) return change;
      this.#position += 1;
    }
  }

  /**
   * Called when changes after the watch's position were forgotten. A live watch should have received them. Before a watch
   * is live, its initial events contain what they have left.
   */
  #forgotten(): void {
    const { first } = this.#log;
    if (this.phase === "live" && this.version > 0)
      this.#wrong("reliable", `${first - this.#position} changes were not delivered for a long time`);
    this.#position = first;
  }

  #placeAfter(version: number): void {
    if (this.#position < this.#log.first) this.#forgotten();
    while ((this.#log.at(this.#position)?.version ?? Number.POSITIVE_INFINITY) <= version)
      this.#position += 1;
  }

  #wrong(validator: "ordered" | "unique" | "reliable" | "bookmarkable", what: string): void {
    this.#findings.wrong(validator, `${this.name} was told ${what}`);
  }
}

function shown({ type, key, version }: WatchEvent): string {
  return `${type} ${key}@${version}`;
}
