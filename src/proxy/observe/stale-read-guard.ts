/**
 * Detects or prevents stale reads: responses whose data is older than data that the client has already received (k/k
 * 59848, G8). One backend's cache may be older than another's, and a list or a watch from version 0 gets whatever the
 * cache contains.
 *
 * In mode `Observe` the guard reports each such response. In mode `Enforce` the guard makes such lists and watches
 * demand at least the version that the client has received. A backend with an older cache then waits or refuses.
 * Responses whose version cannot be read are ignored. After several refusals, the client's requests are forwarded
 * unchanged.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import type { Journal } from "../../events/journal.ts";
import type { Field } from "../../h2/core/field.ts";
import { type Origins, repeatsVersions } from "../../kube/api-origin.ts";
import { ListVersion } from "../../kube/list-version.ts";
import { firstValue, flagIn, queryOf } from "../../kube/query.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import { flooredTarget } from "../../kube/resume-request.ts";
import type { Caller } from "../../ops/ledger/caller.ts";
import type { Client } from "../../upstream/context/client.ts";
import { clientKey } from "../../upstream/context/request-context.ts";
import { answerOf, resourceKey } from "../../watch/session/watch-context.ts";

export const staleReadLimits = {
  /**
   * Maximum number of remembered versions, one for each client and resource. A version takes 250 bytes. A kubelet needs
   * five.
   */
  seenVersions: 50_000,
  /** After this many refusals in a row (each a 504 after 3 s), a client's requests demand no minimum version. */
  refusals: 3,
  /** Minimum time in ms between two reports of stale responses to one client. */
  reportMs: 60_000,
} as const;

type ClientConnection = { readonly isOpen: boolean };

/**
 * The newest version of one resource that one client has received. No later response should be older, but a client that
 * reads again after its restart, or after a move to another backend, may reach an older cache.
 */
