/**
 * Creates the request that continues a watch on another backend, and judges its response (watch.md §5.2). The query
 * changes only where it must. Everything else stays as the client wrote it, byte by byte: the selectors are the watch's
 * identity.
 */
import { limits } from "../base/limits.ts";
import { unescape } from "./query.ts";

/** Parameters that a resume sets itself; a remaining `sendInitialEvents` would deliver the whole state again. */
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
  // Without a deadline from the client the total stays within what the server would have allowed.
  const seconds = Math.max(1, Math.ceil((leftMs ?? limits.watchMostMs - ageMs) / 1000));
  const added = [
    `resourceVersion=${version}`,
    ...(hasBookmarks ? ["allowWatchBookmarks=true"] : []),
    `timeoutSeconds=${seconds}`,
  ];
  return targetWith(target, replaced, added);
}

/** The client's own request again, if it has received nothing so far; only its remaining time changes. */
export function replayTarget(target: string, leftMs: number | undefined): string {
  if (leftMs === undefined) return target;
  const seconds = Math.max(1, Math.ceil(leftMs / 1000));
  return targetWith(target, new Set(["timeoutSeconds"]), [`timeoutSeconds=${seconds}`]);
}

/** The client's own request with bookmarks enabled (watch.md §6.5). */
export function bookmarkedTarget(target: string): string {
  return targetWith(target, new Set(["allowWatchBookmarks"]), ["allowWatchBookmarks=true"]);
}

const listed = new Set([...replaced, "watch"]);
/** The deprecated form of a watch, whose list has another path (watch.md §1.1). */
const watchPath = /^\/+(?:api\/[^/]+|apis\/[^/]+\/[^/]+)\/+watch\//;

/**
 * A list of at most one object of what `target` watches, as current as etcd; with `least`, a version, from a cache that
 * is at least that current. The selectors stay, because some clients may list only with them. Undefined for a path of
 * the deprecated form.
 */
export function listTarget(target: string, least?: string): string | undefined {
  if (watchPath.test(target)) return undefined;
  // `limit` with a version alone would be an exact read, and one with version 0 ignores the limit (delegator.go,
  // cacher.go).
  const from = least === undefined ? [] : [`resourceVersion=${least}`, "resourceVersionMatch=NotOlderThan"];
  return targetWith(target, listed, [...from, "limit=1"]);
}

const floored = new Set(["resourceVersion", "resourceVersionMatch", "limit"]);

/**
 * The client's own request for any version, changed to a minimum version (watch.md §3.1). Without its limit: a cache
 * ignores the limit for version 0 and returns the whole list, but would paginate this one (apiserver storage/cacher,
 * computeListLimit).
 */
export function flooredTarget(target: string, seen: string): string {
  return targetWith(target, floored, [`resourceVersion=${seen}`, "resourceVersionMatch=NotOlderThan"]);
}

/** Returns the part of a request that stays the same in each of its client's retries. */
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

/** As the apiserver parses it; "" for a pair that it skips, which can stay. */
function keyOf(pair: string): string {
  const equals = pair.indexOf("=");
  const key = equals < 0 ? pair : pair.slice(0, equals);
  return pair.includes(";") ? "" : (unescape(key, " ") ?? "");
}

/** The parts of a response head that matter here. */
export type Answer = {
  readonly status: number;
  readonly contentType: string;
  readonly contentEncoding: string;
  /** In ms; undefined without Retry-After. */
  readonly retryAfterMs: number | undefined;
};

/**
 * `go`: the response continues this watch. `end`: end the client's watch, so that its own request gets the real answer.
 * `elsewhere`: another backend may do better; without one, retry this one after `inMs`.
 */
export type Acceptance =
  | { readonly kind: "go" | "end" }
  | { readonly kind: "elsewhere"; readonly inMs: number };

/**
 * True if the storage itself reports that its watch cache is not filled yet ("storage is (re)initializing", watch.md
 * §5.4), which concerns one resource. Layers in front of the storage (priority and fairness, shutdown) send 429 as
 * plain text.
 */
export function isInitialising({ status, contentType }: Answer): boolean {
  return status === 429 && contentType !== "" && !contentType.startsWith("text/plain");
}

/** `contentType` is that of the response that the client got. */
export function acceptanceOf(answer: Answer, contentType: string): Acceptance {
  const { status } = answer;
  if (status === 401 || status === 403) return { kind: "end" };
  if (status !== 200) return { kind: "elsewhere", inMs: answer.retryAfterMs ?? 0 };
  const isAlike = answer.contentType === contentType && answer.contentEncoding === "";
  return isAlike ? { kind: "go" } : { kind: "elsewhere", inMs: 0 };
}

/**
 * An ERROR as the first event: the backend refuses despite status 200. `isForgotten`: true if no other backend has the
 * version either.
 */
export function acceptanceOfError(code: number, isForgotten: boolean): Acceptance {
  if (code === 401 || code === 403) return { kind: "end" };
  // A freshly started backend has less history than others, so a 410 is final only when every candidate returned it.
  if (code === 410 && isForgotten) return { kind: "end" };
  return { kind: "elsewhere", inMs: 0 };
}
