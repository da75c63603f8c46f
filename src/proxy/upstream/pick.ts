/** Picks the backend for a request. */
import { Failure } from "../../base/failure.ts";
import type { BackendState, BackendView } from "../../health/backend.ts";

export type PickParts = {
  readonly views: readonly BackendView[];
  /** Returns the weighted load of a backend. The backend with the smallest load is picked. */
  readonly loads: (name: string) => number;
  /** The backend of the client's earlier requests, which is kept as long as it serves (k/k 59848). */
  readonly bound: string | undefined;
  readonly tried: readonly string[];
};

const pickableBestFirst: readonly BackendState[] = ["ready", "unknown", "draining"];
const doubtful: readonly BackendState[] = ["suspect"];
/** States in which a backend is known to answer. Hedges go to no other backend. */
const answering: readonly BackendState[] = ["ready", "draining"];

/**
 * Returns the bound backend if it serves, otherwise the least loaded one in the best state. Suspect backends that
 * answer precede other suspect ones, which may stay silent after a silence of all backends (D14).
 */
export function pick({ views, loads, bound, tried }: PickParts): string | Failure {
  if (bound !== undefined && mayStay(bound, views, tried)) return bound;
  const untried = views.filter((view) => !tried.includes(view.name));
  const ready = views.filter((view) => view.state === "ready");
  // A ready backend that has failed once may have refused only that stream, for example with a GOAWAY, and is tried
  // again on another connection. After two failures, a suspect backend is the better choice.
  const again = ready.filter(({ name }) => tried.indexOf(name) === tried.lastIndexOf(name));
  const best =
    bestOf(untried, pickableBestFirst, loads) ??
    bestOf(again, pickableBestFirst, loads) ??
    bestOf(
      untried.filter(({ isMute }) => isMute !== true),
      doubtful,
      loads,
    ) ??
    bestOf(untried, doubtful, loads) ??
    bestOf(ready, pickableBestFirst, loads);
  if (best !== undefined) return best.name;
  const counts = views.map((view) => `${view.name} ${view.state}`).join(", ");
  return new Failure("no-backend", "proxy", `Cannot choose a backend: ${counts || "none configured"}`);
}

/** Creates no array, because nearly every request is decided here. */
function mayStay(bound: string, views: readonly BackendView[], tried: readonly string[]): boolean {
  const view = views.find(({ name }) => name === bound);
  return (view?.state === "ready" || view?.state === "unknown") && !tried.includes(bound);
}

/** Returns a backend that is known to answer and is not in `except`; undefined: none. */
export function pickOther(
  views: readonly BackendView[],
  loads: PickParts["loads"],
  except: readonly string[],
): string | undefined {
  const others = views.filter((view) => !except.includes(view.name));
  return bestOf(others, answering, loads)?.name;
}

function bestOf(
  views: readonly BackendView[],
  states: readonly BackendState[],
  loads: PickParts["loads"],
): BackendView | undefined {
  for (const state of states) {
    const [best] = views
      .filter((view) => view.state === state)
      .toSorted((a, b) => loads(a.name) - loads(b.name));
    if (best !== undefined) return best;
  }
  return undefined;
}
