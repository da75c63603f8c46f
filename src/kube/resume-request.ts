/**
 * Builds the requests that the proxy sends for a client's watch, and judges their responses (watch.md §5.2). The
 * selectors identify the watch, so only parameters that must change are changed.
 */
import { limits } from "../base/limits.ts";
import { unescape } from "./query.ts";

/** The parameters that a resume sets. A client's `sendInitialEvents` would deliver the whole state again. */
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
  /** Milliseconds since the client's request. */
  readonly ageMs: number;
  /** Milliseconds until the deadline that the client set; undefined: none. */
  readonly leftMs: number | undefined;
};

/** Returns the request that continues a watch after `version`; `target`: the client's own `:path`. */
export function resumeTarget(target: string, { version, hasBookmarks, ageMs, leftMs }: Resume): string {
  // If the client set no deadline, the watch ends when the apiserver would have ended it.
  const seconds = Math.max(1, Math.ceil((leftMs ?? limits.watchMostMs - ageMs) / 1000));
  const added = [
    `resourceVersion=${version}`,
    ...(hasBookmarks ? ["allowWatchBookmarks=true"] : []),
    `timeoutSeconds=${seconds}`,
  ];
  return targetWith(target, replaced, added);
}

/** Returns the client's own request with its remaining time, if the client has received nothing so far. */
export function replayTarget(target: string, leftMs: number | undefined): string {
  if (leftMs === undefined) return target;
  const seconds = Math.max(1, Math.ceil(leftMs / 1000));
  return targetWith(target, new Set(["timeoutSeconds"]), [`timeoutSeconds=${seconds}`]);
}

/** Returns the client's own request with bookmarks (watch.md §6.5). */
export function bookmarkedTarget(target: string): string {
  return targetWith(target, new Set(["allowWatchBookmarks"]), ["allowWatchBookmarks=true"]);
}

const listed = new Set([...replaced, "watch"]);
/** Matches the deprecated form of a watch, whose list has another path (watch.md §1.1). */
const watchPath = /^\/+(?:api\/[^/]+|apis\/[^/]+\/[^/]+)\/+watch\//;

/**
 * Returns a list of at most one object of what `target` watches, as current as etcd, or as the version `least`;
 * undefined for a watch of the deprecated form. The selectors stay, because some clients may list only with them.
 */
export function listTarget(target: string, least?: string): string | undefined {
  if (watchPath.test(target)) return undefined;
  // A `limit` with a version alone is an exact read, and with version 0 it is ignored (delegator.go, cacher.go).
  const from = least === undefined ? [] : [`resourceVersion=${least}`, "resourceVersionMatch=NotOlderThan"];
  return targetWith(target, listed, [...from, "limit=1"]);
}

const floored = new Set(["resourceVersion", "resourceVersionMatch", "limit"]);

/**
 * Returns the client's read for any version, changed to require at least `seen` (watch.md §3.1). It loses its limit,
 * which a cache ignores for version 0 but would apply here (apiserver storage/cacher, computeListLimit).
 */
export function flooredTarget(target: string, seen: string): string {
  return targetWith(target, floored, [`resourceVersion=${seen}`, "resourceVersionMatch=NotOlderThan"]);
}

/** Returns the part of a request that is the same in every retry. */
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

/** Returns a pair's key as the apiserver parses it; "" if the apiserver skips the pair. */
function keyOf(pair: string): string {
  const equals = pair.indexOf("=");
  const key = equals < 0 ? pair : pair.slice(0, equals);
  return pair.includes(";") ? "" : (unescape(key, " ") ?? "");
}

export type ResponseHead = {
  readonly status: number;
  readonly contentType: string;
  readonly contentEncoding: string;
  /** Milliseconds in Retry-After; undefined: absent. */
  readonly retryAfterMs: number | undefined;
};

/**
 * What the response to a resumed watch means. go: it continues the watch. end: end the client's watch, so that the
 * client gets the real answer. elsewhere: another backend may accept the watch, or this one after `inMs`.
 */
export type Acceptance =
  | { readonly kind: "go" | "end" }
  | { readonly kind: "elsewhere"; readonly inMs: number };

/**
 * True if the backend's watch cache of this resource is not filled yet ("storage is (re)initializing", watch.md §5.4).
 * A 429 from a layer in front of the storage (priority and fairness, shutdown) is plain text.
 */
export function isInitialising({ status, contentType }: ResponseHead): boolean {
  return status === 429 && contentType !== "" && !contentType.startsWith("text/plain");
}

/** Judges a response head by the content type of the response that the client got. */
export function acceptanceOf(answer: ResponseHead, contentType: string): Acceptance {
  const { status } = answer;
  if (status === 401 || status === 403) return { kind: "end" };
  if (status !== 200) return { kind: "elsewhere", inMs: answer.retryAfterMs ?? 0 };
  const isAlike = answer.contentType === contentType && answer.contentEncoding === "";
  return isAlike ? { kind: "go" } : { kind: "elsewhere", inMs: 0 };
}

/**
 * Judges an ERROR as first event, with which a backend refuses despite status 200. `isForgotten`: no backend has the
 * version.
 */
export function acceptanceOfError(code: number, isForgotten: boolean): Acceptance {
  if (code === 401 || code === 403) return { kind: "end" };
  // A freshly started backend has less history than others, so a 410 is final only when every candidate returned it.
  if (code === 410 && isForgotten) return { kind: "end" };
  return { kind: "elsewhere", inMs: 0 };
}
