/** What a client's watch requests, and the requests that the proxy derives from it for other backends. */

import { clipped } from "../../base/detach.ts";
import { limits } from "../../base/limits.ts";
import { Field } from "../../h2/core/field.ts";
import { type Origin, repeatsVersions } from "../../kube/api-origin.ts";
import { firstValue, queryOf } from "../../kube/query.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import {
  bookmarkedTarget,
  listTarget,
  type ResponseHead,
  replayTarget,
  resumeTarget,
} from "../../kube/resume-request.ts";
import { isUncommonAccept, type WatchRequest, watchRequestOf } from "../../kube/watch-request.ts";
import { withPath } from "../../upstream/context/path-prefix.ts";
import { fieldsFor, type RequestContext } from "../../upstream/context/request-context.ts";

const selectors = ["labelSelector", "fieldSelector"];

/** Records which versions of the resource a watch's client has received (stale-read-guard.ts implements it). */
type SeenVersionSink = {
  /** Called when an event or a bookmark of this version has gone to the client. */
  raise(version: string): void;
  /** Called when the client has received the whole initial state, as of this version. */
  shown(version: string): void;
  /** Called if the backend answers 504, because its cache has not reached the requested version within 3 s. */
  refused(): void;
};

/** A backend, and its Kubernetes version without the patch number, such as "1.36"; "": unknown. */
export type ServedBy = { readonly backend: string; readonly minor: string };

export type WatchContext = WatchRequest & {
  /** The client's own `:path`. */
  readonly target: string;
  /** True if several events may share one version (`events`). */
  readonly isRepeating: boolean;
  /**
   * The server that assigns the versions of the watched objects. If it is unknown when the client sends the request,
   * the response to the watch shows it.
   */
  readonly origin: Origin;
  /**
   * True if the proxy requests bookmarks that the client did not request. Such bookmarks are not forwarded (watch.md
   * §6.5).
   */
  readonly isInjected: boolean;
  /**
   * True if the request has a parameter that not all apiservers know, in its query or in `Accept`. An apiserver that
   * does not know it sends other events, so the watch moves only to a backend of the same version (watch.md §5.2).
   */
  readonly isUncommon: boolean;
  /** The backend that has answered the client's request, if others may send other events (`isUncommon`). */
  readonly servedBy: ServedBy | undefined;
  /** Group and name of the resource, in the format of `resourceKey`. */
  readonly resource: string;
  /** True if the request is for the whole resource: every namespace, no name, no selector. */
  readonly isWhole: boolean;
  /**
   * The resource and the namespace of a watch without a name or a selector, as one key; an empty namespace means all
   * namespaces. "": the watch has a name or a selector.
   */
  readonly scope: string;
  /** Records which versions of the resource the client received; undefined if the stale read guard does not apply. */
  readonly seenVersion: SeenVersionSink | undefined;
};

/**
 * Names each field instead of spreading objects, because V8 stores the result of a spread in two parts and each of
 * 50,000 watches keeps such a context.
 */
export function watchContextOf(
  target: string,
  info: RequestInfo,
  known: {
    readonly origin: Origin;
    readonly seenVersion?: SeenVersionSink | undefined;
    readonly fields?: readonly Field[];
  },
): WatchContext {
  const { group, resource, namespace, name } = info;
  const query = queryOf(target);
  const { start, version, hasBookmarks, awaitsMarker, timeoutMs, isUncommon } = watchRequestOf(target);
  const isSelected = isUncommon || selectors.some((key) => firstValue(query, key) !== undefined);
  const isAll = name === "" && !isSelected;
  const accepts = known.fields?.filter((field) => field.name === "accept") ?? [];
  return {
    start,
    version,
    hasBookmarks,
    awaitsMarker,
    timeoutMs,
    target,
    isRepeating: repeatsVersions(group, resource),
    origin: known.origin,
    isInjected: false,
    isUncommon: isUncommon || accepts.some(({ value }) => isUncommonAccept(value)),
    servedBy: undefined,
    seenVersion: known.seenVersion,
    resource: resourceKey(info),
    isWhole: isAll && namespace === "",
    scope: isAll ? `${resourceKey(info)}${scopeMark}${namespace}` : "",
  };
}

/** Returns the context with the origin that the response to the watch has shown. */
export function withOrigin(asked: WatchContext, origin: Origin): WatchContext {
  return asked.origin === origin ? asked : { ...asked, origin };
}

const scopeMark = " ";

export function resourceOf(scope: string): string {
  return scope.slice(0, scope.indexOf(scopeMark));
}

/** Returns the key of a resource. Cuts long keys, because keys stay in memory. */
export function resourceKey({ group, resource }: Pick<RequestInfo, "group" | "resource">): string {
  return clipped(`${group}/${resource}`, limits.resourceChars);
}

