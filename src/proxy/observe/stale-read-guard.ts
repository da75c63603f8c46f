/**
 * Prevents that a client goes back in time unnoticed (k/k 59848, G8). A backend's cache may be behind what a client saw
 * elsewhere: a list, or a watch from version 0, returns whatever that cache has. `Observe` reports every such response.
 * `Enforce` requests nothing older than what the client has seen, so that a backend that is behind waits or refuses. It
 * fails open: responses with unreadable versions are ignored, and after several refusals the request passes unchanged.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import type { Field } from "../../h2/core/field.ts";
import type { Origins } from "../../kube/api-origin.ts";
import { firstValue, flagIn } from "../../kube/query.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import { flooredTarget } from "../../kube/resume-request.ts";
import type { Caller } from "../../ledger/caller.ts";
import { isRepeatingResource, resourceKey } from "../../watch/session/watch-context.ts";
import type { Client } from "../context/client.ts";
import { clientKey } from "../context/client-key.ts";
import { type Connection, type SeenVersion, SeenVersions } from "./seen-version.ts";

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

type Asker = { readonly seenVersion: SeenVersion; readonly connection: Connection };

/** One request: what its client had seen of the resource when it was sent, and what the response contains. */
export class GuardedRead {
  readonly #guard: StaleReadGuard;
  readonly #seenVersion: SeenVersion;
  readonly #connection: Connection;
  /** The version seen when it was sent: what the client sees meanwhile on another stream does not count. */
  readonly #before: string;
  /** As it goes upstream; the client's own unless the version is enforced. */
  readonly target: string;
  readonly isDemanded: boolean;
  /** The backend that answers it. */
  backend = "";

  constructor(
    guard: StaleReadGuard,
    { seenVersion, connection }: Asker,
    target: string,
    isDemanded: boolean,
  ) {
    this.#guard = guard;
    this.#seenVersion = seenVersion;
    this.#connection = connection;
    this.#before = seenVersion.seenBy(connection);
    this.isDemanded = isDemanded;
    this.target = isDemanded ? flooredTarget(target, seenVersion.version) : target;
  }

  /** An event, or a bookmark, went to the client. */
  raise(version: string): void {
    this.#seenVersion.raise(version, this.#connection);
  }

  /** The state that the client gets is of this version. */
  shown(version: string): void {
    this.#seenVersion.refusals = 0;
    this.#seenVersion.raise(version, this.#connection);
    if (version === "" || compareVersions(version, this.#before) >= 0) return;
    this.#guard.outdated(this.#seenVersion, { backend: this.backend, version, seen: this.#before });
  }

  /** The backend did not reach that version within its 3 s (504, watch.md §3.1). */
  refused(): void {
    if (this.isDemanded) this.#guard.refused(this.#seenVersion, this.#seenVersion.version);
  }
}

export class StaleReadGuard {
  readonly #parts: StaleReadGuardParts;
  readonly #seenVersions = new SeenVersions();
  /** Since the start: stale responses, requests with an enforced version, and refusals of those. */
  readonly counts = { outdated: 0, demanded: 0, refused: 0 };

  constructor(parts: StaleReadGuardParts) {
    this.#parts = parts;
  }

  /** Undefined if the response is no evidence of what the client may see. */
  guardedRead({ info, target, client, caller, fields }: Asking): GuardedRead | undefined {
    const { mode } = this.#parts;
    if (mode === "Disabled" || !showsState(info, target) || this.#parts.origins.of(info).isForeign)
      return undefined;
    const { name, namespace, pod } = caller.subject;
    const identity = `${name} ${namespace}/${pod}`;
    const seenVersion = this.#seenVersions.of(clientKey(client, fields), identity, resourceKey(info));
    const { connection } = client;
    seenVersion.meet(connection);
    const isDemanded = mode === "Enforce" && seenVersion.version !== "" && takesAnyState(info, target);
    if (isDemanded) this.counts.demanded += 1;
    return new GuardedRead(this, { seenVersion, connection }, target, isDemanded);
  }

  outdated(
    seenVersion: SeenVersion,
    answer: { readonly backend: string; readonly version: string; readonly seen: string },
  ): void {
    this.counts.outdated += 1;
    const { clock, journal } = this.#parts;
    if (clock.now() - seenVersion.toldAt < limits.floorToldMs) return;
    seenVersion.toldAt = clock.now();
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
  if (target.length > limits.changedTargetBytes || isRepeatingResource(info)) return false;
  if (firstValue(query, "resourceVersion") !== "0") return false;
  const match = firstValue(query, "resourceVersionMatch") ?? "";
  if (info.kind === "plain") return match === "" || match === "NotOlderThan";
  return match === "NotOlderThan" && flagIn(query, "sendInitialEvents") === true;
}
