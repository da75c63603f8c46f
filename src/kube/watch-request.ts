import { firstValue, flagIn, queryOf } from "./query.ts";
import { isVersion } from "./resource-version.ts";
import { keyOf, replaced } from "./resume-request.ts";

/**
 * Where a watch starts (watch.md §1.3). exact: after a given version. state: with an ADDED event for each existing
 * object. now: at a version that the server chooses.
 */
export type Start = "exact" | "state" | "now";

export type WatchRequest = {
  readonly start: Start;
  /** The version after which an exact watch starts; otherwise "". */
  readonly version: string;
  readonly hasBookmarks: boolean;
  /** True if the client waits for the bookmark that ends the initial events. */
  readonly awaitsMarker: boolean;
  /** Milliseconds after which the client wants the watch to end; undefined: the server chooses. */
  readonly timeoutMs: number | undefined;
  /** True if the query has a parameter outside of `common`, such as `shardSelector`. */
  readonly isUncommon: boolean;
};

/** The query parameters that all supported apiservers treat alike. An apiserver ignores what it does not know. */
const common: ReadonlySet<string> = new Set(
  ["", "watch", "labelSelector", "fieldSelector", "timeout", "pretty", "includeObject"].concat(...replaced),
);
/** Matches a parameter of a media type in `Accept` that not all supported apiservers know, such as `drop` (1.38). */
const uncommonAccept = /;\s*(?!(?:as|charset|export|g|pretty|profile|q|stream|sv|v)\s*=)[^\s=;,]+\s*=/i;

/** True if the media types in `Accept` have a parameter that changes the response, and that apiservers may ignore. */
export function isUncommonAccept(accept: string): boolean {
  return uncommonAccept.test(accept);
}

/** Returns the parameters of a watch in a request's `:path`. Does not validate them, because the apiserver does. */
export function watchRequestOf(target: string): WatchRequest {
  const query = queryOf(target);
  const version = (firstValue(query, "resourceVersion") ?? "").replace(/^0+/, "");
  const sendsState = flagIn(query, "sendInitialEvents");
  const start = startOf(version, sendsState);
  const hasBookmarks = flagIn(query, "allowWatchBookmarks") === true;
  return {
    start,
    version: start === "exact" ? version : "",
    hasBookmarks,
    awaitsMarker: sendsState === true && hasBookmarks,
    timeoutMs: timeoutOf(query),
    isUncommon: query.split("&").some((pair) => !common.has(keyOf(pair))),
  };
}

/** Returns where a watch starts. `version`: "" if the request has no version or version 0. */
function startOf(version: string, sendsState: boolean | undefined): Start {
  if (sendsState === true) return "state";
  if (isVersion(version)) return "exact";
  return sendsState === undefined ? "state" : "now";
}

/** Returns the timeout in milliseconds; undefined for 0. A negative timeout ends the watch at once (watch.md §1.2). */
function timeoutOf(query: string): number | undefined {
  const seconds = Number(firstValue(query, "timeoutSeconds") ?? 0);
  return Number.isSafeInteger(seconds) && seconds !== 0 ? seconds * 1000 : undefined;
}
