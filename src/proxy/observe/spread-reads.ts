/**
 * Decides which reads of a client are *divided*: they may go to another backend than the client's other requests
 * (context/read-spread.ts).
 *
 * Either the apiserver answers the read from etcd, or from a cache that it has brought up to date. Every backend then
 * returns the present state. Or the read is a list from a cache (`resourceVersion=0`), and it demands the newest
 * version that the client has received in a list or a watch (stale-read-guard.ts). Such a list is divided only if the
 * client has sent nothing for a while that could have shown it, or created, a newer version.
 *
 * Only reads of built-in resources are divided. A custom resource may be new, so that not every backend serves it yet.
 */
import type { Field } from "../../h2/core/field.ts";
import { firstValue, queryOf } from "../../kube/query.ts";
import { isOwnResource, type RequestInfo } from "../../kube/request-info.ts";
import type { ReadSpread } from "../context/read-spread.ts";
import { fieldsFor, type RequestContext } from "../context/request-context.ts";
import type { ClassifiedRequest, GuardedRead } from "./stale-read-guard.ts";

export const spreadReadLimits = {
  /**
   * For this many ms after any other request of the client, its lists from caches go to its own backend. A second would
   * be enough for a write to reach all caches, unless a cache is stalled.
   */
  unmixedMs: 30_000,
} as const;

/**
 * Where the apiserver gets the response from. `etcd`: from etcd, or from a cache that is as new. `cache`: from a cache
 * of any age. `exact`: from the version that the request names, or from a newer one. `none`: the response contains no
 * state of a resource, or the request is a write.
 */
export type ReadSource = "etcd" | "cache" | "exact" | "none";

export function sourceOf(info: RequestInfo, target: string): ReadSource {
  if (!isStateRead(info)) return "none";
  const version = firstValue(queryOf(target), "resourceVersion") ?? "";
  if (version === "") return "etcd";
  return version === "0" ? "cache" : "exact";
}

function isStateRead({ isResource, verb, kind }: RequestInfo): boolean {
  return isResource && kind !== "long-running" && reads.has(verb);
}

const reads: ReadonlySet<string> = new Set(["get", "list", "watch"]);

/**
 * Returns the client's `ReadSpread`, which chooses the request's backend, if the request may be divided; undefined: the
 * client's own backend serves it. `guarded`: the version that the request demands. `now`: a clock reading.
 */
export function spreadOf(
  { client: { spread }, info, target }: Pick<ClassifiedRequest, "client" | "info" | "target">,
  guarded: GuardedRead | undefined,
  now: number,
): ReadSpread | undefined {
  if (spread === undefined || !mayDivide(info)) return undefined;
  const source = sourceOf(info, target);
  if (isDemanding(info, source, guarded))
    return spread.unmixedMs(now) < spreadReadLimits.unmixedMs ? undefined : spread;
  // A watch from an exact version, which an informer opens after its list, does not count: its events raise the version
  // that the client's lists demand.
  if (source !== "exact") spread.mixes(now);
  return source === "etcd" && isWholeRead(info, target) ? spread : undefined;
}

/**
 * True for a list from a cache that demands the version which the client has received. If every cache is older, the
 * list may be sent without this demand.
 */
function isDemanding({ kind }: RequestInfo, source: ReadSource, guarded: GuardedRead | undefined): boolean {
  return kind === "plain" && source === "cache" && guarded?.ownTarget !== undefined;
}

function mayDivide(info: RequestInfo): boolean {
  return isOwnResource(info) && !isLease(info);
}

/** Leases are renewed every few seconds, so they would keep all lists of a leader from being divided. */
function isLease({ group, resource }: RequestInfo): boolean {
  return group === "coordination.k8s.io" && resource === "leases";
}

/**
 * True if the request reads one object, or lists objects in a single response. Later pages of a list are not divided,
 * because only the backend that has served the first page may still have a snapshot of its version.
 */
function isWholeRead({ kind, subresource }: RequestInfo, target: string): boolean {
  if (kind !== "plain" || subresource !== "") return false;
  const query = queryOf(target);
  return firstValue(query, "limit") === undefined && firstValue(query, "continue") === undefined;
}

/**
 * Called when a backend has refused a request. If it has refused a list because its cache did not reach the demanded
 * version within 3 s, sends all reads of the client to the client's own backend from now on (`gather`), and returns the
 * request as the client has sent it, without a demanded version. For any other refusal, returns the same context. Only
 * this 504 has Retry-After; the 504 of a request that took too long has none (k8s.io/apimachinery,
 * NewTooLargeResourceVersionError).
 */
export function dropDemand(
  context: RequestContext,
  reader: { readonly ownTarget?: string | undefined } | undefined,
  refusal: readonly Field[],
): RequestContext {
  const { spread } = context.client;
  const path = reader?.ownTarget;
  if (spread === undefined || path === undefined || refusal[0]?.value !== "504") return context;
  if (!refusal.some(({ name }) => name === "retry-after")) return context;
  spread.gather();
  return { ...context, target: path, fields: fieldsFor(context, path) };
}
