/**
 * Prevents that a client goes back in time unnoticed (k/k 59848, G8). A backend's cache may be behind what a client saw
 * elsewhere: a list, or a watch from version 0, returns whatever that cache has. `Observe` reports every such response.
 * `Enforce` requests nothing older than what the client has seen, so that a backend that is behind waits or refuses. It
 * fails open: responses with unreadable versions are ignored, and after several refusals the request passes unchanged.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import type { Journal } from "../../events/journal.ts";
import type { Field } from "../../h2/core/field.ts";
import { type Origins, repeatsVersions } from "../../kube/api-origin.ts";
import { ListVersion } from "../../kube/list-version.ts";
import { firstValue, flagIn } from "../../kube/query.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import { flooredTarget } from "../../kube/resume-request.ts";
import type { Caller } from "../../ledger/caller.ts";
import { answerOf, resourceKey } from "../../watch/session/watch-context.ts";
import type { Client } from "../context/client.ts";
import { clientKey } from "../context/request-context.ts";

/** Limits, each with its reason (see src/base/limits.ts). */
export const staleReadLimits = {
  /**
   * Entries of the versions that clients have seen, by client and resource (k/k 59848): about 250 bytes each; a kubelet
   * has five.
   */
  seenVersions: 50_000,
  /**
   * Rejections in a row of one client's minimum version, 3 s each, after which an older state is better than no answer.
   */
  refusals: 3,
  /** Shortest pause between two reports of stale responses to one client. */
  reportMs: 60_000,
} as const;

/** A client's connection. */
type ClientConnection = { readonly isOpen: boolean };

/**
 * What one client has seen of one resource. No later response should be older, but a client that reads again after it was
 * moved, or restarted, may reach a backend that is behind.
 */
export class SeenVersion {
  /** The client and the resource, as requested. */
  readonly client: string;
  readonly resource: string;
  #version = "";
  /** The connection of the latest request. */
  #latest: ClientConnection | undefined;
  /**
   * What each connection has seen by itself, from the time that several are open at once: they may be several processes
   * behind one address. They are never joined again: which of them a new one succeeds cannot be known.
   */
  #apart: WeakMap<ClientConnection, string> | undefined;
  /** Refusals in a row for requests from that version. */
  #refusals = 0;
  /** When an older response was last reported: a clock reading. */
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(client: string, resource: string) {
    this.client = client;
    this.resource = resource;
  }

  /** The newest version seen on any of its connections; "" before the first. */
  get version(): string {
    return this.#version;
  }

  /** This connection sends a request. One that opens after the last was closed belongs to the same client. */
  meet(connection: ClientConnection): void {
    const before = this.#latest;
    if (before === connection) return;
    this.#latest = connection;
    if (before?.isOpen === true) this.#apart ??= new WeakMap([[before, this.#version]]);
  }

  /** What the client on this connection has certainly seen. */
  seenBy(connection: ClientConnection): string {
    return this.#apart === undefined ? this.#version : (this.#apart.get(connection) ?? "");
  }

