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
/** States in which a backend is known to answer. A hedge goes to no other backend. */
const answering: readonly BackendState[] = ["ready", "draining"];
/** The rank of a backend that cannot be picked. */
const unfit = Number.POSITIVE_INFINITY;

/**
 * Returns the bound backend if it serves, otherwise the least loaded one of the best rank. Creates no array, because
 * most requests are decided here.
 */
export function pick({ views, loads, bound, tried }: PickParts): string | Failure {
  if (bound !== undefined && mayStay(bound, views, tried)) return bound;
  const best = bestOf(views, (view) => rankOf(view, tried), loads);
  if (best !== undefined) return best.name;
  const counts = views.map((view) => `${view.name} ${view.state}`).join(", ");
  return new Failure("no-backend", "proxy", `Cannot choose a backend: ${counts || "none configured"}`);
}

/**
 * Returns 0 for the backends to pick first. A ready backend that failed once may have refused that stream only, for
 * example with a GOAWAY, and is tried again on another connection. If it failed twice, a suspect backend is the better
 * choice. Suspect backends that answer come before other suspect ones, which may stay silent after a silence of all
 * backends (D14).
 */
function rankOf({ name, state, isMute }: BackendView, tried: readonly string[]): number {
  const first = tried.indexOf(name);
  if (first >= 0) {
    if (state !== "ready") return unfit;
    return first === tried.lastIndexOf(name) ? 3 : 6;
  }
  if (state === "suspect") return isMute === true ? 5 : 4;
  const rank = pickableBestFirst.indexOf(state);
  return rank < 0 ? unfit : rank;
}

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
  const rank = ({ name, state }: BackendView): number => {
    const at = answering.indexOf(state);
    return at < 0 || except.includes(name) ? unfit : at;
  };
  return bestOf(views, rank, loads)?.name;
}

/** Returns the backend of the lowest rank. Loads are compared only between backends of one rank. */
function bestOf(
  views: readonly BackendView[],
  rank: (view: BackendView) => number,
  loads: PickParts["loads"],
): BackendView | undefined {
  let best: BackendView | undefined;
  let bestRank = unfit;
  for (const view of views) {
    const own = rank(view);
    const isBetter =
      own < bestRank || (best !== undefined && own === bestRank && loads(view.name) < loads(best.name));
    if (!isBetter) continue;
    best = view;
    bestRank = own;
  }
  return best;
}