/**
 * Makes the proxy request bookmarks for the watch. With one bookmark a minute, the resume version never grows too old
 * (watch.md §6.5). Three kinds of watches are left as they are. Watches of aggregated APIs and of `events` may get no
 * bookmarks at all. From a CBOR stream, the proxy cannot remove bookmarks. The first bookmark of a Table may contain
 * the column definitions that the client needs (apiserver endpoints/handlers/response.go, NoHeaders).
 */
export function withBookmarks(asked: WatchContext, fields: readonly Field[]): WatchContext {
  const { hasBookmarks, origin, isRepeating } = asked;
  const isForeign = origin.isKnown && origin.isForeign;
  const mayAsk = !hasBookmarks && !isForeign && !isRepeating;
  const isKept = fields.some(({ name, value }) => name === "accept" && keepsBookmarks.test(value));
  return mayAsk && !isKept ? { ...asked, isInjected: true } : asked;
}

const keepsBookmarks = /cbor|table/i;

/** Returns the request's fields, with bookmarks switched on if the proxy requests them. */
export function firstFields(asked: WatchContext, fields: readonly Field[]): readonly Field[] {
  return asked.isInjected ? withPath(fields, bookmarkedTarget(asked.target)) : fields.slice();
}

/**
 * Removes the client's permission to compress. Since 1.37, apiservers compress a watch with `sendInitialEvents` if the
 * client accepts gzip, as client-go does. The proxy could not decode such a watch, and so could not move it.
 */
export function uncompressed(fields: readonly Field[]): readonly Field[] {
  return fields.map((field) => (field.name === "accept-encoding" ? identityCoding : field));
}

const identityCoding = new Field("accept-encoding", "identity");

/**
 * Durations in ms. ageMs: since the client's request. leftMs: until the client's deadline; undefined: none. liveMs:
 * since the watch's initial events ended; until then, since the client's request.
 */
export type Times = { readonly ageMs: number; readonly leftMs: number | undefined; readonly liveMs: number };

/**
 * Returns the watch's times now. `at`: clock reading of the client's request. `markerAt`: clock reading at which the
 * initial events ended; -1: they have not.
 */
export function timesOf(
  { timeoutMs }: Pick<WatchContext, "timeoutMs">,
  at: number,
  markerAt: number,
  now: number,
): Times {
  const ageMs = now - at;
  return {
    ageMs,
    leftMs: timeoutMs === undefined ? undefined : timeoutMs - ageMs,
    liveMs: markerAt < 0 ? ageMs : now - markerAt,
  };
}

/**
 * Returns the client's request with the client's identity (watch.md §8). The watch starts from `version`, if that is
 * defined.
 */
export function requestAt(
  context: RequestContext,
  asked: WatchContext,
  version: string | undefined,
  times: Times,
): RequestContext {
  const { target, isInjected } = asked;
  const { ageMs, leftMs } = times;
  const hasBookmarks = asked.hasBookmarks || isInjected;
  const path =
    version === undefined
      ? replayTarget(target, leftMs)
      : resumeTarget(target, { version, hasBookmarks, ageMs, leftMs });
  return { ...context, fields: fieldsFor(context, path) };
}

const bare: readonly Field[] = [
  new Field("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"),
];

/** Returns a request to list the watched objects; undefined if no such list is possible. */
export function listRequestOf(
  context: RequestContext,
  { target }: WatchContext,
  least?: string,
): RequestContext | undefined {
  const path = listTarget(target, least);
  if (path === undefined) return undefined;
  return barePath(context, path);
}

/** Returns a request for `path` with the client's identity. The proxy will read only part of the response. */
export function barePath(context: RequestContext, path: string): RequestContext {
  const fields = fieldsFor(context, path);
  const kept = fields.filter(({ name }) => name !== "accept" && name !== "accept-encoding");
  return { ...context, fields: [...kept, ...bare] };
}

/** True if the streams that the proxy requests for this watch have bookmarks. */
export function mayHaveBookmarks({
  hasBookmarks,
  isInjected,
  origin,
  isRepeating,
}: Pick<WatchContext, "hasBookmarks" | "isInjected" | "origin" | "isRepeating">): boolean {
  return (hasBookmarks || isInjected) && !origin.isForeign && !isRepeating;
}

/** Reads status, content type, content encoding and Retry-After. The apiserver writes Retry-After in whole seconds. */
export function answerOf(head: readonly Field[]): ResponseHead {
  const valueOf = (name: string): string => head.find((field) => field.name === name)?.value ?? "";
  const seconds = Number(valueOf("retry-after") || "x");
  return {
    status: Number(head[0]?.value),
    contentType: valueOf("content-type"),
    contentEncoding: valueOf("content-encoding"),
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : undefined,
  };
}