export class SeenVersion {
  readonly client: string;
  readonly resource: string;
  #version = "";
  #latest: ClientConnection | undefined;
  /**
   * Versions by connection, recorded once the client has had two connections open at the same time, because these may
   * belong to several processes at one address. These versions are never merged into one again, because a new
   * connection may belong to any of the processes. Undefined: the client never had two connections open at the same
   * time.
   */
  #apart: WeakMap<ClientConnection, string> | undefined;
  /** Number of consecutive refusals. A backend refuses if it does not reach the client's newest version in time. */
  #refusals = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(client: string, resource: string) {
    this.client = client;
    this.resource = resource;
  }

  /** The newest version received on any of the client's connections; "": none yet. */
  get version(): string {
    return this.#version;
  }

  /**
   * Records a request on this connection. If the previous connection is closed, both connections count as those of one
   * process.
   */
  meet(connection: ClientConnection): void {
    const before = this.#latest;
    if (before === connection) return;
    this.#latest = connection;
    if (before?.isOpen === true) this.#apart ??= new WeakMap([[before, this.#version]]);
  }

  /**
   * Returns the newest resource version that the client process behind this connection must have received; "": none
   * known. Other connections of the same client may belong to other processes, so what they received does not count.
   */
  seenBy(connection: ClientConnection): string {
    return this.#apart === undefined ? this.#version : (this.#apart.get(connection) ?? "");
  }

  /** Records that the client got an event or a bookmark of this version on this connection. */
  raise(version: string, connection: ClientConnection): void {
    if (compareVersions(version, this.#version) > 0) this.#version = version;
    if (this.#apart !== undefined && compareVersions(version, this.seenBy(connection)) > 0)
      this.#apart.set(connection, version);
  }

  /** Records that the client got a list, or the initial events of a watch, with this version on this connection. */
  shown(version: string, connection: ClientConnection): void {
    this.#refusals = 0;
    this.raise(version, connection);
  }

  /** True if this stale response should be reported. That is the case at most once in `staleReadLimits.reportMs`. */
  isNews(now: number): boolean {
    if (now - this.#reportedAt < staleReadLimits.reportMs) return false;
    this.#reportedAt = now;
    return true;
  }

  /**
   * Counts a 504 from a backend that did not have the demanded version. After several in a row, forgets the version and
   * returns true, because old data is better for the client than none. Returns false before that.
   */
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

export type ClassifiedRequest = {
  readonly info: RequestInfo;
  /** The client's own `:path`. */
  readonly target: string;
  readonly client: Client;
  readonly caller: Pick<Caller, "subject">;
  readonly fields: readonly Field[];
};

/** One guarded request: which version its client had received before, and which version the response has. */
export class GuardedRead {
  readonly #guard: StaleReadGuard;
  readonly #seenVersion: SeenVersion;
  readonly #connection: ClientConnection;
  /** The newest version that the client had received when the request was sent. */
  readonly #before: string;
  /** The `:path` that is sent to the backend: the client's own, or the same with a minimum version. */
  readonly target: string;
  readonly isDemanded: boolean;
  readonly #isList: boolean;
  #answeredBy = "";
  /** Searches a list for its version. Undefined before the response, and again once the version was found. */
  #reading: ListVersion | undefined;

  constructor(guard: StaleReadGuard, seenVersion: SeenVersion, { client, info, target }: ClassifiedRequest) {
    this.#guard = guard;
    this.#seenVersion = seenVersion;
    this.#connection = client.connection;
    this.#before = seenVersion.seenBy(client.connection);
    this.#isList = info.kind === "plain";
    this.isDemanded = guard.isEnforcing && seenVersion.version !== "" && takesAnyState(info, target);
    this.target = this.isDemanded ? flooredTarget(target, seenVersion.version) : target;
  }

  /** Returns true if the backend has refused the request, because its data is older than the demanded version. */
  answered(backend: string, head: readonly Field[]): boolean {
    this.#answeredBy = backend;
    const isBehind = this.isDemanded && head[0]?.value === "504";
    if (isBehind) this.refused();
    if (!this.#isList) return isBehind;
    const { status, contentType, contentEncoding } = answerOf(head);
    if (status === 200) this.#reading = new ListVersion(contentType, contentEncoding);
    return isBehind;
  }

  /** Searches the forwarded bytes of a list for the list's resource version. */
  read(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    if (this.#reading === undefined) return;
    this.#reading.feed(bytes, start, end, endStream);
    const { version } = this.#reading;
    if (version === "") return;
    this.#reading = undefined;
    this.shown(version);
  }

  /** Records that an event or a bookmark of this version went to the client. */
  raise(version: string): void {
    this.#seenVersion.raise(version, this.#connection);
  }

  /**
   * Records that the client gets a list, or the initial events of a watch, with this version. Reports the response as
   * stale if the client had received a newer version before.
   */
  shown(version: string): void {
    this.#seenVersion.shown(version, this.#connection);
    if (version === "" || compareVersions(version, this.#before) >= 0) return;
    this.#guard.outdated(this.#seenVersion, { backend: this.#answeredBy, version, seen: this.#before });
  }

  /**
   * Records that the backend answered 504, because its cache did not reach the demanded version within 3 s (watch.md
   * §3.1).
   */
  refused(): void {
    if (this.isDemanded) this.#guard.refused(this.#seenVersion, this.#seenVersion.version);
  }
}

export class StaleReadGuard {
  readonly #parts: StaleReadGuardParts;
  /** The newest resource version that each client has seen of each resource. */
  readonly #seenVersions = new Lru<string, SeenVersion>(staleReadLimits.seenVersions);
  mode: GuardMode;
  /**
   * Counts since the process started: stale responses, requests to which a minimum version was added, and such requests
   * that a backend refused.
   */
  readonly counts = { outdated: 0, demanded: 0, refused: 0 };

  constructor(parts: StaleReadGuardParts) {
    this.#parts = parts;
    this.mode = parts.mode;
  }

  get isEnforcing(): boolean {
    return this.mode === "Enforce";
  }

  /** Returns undefined if the guard is disabled, or if the response will not show the version of its data. */
  guardedRead(request: ClassifiedRequest): GuardedRead | undefined {
    const { info, target, client, caller, fields } = request;
    if (this.mode === "Disabled" || !showsState(info, target) || this.#parts.origins.of(info).isForeign)
      return undefined;
    const { name, namespace, pod } = caller.subject;
    const seenVersion = this.seenBy(
      clientKey(client, fields),
      `${name} ${namespace}/${pod}`,
      resourceKey(info),
    );
    seenVersion.meet(client.connection);
    const read = new GuardedRead(this, seenVersion, request);
    if (read.isDemanded) this.counts.demanded += 1;
    return read;
  }

  /**
   * Returns what a client has seen of a resource, and creates the entry if there is none. `identity` distinguishes
   * clients that share one address.
   */
  seenBy(client: string, identity: string, resource: string): SeenVersion {
    const key = `${client} ${identity} ${resource}`;
    const seenVersion = this.#seenVersions.get(key) ?? new SeenVersion(client, resource);
    this.#seenVersions.set(key, seenVersion);
    return seenVersion;
  }

  /** Forgets what clients have seen, because the proxy has accepted another history, which lacks these versions. */
  forgetSeen(): void {
    this.#seenVersions.clear();
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

/**
 * True if the response shows the present state of a resource: for a watch, and for a list unless it requests a past
 * state.
 */
function showsState(info: RequestInfo, target: string): boolean {
  if (!info.isResource) return false;
  const isList = info.kind === "plain" && info.verb === "list";
  return info.kind === "watch" || (isList && !asksForPast(queryOf(target)));
}

/**
 * True if the query requests a list of a past state, by the rules of the apiserver (ShouldDelegateList in
 * storage/cacher/delegator): a later page, an exact version, or a `resourceVersion` with a `limit` and without
 * `resourceVersionMatch`. The apiserver serves the last form, too, at exactly that version.
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
 * True if the guard can demand a minimum version. Only for version "0" does the apiserver return its cache without
 * comparing versions. A watch must also request the initial state itself, because the guard cannot add
 * `sendInitialEvents`: servers before 1.34 refuse it from clients that do not support it, and all servers refuse it
 * without `resourceVersionMatch`. Lists of events are exempt, because etcd answers them.
 */
function takesAnyState(info: RequestInfo, target: string): boolean {
  const query = queryOf(target);
  if (target.length > limits.changedTargetBytes || repeatsVersions(info.group, info.resource)) return false;
  if (firstValue(query, "resourceVersion") !== "0") return false;
  const match = firstValue(query, "resourceVersionMatch") ?? "";
  if (info.kind === "plain") return match === "" || match === "NotOlderThan";
  return match === "NotOlderThan" && flagIn(query, "sendInitialEvents") === true;
}
