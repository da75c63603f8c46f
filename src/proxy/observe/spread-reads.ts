/**
 * Which reads may go to another backend than the client's other requests (context/read-spread.ts).
 *
 * Either the apiserver answers the read from etcd, or from a cache that it has brought up to date (k/e 2340). Every
 * backend then returns the present state. Or the read is a list from a cache (`resourceVersion=0`), and it demands the
 * newest version that the client has received (stale-read-guard.ts). The client must not have written for a while,
 * because the proxy does not know whether an older cache contains the write.
 *
 * Only reads of built-in resources are divided. A custom resource may be new, so that not every backend serves it yet.
 */
import type { Field } from "../../h2/core/field.ts";
import { firstValue } from "../../kube/query.ts";
import { isOwnResource, type RequestInfo } from "../../kube/request-info.ts";
import type { Caller } from "../../ledger/caller.ts";
import type { Client } from "../context/client.ts";
import type { ReadSpread } from "../context/read-spread.ts";
import type { ClassifiedRequest, GuardedRead } from "./stale-read-guard.ts";

export const spreadReadLimits = {
  /**
   * Ms after a client's write during which its lists from caches go to its own backend. All caches contain a write
   * after less than a second, unless one of them is stalled.
   */
  ownWriteMs: 30_000,
} as const;

export type ReadSource = "etcd" | "cache" | "other";

/**
 * Where the apiserver gets the response of a read from. A later page of a list counts as "other", because only the
 * backend that has served the first page may still have a snapshot of that version.
 */
export function sourceOf(info: RequestInfo, target: string): ReadSource {
  const mark = target.indexOf("?");
  const query = mark < 0 ? "" : target.slice(mark + 1);
  const version = firstValue(query, "resourceVersion") ?? "";
  if (!info.isResource || (version !== "" && version !== "0")) return "other";
  if (version === "0") return "cache";
  return isWholeRead(info, query) ? "etcd" : "other";
}

/** True if the request reads one object, or lists objects in a single response. */
function isWholeRead({ kind, verb, subresource }: RequestInfo, query: string): boolean {
  if (kind !== "plain" || (verb !== "get" && verb !== "list") || subresource !== "") return false;
  return firstValue(query, "limit") === undefined && firstValue(query, "continue") === undefined;
}

type Read = Pick<ClassifiedRequest, "client" | "info" | "target"> & {
  readonly caller: Pick<Caller, "wroteAt">;
};

/**
 * Returns the spread that chooses the request's backend; undefined: the client's own backend serves it. `guarded`: the
 * version that the request demands. `now`: a clock reading.
 */
export function spreadOf(
  request: Read,
  guarded: GuardedRead | undefined,
  now: number,
): ReadSpread | undefined {
  const { spread } = request.client;
  if (spread === undefined) return undefined;
  const source = sourceOf(request.info, request.target);
  if (source === "cache" && guarded?.mayBeStale !== false) spread.readsCache();
  const isNew = source === "etcd" || (source === "cache" && isCurrent(request, guarded, now));
  return isNew && request.info.kind === "plain" && isOwnResource(request.info) ? spread : undefined;
}

/** True if every backend's response will contain what the client has received and written. */
function isCurrent({ client, caller }: Read, guarded: GuardedRead | undefined, now: number): boolean {
  if (guarded?.isDemanded !== true || client.spread?.mayDivideCached !== true) return false;
  return now - caller.wroteAt >= spreadReadLimits.ownWriteMs;
}

/**
 * True if the backend refuses a request because its cache is older than the data that the client, whose reads are
 * divided, has received. The client's reads then gather.
 */
export function refusesAsOld(
  { spread }: Client,
  reader: { readonly isDemanded?: boolean } | undefined,
  refusal: readonly Field[],
): boolean {
  if (spread === undefined || reader?.isDemanded !== true || refusal[0]?.value !== "504") return false;
  spread.gather();
  return true;
}
