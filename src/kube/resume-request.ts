/**
 * The request that lets a watch go on elsewhere, and whether the answer to it does (watch.md §5.2). The query is changed
 * where it must be and stays as the client wrote it, octet by octet, everywhere else: its selectors are its identity.
 */
import { limits } from "../base/limits.ts";
import { unescape } from "./query.ts";

/** Ours to say in a resume; `sendInitialEvents` left in would send the whole state again. */
const replaced = new Set([
  "resourceVersion",
  "resourceVersionMatch",
  "sendInitialEvents",
  "limit",
  "continue",
  "timeoutSeconds",
  "allowWatchBookmarks",
]);

export type Resume = {
  readonly version: string;
  readonly hasBookmarks: boolean;
  /** Since the client's request, and until its deadline if it set one. */
  readonly ageMs: number;
  readonly leftMs: number | undefined;
};

/** `target` is the client's own `:path`. */
export function resumeTarget(target: string, { version, hasBookmarks, ageMs, leftMs }: Resume): string {
  // Without a deadline of its own it stays within what the server would have given it in all.
  const seconds = Math.max(1, Math.ceil((leftMs ?? limits.watchMostMs - ageMs) / 1000));
  const added = [
    `resourceVersion=${version}`,
    ...(hasBookmarks ? ["allowWatchBookmarks=true"] : []),
    `timeoutSeconds=${seconds}`,
  ];
  return targetWith(target, replaced, added);
}

/** The client's own request again, of which it has seen nothing but time pass. */
export function replayTarget(target: string, leftMs: number | undefined): string {
  if (leftMs === undefined) return target;
  const seconds = Math.max(1, Math.ceil(leftMs / 1000));
  return targetWith(target, new Set(["timeoutSeconds"]), [`timeoutSeconds=${seconds}`]);
}

/** The client's own request, but for bookmarks that it did not want (watch.md §6.5). */
export function bookmarkedTarget(target: string): string {
  return targetWith(target, new Set(["allowWatchBookmarks"]), ["allowWatchBookmarks=true"]);
}

const listed = new Set([...replaced, "watch"]);
/** The deprecated form of a watch, of which the list has another path (watch.md §1.1). */
const watchPath = /^\/+(?:api\/[^/]+|apis\/[^/]+\/[^/]+)\/+watch\//;

/**
 * A list of at most one object of what `target` watches, as new as etcd is; with `least`, a version, as the cache has it
 * if that is at least so new. The selectors stay: some clients may list only with them. Undefined for a path of the
 * deprecated form.
 */
export function listTarget(target: string, least?: string): string | undefined {
  if (watchPath.test(target)) return undefined;
  // `limit` alone with a version would be an exact read, and one of version 0 has no limit (delegator.go, cacher.go).
  const from = least === undefined ? [] : [`resourceVersion=${least}`, "resourceVersionMatch=NotOlderThan"];
  return targetWith(target, listed, [...from, "limit=1"]);
}

const floored = new Set(["resourceVersion", "resourceVersionMatch", "limit"]);

/**
 * The client's own request for any state, but not for one older than this (watch.md §3.1). Without its limit: a cache
 * ignores that for version 0 and gives the whole list, but would cut this one to a page (apiserver storage/cacher, computeListLimit).
 */
export function flooredTarget(target: string, seen: string): string {
  return targetWith(target, floored, [`resourceVersion=${seen}`, "resourceVersionMatch=NotOlderThan"]);
}

/** What of a request is the same each time that its client asks anew. */
export function identityOf(target: string): string {
  return targetWith(target, new Set(["timeoutSeconds"]), []);
}

function targetWith(target: string, without: ReadonlySet<string>, added: readonly string[]): string {
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const pairs = mark < 0 ? [] : target.slice(mark + 1).split("&");
  const kept = pairs.filter((pair) => pair !== "" && !without.has(keyOf(pair)));
  return `${path}?${[...kept, ...added].join("&")}`;
}

/** As the apiserver reads it; "" for what it skips, which does no harm where it is. */
function keyOf(pair: string): string {
  const equals = pair.indexOf("=");
  const key = equals < 0 ? pair : pair.slice(0, equals);
  return pair.includes(";") ? "" : (unescape(key, " ") ?? "");
}

/** The head of an answer, of which only this matters here. */
export type Answer = {
  readonly status: number;
  readonly contentType: string;
  readonly contentEncoding: string;
  /** In ms; undefined when the answer names none. */
  readonly retryAfterMs: number | undefined;
};

/**
 * `go`: its events belong to this watch. `end`: let the client ask itself, it will see the truth. `elsewhere`: another
 * backend may do better, and if there is none, this one after `inMs`.
 */
export type Acceptance =
  | { readonly kind: "go" | "end" }
  | { readonly kind: "elsewhere"; readonly inMs: number };

/**
 * True if the storage itself says that its watch cache is not filled yet ("storage is (re)initializing", watch.md §5.4): one
 * resource's business. Whoever stands before all storage (priority and fairness, shutdown) says 429 in plain text.
 */
export function isInitialising({ status, contentType }: Answer): boolean {
  return status === 429 && contentType !== "" && !contentType.startsWith("text/plain");
}

/** `contentType` is that of the answer which the client was given. */
export function acceptanceOf(answer: Answer, contentType: string): Acceptance {
  const { status } = answer;
  if (status === 401 || status === 403) return { kind: "end" };
  if (status !== 200) return { kind: "elsewhere", inMs: answer.retryAfterMs ?? 0 };
  const isAlike = answer.contentType === contentType && answer.contentEncoding === "";
  return isAlike ? { kind: "go" } : { kind: "elsewhere", inMs: 0 };
}

/**
 * An ERROR as the first event: the backend refuses, although it said 200. `isForgotten`: does nobody else know the
 * version either?
 */
export function acceptanceOfError(code: number, isForgotten: boolean): Acceptance {
  if (code === 401 || code === 403) return { kind: "end" };
  // A fresh backend knows less of the past than one that has run for long: true is a 410 when all say it.
  if (code === 410 && isForgotten) return { kind: "end" };
  return { kind: "elsewhere", inMs: 0 };
}