  /** The client on this connection has got an event or a bookmark of this version. */
  raise(version: string, connection: ClientConnection): void {
    if (compareVersions(version, this.#version) > 0) this.#version = version;
    if (this.#apart !== undefined && compareVersions(version, this.seenBy(connection)) > 0)
      this.#apart.set(connection, version);
  }

  /** The client on this connection has got a state of this version. */
  shown(version: string, connection: ClientConnection): void {
    this.#refusals = 0;
    this.raise(version, connection);
  }

  /** True at most once in `staleReadLimits.reportMs`: an older response is to be reported. */
  isNews(now: number): boolean {
    if (now - this.#reportedAt < staleReadLimits.reportMs) return false;
    this.#reportedAt = now;
    return true;
  }

  /** Counts a refusal. After several it gives the version up, because old data is better than none; returns true then. */
  refused(): boolean {
    this.#refusals += 1;
    if (this.#refusals < staleReadLimits.refusals) return false;
    this.#refusals = 0;
    this.#version = "";
    return true;
  }
}

export type GuardMode = "Observe" | "Enforce" | "Disabled";

export type StaleReadGuardParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly origins: Origins;
  readonly mode: GuardMode;
};

/** A request, as far as it matters here. */
export type Asking = {
  readonly info: RequestInfo;
  /** The client's own `:path`. */
  readonly target: string;
  readonly client: Client;
  readonly caller: Pick<Caller, "subject">;
  readonly fields: readonly Field[];
};

/** One request: what its client had seen of the resource when it was sent, and what the response contains. */
export class GuardedRead {
  readonly #guard: StaleReadGuard;
  readonly #seenVersion: SeenVersion;
  readonly #connection: ClientConnection;
  /** The version seen when it was sent: what the client sees meanwhile on another stream does not count. */
  readonly #before: string;
  /** As it goes upstream; the client's own unless the version is enforced. */
  readonly target: string;
  readonly isDemanded: boolean;
  readonly #isList: boolean;
  /** The backend that answers it. */
  #backend = "";
  /** Reads the version of a list; undefined before the response, and after its version was found. */
  #reading: ListVersion | undefined;

  constructor(guard: StaleReadGuard, seenVersion: SeenVersion, { client, info, target }: Asking) {
    this.#guard = guard;
    this.#seenVersion = seenVersion;
    this.#connection = client.connection;
    this.#before = seenVersion.seenBy(client.connection);
    this.#isList = info.kind === "plain";
    this.isDemanded = guard.isEnforcing && seenVersion.version !== "" && takesAnyState(info, target);
    this.target = this.isDemanded ? flooredTarget(target, seenVersion.version) : target;
  }

  /** A backend has answered. */
  answered(backend: string, head: readonly Field[]): void {
    this.#backend = backend;
    if (!this.#isList) return;
    const { status, contentType, contentEncoding } = answerOf(head);
    if (status === 200) this.#reading = new ListVersion(contentType, contentEncoding);
  }

  /** Reads the version of a list while the list is forwarded to its client. */
  read(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    if (this.#reading === undefined) return;
    this.#reading.feed(bytes, start, end, endStream);
    const { version } = this.#reading;
    if (version === "") return;
    this.#reading = undefined;
    this.shown(version);
  }

  /** An event, or a bookmark, went to the client. */
  raise(version: string): void {
    this.#seenVersion.raise(version, this.#connection);
  }

  /** The state that the client gets is of this version. */
  shown(version: string): void {
    this.#seenVersion.shown(version, this.#connection);
    if (version === "" || compareVersions(version, this.#before) >= 0) return;
    this.#guard.outdated(this.#seenVersion, { backend: this.#backend, version, seen: this.#before });
  }

  /** The backend did not reach that version within its 3 s (504, watch.md §3.1). */
  refused(): void {
    if (this.isDemanded) this.#guard.refused(this.#seenVersion, this.#seenVersion.version);
  }
}

export class StaleReadGuard {
  readonly #parts: StaleReadGuardParts;
  /** By client and resource. The least recently used is forgotten first. */
  readonly #seenVersions = new Lru<string, SeenVersion>(staleReadLimits.seenVersions);
  /** Since the start: stale responses, requests with an enforced version, and refusals of those. */
  readonly counts = { outdated: 0, demanded: 0, refused: 0 };

  constructor(parts: StaleReadGuardParts) {
    this.#parts = parts;
  }

  /** True if nothing older than what the client has seen is requested. */
  get isEnforcing(): boolean {
    return this.#parts.mode === "Enforce";
  }

  /** Undefined if the response to this request does not show which version of the data the client has seen. */
  guardedRead(asking: Asking): GuardedRead | undefined {
    const { info, target, client, caller, fields } = asking;
    if (
      this.#parts.mode === "Disabled" ||
      !showsState(info, target) ||
      this.#parts.origins.of(info).isForeign
    )
      return undefined;
    const { name, namespace, pod } = caller.subject;
    const seenVersion = this.seenBy(
      clientKey(client, fields),
      `${name} ${namespace}/${pod}`,
      resourceKey(info),
    );
    seenVersion.meet(client.connection);
    const read = new GuardedRead(this, seenVersion, asking);
    if (read.isDemanded) this.counts.demanded += 1;
    return read;
  }

  /** `client` and `identity` are what stays the same when a client reconnects; only the first is displayed. */
  seenBy(client: string, identity: string, resource: string): SeenVersion {
    const key = `${client} ${identity} ${resource}`;
    const seenVersion = this.#seenVersions.get(key) ?? new SeenVersion(client, resource);
    this.#seenVersions.set(key, seenVersion);
    return seenVersion;
  }

  outdated(
    seenVersion: SeenVersion,
    answer: { readonly backend: string; readonly version: string; readonly seen: string },
  ): void {
    this.counts.outdated += 1;
    const { clock, journal } = this.#parts;
    if (seenVersion.isNews(clock.now()))
      journal.write({ kind: "response.stale", ...whose(seenVersion), ...answer });
  }

  refused(seenVersion: SeenVersion, seen: string): void {
    this.counts.refused += 1;
    if (seenVersion.refused())
      this.#parts.journal.write({ kind: "stale_read_guard.bypassed", ...whose(seenVersion), seen });
  }
}

function whose({ client, resource }: SeenVersion): { client: string; userAgent: string; resource: string } {
  const space = client.indexOf(" ");
  return { client: client.slice(0, space), userAgent: client.slice(space + 1), resource };
}

function queryOf(target: string): string {
  return target.slice(target.indexOf("?") + 1);
}

/** True for a watch, and for a list unless it requests the past. */
function showsState(info: RequestInfo, target: string): boolean {
  if (!info.isResource) return false;
  const isList = info.kind === "plain" && info.verb === "list";
  return info.kind === "watch" || (isList && !asksForPast(queryOf(target)));
}

/**
 * True if the client itself requests a list of a certain time, by apiserver's ShouldDelegateList
 * (storage/cacher/delegator): a later page, an exact version, or a version with a limit and without a match, which also
 * means exact.
 */
function asksForPast(query: string): boolean {
  if ((firstValue(query, "continue") ?? "") !== "") return true;
  const match = firstValue(query, "resourceVersionMatch") ?? "";
  const version = firstValue(query, "resourceVersion") ?? "";
  const limit = firstValue(query, "limit") ?? "";
  return match === ""
    ? version !== "" && version !== "0" && limit !== "" && limit !== "0"
    : match === "Exact";
}

/**
 * Version 0, exactly so written, is served from the cache as it is. A newer version can be enforced on a watch only if it
 * requests the initial state itself: servers before 1.34 refuse `sendInitialEvents` for clients that do not know it, and
 * all refuse it without a match. Events have no cache, so etcd returns their present state.
 */
function takesAnyState(info: RequestInfo, target: string): boolean {
  const query = queryOf(target);
  if (target.length > limits.changedTargetBytes || repeatsVersions(info.group, info.resource)) return false;
  if (firstValue(query, "resourceVersion") !== "0") return false;
  const match = firstValue(query, "resourceVersionMatch") ?? "";
  if (info.kind === "plain") return match === "" || match === "NotOlderThan";
  return match === "NotOlderThan" && flagIn(query, "sendInitialEvents") === true;
}
