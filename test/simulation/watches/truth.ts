/**
 * The true history, and the judge of one watch against it: what a client is told must be exactly the changes that
 * match, each once, in order, from where the watch began (G1-G6).
 */
import type { Clock } from "../../../src/base/clock.ts";
import type { KubeObject } from "../../../src/demo/objects/json.ts";
import type { Change, Store } from "../../../src/demo/objects/store.ts";
import type { WatchEvent } from "./events.ts";
import type { Findings } from "./findings.ts";

/** What a watch selects. */
export type Interest = {
  readonly resource: string;
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
  /** Only objects whose label `app` has this value; undefined: all. */
  readonly app: string | undefined;
};

export class Truth {
  readonly store: Store;
  readonly #changes = new Map<string, Change[]>();
  /** When each version was written. */
  readonly #times = new Map<number, number>();

  constructor(store: Store, clock: Clock) {
    this.store = store;
    store.subscribe((change) => {
      this.#times.set(change.version, clock.now());
      const changes = this.#changes.get(change.resource);
      if (changes === undefined) this.#changes.set(change.resource, [change]);
      else changes.push(change);
    });
  }

  changesOf(resource: string): readonly Change[] {
    return this.#changes.get(resource) ?? [];
  }

  /** When a version was written; NaN for one that never was. */
  timeOf(version: number): number {
    return this.#times.get(version) ?? Number.NaN;
  }

  /** Key to version, of all that matched at that version. */
  stateAt(interest: Interest, version: number): Map<string, number> {
    const state = new Map<string, number>();
    for (const change of this.changesOf(interest.resource)) {
      if (change.version > version) break;
      const type = typeFor(interest, change);
      if (type === "DELETED") state.delete(keyOf(change.object));
      else if (type !== undefined) state.set(keyOf(change.object), change.version);
    }
    return state;
  }
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

/** How a change shows to a watch with this interest: an object that enters a selector is ADDED, one that leaves it DELETED. */
export function typeFor(interest: Interest, change: Change): string | undefined {
  const was = matches(interest, change.previous);
  const is = change.type !== "DELETED" && matches(interest, change.object);
  if (is) return was ? "MODIFIED" : "ADDED";
  return was ? "DELETED" : undefined;
}

export type Beginning =
  /** K1: only what comes after this version. */
  | { readonly from: "version"; readonly version: number }
  /** K2: the state first, which a bookmark closes. */
  | { readonly from: "state" }
  /** K3: from a moment of the server's choice. */
  | { readonly from: "now" };

export class Follower {
  readonly #truth: Truth;
  readonly #findings: Findings;
  readonly #interest: Interest;
  readonly #wantsBookmarks: boolean;
  readonly name: string;
  phase: "listing" | "unplaced" | "live";
  /** Of the state, while it comes. */
  readonly #listed = new Map<string, number>();
  /** Index in the changes of this resource: all before it were told or do not concern us. */
  #position = 0;
  /** Of the last event or bookmark. */
  version = 0;
  /** The last version that is surely told whole: of `events`, one version may have many (watch.md §5.3). */
  wholeVersion = 0;
  #bookmarked = 0;
  /** Of a watch from now on: the version that it was told first. */
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
    this.#findings = parts.findings;
    this.#wantsBookmarks = parts.wantsBookmarks;
    this.name = parts.name;
    this.#interest = interest;
    this.phase = beginning.from === "version" ? "live" : beginning.from === "now" ? "unplaced" : "listing";
    if (beginning.from !== "version") return;
    this.#placeAfter(beginning.version);
    this.wholeVersion = beginning.version;
  }

  /** True if all events that it got are of one version, which nothing proved to be complete. */
  get isFirstVersionOpen(): boolean {
    return this.#placedAt !== 0 && this.version === this.#placedAt && this.#bookmarked < this.version;
  }

  /** Whichever side ended it: nothing that happened up to `version` is missing. */
  get missing(): number {
    const changes = this.#truth.changesOf(this.#interest.resource).slice(this.#position);
    return changes.filter((change) => typeFor(this.#interest, change) !== undefined).length;
  }

  /** Takes one event and says what is wrong with it. ERROR is its reader's business. */
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

  /** The first event of a watch from now on says where it began. */
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

  /** The next change that concerns us. */
  #next(): Change | undefined {
    const changes = this.#truth.changesOf(this.#interest.resource);
    for (;;) {
      const change = changes[this.#position];
      if (change === undefined || typeFor(this.#interest, change) !== undefined) return change;
      this.#position += 1;
    }
  }

  #placeAfter(version: number): void {
    const changes = this.#truth.changesOf(this.#interest.resource);
    while ((changes[this.#position]?.version ?? Number.POSITIVE_INFINITY) <= version) this.#position += 1;
  }

  #wrong(validator: "ordered" | "unique" | "reliable" | "bookmarkable", what: string): void {
    this.#findings.wrong(validator, `${this.name} was told ${what}`);
  }
}

function shown({ type, key, version }: WatchEvent): string {
  return `${type} ${key}@${version}`;
}
