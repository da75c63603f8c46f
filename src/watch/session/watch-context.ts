/** What a watch requests from its next backend, and the response head that it gets. */

import { clipped } from "../../base/detach.ts";
import { limits } from "../../base/limits.ts";
import { Field, role } from "../../h2/core/field.ts";
import { type Origin, repeatsVersions } from "../../kube/api-origin.ts";
import { firstValue } from "../../kube/query.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import {
  bookmarkedTarget,
  listTarget,
  type ResponseHead,
  replayTarget,
  resumeTarget,
} from "../../kube/resume-request.ts";
import { type WatchRequest, watchRequestOf } from "../../kube/watch-request.ts";
import type { RequestContext } from "../../proxy/context/request-context.ts";

const selectors = ["labelSelector", "fieldSelector", "shardSelector"];

/** What the client of a watch has seen of its resource, kept by the guard against stale reads (stale-read-guard.ts). */
export type SeenVersionSink = {
  /** An event or a bookmark of this version went to the client. */
  raise(version: string): void;
  /** The state that the client got is complete at this version. */
  shown(version: string): void;
  /** The backend did not reach the requested version within its 3 s (504). */
  refused(): void;
};

/** What the client requested. */
export type WatchContext = {
  readonly request: WatchRequest;
  /** The client's own `:path`. */
  readonly target: string;
  /** True if several events share one version. */
  readonly isRepeating: boolean;
  /** Whose versions its events have; for an API that was not seen before, set with the response. */
  origin: Origin;
  /** True if the proxy requests bookmarks that the client did not want. For a `state` only when it continues elsewhere. */
  readonly isInjected: boolean;
  /** Its group and name, as `resourceKey` returns them. */
  readonly resource: string;
  /** True if the whole resource is requested: every namespace, no name, no selector. */
  readonly isWhole: boolean;
  /** The resource and its namespace, if everything in it is requested; "" of a watch with a name or a selector. */
  readonly scope: string;
  /** What the client had seen of the resource; undefined if that is not guarded. */
  readonly seenVersion: SeenVersionSink | undefined;
  /** When it was requested. */
  readonly at: number;
};

/**
 * `at`: the present reading of the clock. The object is written out and never spread: V8 keeps a spread one in two
 * objects, and 50,000 watches have one each.
 */
export function watchContextOf(
  target: string,
  info: RequestInfo,
  at: number,
  known: { readonly origin: Origin; readonly seenVersion?: SeenVersionSink | undefined },
): WatchContext {
  const { group, resource, namespace, name } = info;
  const query = target.slice(target.indexOf("?") + 1);
  const isSelected = selectors.some((key) => firstValue(query, key) !== undefined);
  const isAll = name === "" && !isSelected;
  return {
    request: watchRequestOf(target),
    target,
    isRepeating: repeatsVersions(group, resource),
    origin: known.origin,
    isInjected: false,
    seenVersion: known.seenVersion,
    resource: resourceKey(info),
    isWhole: isAll && namespace === "",
    scope: isAll ? `${resourceKey(info)}${scopeMark}${namespace}` : "",
    at,
  };
}

const scopeMark = " ";

/** Returns the resource that a scope belongs to. */
export function resourceOf(scope: string): string {
  return scope.slice(0, scope.indexOf(scopeMark));
}

/** The key within which versions are compared. It is remembered, so overlong names are cut. */
export function resourceKey({ group, resource }: Pick<RequestInfo, "group" | "resource">): string {
  return clipped(`${group}/${resource}`, limits.resourceChars);
}

/**
 * The same request with bookmarks, where they cost the client nothing (watch.md §6.5): with one a minute the resume
 * version never grows too old. Not for other servers, nor where there are none (events). Not in CBOR, from which the
 * proxy cannot remove them. Not as a Table: the first object of a stream carries the column definitions of all that
 * follow (apiserver endpoints/handlers/response.go, NoHeaders), so removing a bookmark would remove them as well.
 */
export function withBookmarks(asked: WatchContext, fields: readonly Field[]): WatchContext {
  const { request, origin, isRepeating } = asked;
  const mayAsk = !request.hasBookmarks && !origin.isForeign && !isRepeating;
  const isKept = fields.some(({ name, value }) => name === "accept" && keepsBookmarks.test(value));
  return mayAsk && !isKept ? { ...asked, isInjected: true } : asked;
}

const keepsBookmarks = /cbor|table/i;

/**
 * The fields of the first request: the client's own, plus bookmarks if injected. Those are not requested with a `state`:
 * it changes how the server answers.
 */
export function firstFields(asked: WatchContext, fields: readonly Field[]): readonly Field[] {
  return asked.isInjected && asked.request.start === "exact"
    ? withPath(fields, bookmarkedTarget(asked.target))
    : fields.slice();
}

export function withPath(fields: readonly Field[], path: string): readonly Field[] {
  return fields.map((field) => (field.role === role.path ? new Field(":path", path) : field));
}

/** The age of a watch, its remaining time, and the time since its initial events ended; in ms. */
export type Times = { readonly ageMs: number; readonly leftMs: number | undefined; readonly liveMs: number };

/** `markerAt`: when its initial events ended, -1 if they have not. `now` is a clock reading like it. */
export function timesOf(
  { request, at }: Pick<WatchContext, "request" | "at">,
  markerAt: number,
  now: number,
): Times {
  const ageMs = now - at;
  return {
    ageMs,
    leftMs: request.timeoutMs === undefined ? undefined : request.timeoutMs - ageMs,
    liveMs: markerAt < 0 ? ageMs : now - markerAt,
  };
}

/** The same request, identity and audit ID included (watch.md §8), from another version; without a version it begins anew. */
export function requestAt(
  context: RequestContext,
  asked: WatchContext,
  version: string | undefined,
  times: Times,
): RequestContext {
  const { target, request, isInjected } = asked;
  const { ageMs, leftMs } = times;
  const hasBookmarks = request.hasBookmarks || isInjected;
  const path =
    version === undefined
      ? replayTarget(target, leftMs)
      : resumeTarget(target, { version, hasBookmarks, ageMs, leftMs });
  return { ...context, fields: withPath(context.fields, path) };
}

const bare: readonly Field[] = [
  new Field("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"),
];

/**
 * A list of what is watched, of which only the version is needed (`listTarget`), with the same identity; undefined if it
 * cannot be requested.
 */
export function listRequestOf(
  context: RequestContext,
  { target }: WatchContext,
  least?: string,
): RequestContext | undefined {
  const path = listTarget(target, least);
  if (path === undefined) return undefined;
  return barePath(context, path);
}

/** Another read with the same identity, of which only the beginning of the response is needed. */
export function barePath(context: RequestContext, path: string): RequestContext {
  const kept = context.fields.filter(({ name }) => name !== "accept" && name !== "accept-encoding");
  return { ...context, fields: [...withPath(kept, path), ...bare] };
}

/** True if a request of the proxy's own for it will have bookmarks. */
export function mayHaveBookmarks({
  request,
  isInjected,
  origin,
  isRepeating,
}: Pick<WatchContext, "request" | "isInjected" | "origin" | "isRepeating">): boolean {
  return (request.hasBookmarks || isInjected) && !origin.isForeign && !isRepeating;
}

/** Reads the response's status, content type and encoding, and Retry-After as the apiserver writes it: whole seconds. */
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
