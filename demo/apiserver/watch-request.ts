/** Parses the parameters of a watch, with the defaults and errors of kube-apiserver 1.36. */
import type { Target } from "../objects/resources.ts";
import { type Selector, selectorOf } from "../objects/selector.ts";
import { internalError, Refusal } from "../objects/status.ts";

export type Start =
  | { readonly from: "state"; readonly atLeast: number }
  | { readonly from: "version"; readonly version: number }
  | { readonly from: "now" };

export type WatchRequest = {
  readonly target: Target;
  readonly start: Start;
  readonly wantsBookmarks: boolean;
  /** True if a bookmark with `k8s.io/initial-events-end` must follow the initial state. */
  readonly marksInitialEnd: boolean;
  /** Duration of the watch in seconds; undefined: the server chooses. */
  readonly timeoutSeconds: number | undefined;
  readonly matches: Selector;
};

/**
 * True if the request is a watch. A GET with a name in its path is no watch, unless the path contains `/watch/`. If
 * there are several `watch` parameters, the first counts (k8s.io/apiserver pkg/endpoints/request/requestinfo.go).
 */
export function isWatch(method: string, target: Target, query: URLSearchParams): boolean {
  if (method !== "GET") return false;
  if (target.isWatchPath) return true;
  const watch = query.get("watch");
  return target.name === undefined && watch !== null && watch !== "0" && watch.toLowerCase() !== "false";
}

export function watchRequestOf(target: Target, query: URLSearchParams): WatchRequest | Refusal {
  const version = query.get("resourceVersion") ?? "";
  // Answers 500 if the version is not a number, as a real apiserver does (storage/api_object_versioner.go).
  if (!/^\d*$/.test(version)) return internalError(`strconv.ParseUint: parsing "${version}": invalid syntax`);
  const isAny = version === "" || version === "0";
  const match = query.get("resourceVersionMatch");
  const initial = query.get("sendInitialEvents");
  const wrong = faultOf(initial, match, isAny);
  if (wrong !== undefined) return wrong;
  const selected = selectorOf(named(target, query), target.resource);
  if (selected instanceof Refusal) return selected;
  const wantsBookmarks = ["true", "1"].includes(query.get("allowWatchBookmarks") ?? "");
  // From 1.34 on, apiservers treat a watch from resourceVersion "" or "0" without other parameters in the same way as a
  // watch with sendInitialEvents=true.
  const sendsState = initial === "true" || (initial === null && isAny);
  return {
    target,
    start: startOf(sendsState, isAny, Number(version)),
    wantsBookmarks,
    marksInitialEnd: sendsState && wantsBookmarks,
    timeoutSeconds: timeoutOf(query.get("timeoutSeconds")),
    matches: selected,
  };
}

function startOf(sendsState: boolean, isAny: boolean, version: number): Start {
  if (sendsState) return { from: "state", atLeast: version };
  return isAny ? { from: "now" } : { from: "version", version };
}

function faultOf(initial: string | null, match: string | null, isAny: boolean): Refusal | undefined {
  if (initial !== null && match !== "NotOlderThan")
    return forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  if (initial === null && match !== null && !isAny)
    return forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
  return undefined;
}

function forbidden(why: string): Refusal {
  const field = "resourceVersionMatch";
  const message = `ListOptions.meta.k8s.io "" is invalid: ${field}: Forbidden: ${why}`;
  return new Refusal(422, "Invalid", message, {
    group: "meta.k8s.io",
    kind: "ListOptions",
    causes: [{ reason: "FieldValueForbidden", message: `Forbidden: ${why}`, field }],
  });
}

function timeoutOf(text: string | null): number | undefined {
  const seconds = Number(text ?? "0");
  return Number.isSafeInteger(seconds) && seconds !== 0 ? seconds : undefined;
}

/** Returns the query of a watch at `/watch/.../NAME`, which has the effect of `fieldSelector=metadata.name=NAME`. */
function named(target: Target, query: URLSearchParams): URLSearchParams {
  if (target.name === undefined) return query;
  const narrowed = new URLSearchParams(query);
  narrowed.set("fieldSelector", `metadata.name=${target.name}`);
  return narrowed;
}
