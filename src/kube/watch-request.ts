/** What a watch asks for, as the apiserver reads its query: from where it starts, for how long, with which extras. */
import { firstValue, flagIn } from "./query.ts";
import { isVersion } from "./resource-version.ts";

/**
 * watch.md §1.3. `exact`: what comes after a version. `state`: all objects in no order, then what changes. `now`: what
 * changes from a moment on that only the server knows.
 */
export type Start = "exact" | "state" | "now";

export type WatchRequest = {
  readonly start: Start;
  /** Of an `exact` start; "" for the others. */
  readonly version: string;
  /** Did the client ask for bookmarks? */
  readonly hasBookmarks: boolean;
  /** Will the client wait for the bookmark behind which its initial events are over? */
  readonly awaitsMarker: boolean;
  /** After how long the client wants it to end, in ms; undefined when it leaves that to the server. */
  readonly timeoutMs: number | undefined;
};

/** `target` is the request's `:path`. What the apiserver refuses may be read as anything here. */
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

/** Version 0, here already "", is no version but a wish: any state will do. */
function startOf(version: string, sendsState: boolean | undefined): Start {
  if (sendsState === true) return "state";
  if (isVersion(version)) return "exact";
  return sendsState === undefined ? "state" : "now";
}

/** Seconds; 0 is as good as nothing, and a negative one ends the watch at once (watch.md §1.2). */
function timeoutOf(query: string): number | undefined {
  const seconds = Number(firstValue(query, "timeoutSeconds") ?? 0);
  return Number.isSafeInteger(seconds) && seconds !== 0 ? seconds * 1000 : undefined;
}
