/** The parameters of a watch, parsed as the apiserver does: start, duration and options. */
import { firstValue, flagIn } from "./query.ts";
import { isVersion } from "./resource-version.ts";

/**
 * watch.md §1.3. `exact`: changes after a version. `state`: all objects in any order, then changes. `now`: changes from
 * a point that only the server knows.
 */
export type Start = "exact" | "state" | "now";

export type WatchRequest = {
  readonly start: Start;
  /** Of an `exact` start; "" for the others. */
  readonly version: string;
  /** True if the client requested bookmarks. */
  readonly hasBookmarks: boolean;
  /** True if the client waits for the bookmark that marks the end of the initial events. */
  readonly awaitsMarker: boolean;
  /** The client's own timeout, in ms; undefined if the server decides. */
  readonly timeoutMs: number | undefined;
};

/** `target` is the request's `:path`. For a request that the apiserver rejects the result is unspecified. */
export function watchRequestOf(target: string): WatchRequest {
  const mark = target.indexOf("?");
  const query = mark < 0 ? "" : target.slice(mark + 1);
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
  };
}

/** Version 0, here already "", is no version: it requests any state. */
function startOf(version: string, sendsState: boolean | undefined): Start {
  if (sendsState === true) return "state";
  if (isVersion(version)) return "exact";
  return sendsState === undefined ? "state" : "now";
}

/** Seconds; 0 counts as not set, and a negative value ends the watch at once (watch.md §1.2). */
function timeoutOf(query: string): number | undefined {
  const seconds = Number(firstValue(query, "timeoutSeconds") ?? 0);
  return Number.isSafeInteger(seconds) && seconds !== 0 ? seconds * 1000 : undefined;
}
