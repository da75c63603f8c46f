/**
 * Builds the requests that the proxy itself sends for a client's watch, and judges the heads of their responses
 * (watch.md §5.2). An ERROR event after such a head, such as a 410, is judged by watch/session/expired-version.ts.
 * Selectors stay as they are, because they define what the watch delivers.
 */
import { limits } from "../base/limits.ts";
import { unescape } from "./query.ts";

/** Query parameters that a resume removes or sets. `sendInitialEvents` would deliver all objects again. */
export const replaced: ReadonlySet<string> = new Set([
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
  readonly ageMs: number;
  /** Milliseconds until the deadline of the client's watch; undefined: the client set none. */
  readonly leftMs: number | undefined;
};

/** Returns the request that continues a watch after `version`; `target`: the client's own `:path`. */
export function resumeTarget(target: string, { version, hasBookmarks, ageMs, leftMs }: Resume): string {
  // If the client set no deadline, the watch ends when an apiserver would have ended the client's first request.
  const seconds = Math.max(1, Math.ceil((leftMs ?? limits.watchMostMs - ageMs) / 1000));
  const added = [
    `resourceVersion=${version}`,
    ...(hasBookmarks ? ["allowWatchBookmarks=true"] : []),
    `timeoutSeconds=${seconds}`,
  ];
  return targetWith(target, replaced, added);
}

/** Returns the client's own request with the remaining timeout, for a watch that has delivered nothing yet. */
export function replayTarget(target: string, leftMs: number | undefined): string {
  if (leftMs === undefined) return target;
  const seconds = Math.max(1, Math.ceil(leftMs / 1000));
  return targetWith(target, new Set(["timeoutSeconds"]), [`timeoutSeconds=${seconds}`]);
}

/** Returns the client's own watch request with bookmarks switched on (watch.md §6.5). */
export function bookmarkedTarget(target: string): string {
  return targetWith(target, new Set(["allowWatchBookmarks"]), ["allowWatchBookmarks=true"]);
}

const listed = new Set([...replaced, "watch"]);
/** Matches the deprecated path of a watch, which differs from the path of the list (watch.md §1.1). */
const watchPath = /^\/+(?:api\/[^/]+|apis\/[^/]+\/[^/]+)\/+watch\//;

/**
 * Returns the target of a list of the objects that the watch `target` selects, limited to one object. The list is at
 * least as new as the version `least`; without `least`, it is as new as etcd's state. Returns undefined for a
 * deprecated path. Selectors stay, because some clients may list only with them.
 */
export function listTarget(target: string, least?: string): string | undefined {
  if (watchPath.test(target)) return undefined;
  // Without `resourceVersionMatch`, a version with `limit` would mean exactly that version. With version 0, the
  // apiserver ignores `limit` (delegator.go, cacher.go).
  const from = least === undefined ? [] : [`resourceVersion=${least}`, "resourceVersionMatch=NotOlderThan"];
  return targetWith(target, listed, [...from, "limit=1"]);
}

const floored = new Set(["resourceVersion", "resourceVersionMatch", "limit"]);

/**
 * Returns the target of a read that accepts any version, changed to require at least the version `seen` (watch.md
 * §3.1). Removes `limit`: an apiserver's cache ignores `limit` for version 0, but would apply it to the changed request
 * (apiserver storage/cacher, computeListLimit).
 */
export function flooredTarget(target: string, seen: string): string {
  return targetWith(target, floored, [`resourceVersion=${seen}`, "resourceVersionMatch=NotOlderThan"]);
}

/** Returns the target without `timeoutSeconds`, the only parameter that clients change when they repeat a request. */
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

/** Returns the key of a query pair as the apiserver parses it; "" if the apiserver skips the pair. */
export function keyOf(pair: string): string {
  const equals = pair.indexOf("=");
  const key = equals < 0 ? pair : pair.slice(0, equals);
  return pair.includes(";") ? "" : (unescape(key, " ") ?? "");
}

export type ResponseHead = {
  readonly status: number;
  readonly contentType: string;
  readonly contentEncoding: string;
  /** The delay in the response's Retry-After, in milliseconds; undefined: absent. */
  readonly retryAfterMs: number | undefined;
};

/**
 * What the proxy does with the response to a resumed watch. go: continues the client's watch with it. end: ends the
 * client's watch, so that the client sends a new watch and gets the backend's response itself. elsewhere: tries another
 * backend, or the same backend again after `inMs` milliseconds.
 */
export type Acceptance =
  | { readonly kind: "go" | "end" }
  | { readonly kind: "elsewhere"; readonly inMs: number };

/**
 * True if the backend has not initialised its watch cache of this resource yet ("storage is (re)initializing", watch.md
 * §5.4). For all other causes of a 429 (priority and fairness, shutdown), apiservers send plain text.
 */
export function isInitialising({ status, contentType }: ResponseHead): boolean {
  return status === 429 && contentType !== "" && !contentType.startsWith("text/plain");
}

/** Judges the response to a resumed watch. `contentType`: from the response head that the client already has. */
export function acceptanceOf(answer: ResponseHead, contentType: string): Acceptance {
  const { status } = answer;
  if (status === 401 || status === 403) return { kind: "end" };
  if (status !== 200) return { kind: "elsewhere", inMs: answer.retryAfterMs ?? 0 };
  const isAlike = answer.contentType === contentType && answer.contentEncoding === "";
  return isAlike ? { kind: "go" } : { kind: "elsewhere", inMs: 0 };
}
