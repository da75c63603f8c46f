/** Picks the backend for a request. */
import { Failure } from "../../base/failure.ts";
import type { BackendState, BackendView } from "../../health/backend.ts";

/** The loads by which backends of equal rank are compared. `PoolSet` implements this type. */
export type Loads = {
  /**
   * Returns the backend's load, divided by the share of all load that the backend should get. For a backend in another
   * zone, the result is increased.
   */
  readonly weightOf: (backend: string) => number;
  /**
   * True if the backend has sent 429 with Retry-After. A paused backend is picked only if all other backends are
   * paused, too.
   */
  readonly isPaused: (backend: string) => boolean;
  /** True if the backend is in the proxy's own zone, or if zones are not known. */
  readonly isNear: (backend: string) => boolean;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
};

export type PickParts = {
  readonly views: readonly BackendView[];
  readonly loads: Loads;
  /** The backend of the client's earlier requests. The client keeps it as long as it is fit to serve (k/k 59848). */
  readonly bound: string | undefined;
  readonly tried: readonly string[];
};

const pickableBestFirst: readonly BackendState[] = ["ready", "unknown", "draining"];
/** States in which a backend is known to answer. Only backends in these states get hedges. */
const answering: readonly BackendState[] = ["ready", "draining"];
/** The rank of a backend that must not be picked. */
const unfit = Number.POSITIVE_INFINITY;

/**
 * Returns the bound backend if it is fit to serve; otherwise a backend of the best rank with little load. Creates no
 * array for a bound client, because most requests come from bound clients.
 */
export function pick({ views, loads, bound, tried }: PickParts): string | Failure {
  if (bound !== undefined && mayStay(bound, views, tried)) return bound;
  const best = bestOf(views, (view) => rankOf(view, tried), loads);
  if (best !== undefined) return best.name;
  const counts = views.map((view) => `${view.name} ${view.state}`).join(", ");
  return new Failure("no-backend", "proxy", `Cannot choose a backend: ${counts || "none configured"}`);
}

/**
 * Returns the rank of a backend. The backend with the lowest rank is picked first. A ready backend that failed once
 * during this request is tried again on another connection, because it may have refused only one stream, for example
 * with a GOAWAY. After its second failure, a suspect backend is the better choice. Suspect backends that answer come
 * before suspect backends that do not: after a time in which no backend answered, some backends may still be silent
 * (D14).
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

/**
 * Returns a backend with the best rank, which is the lowest number. Compares loads only between backends of this rank.
 * undefined: every backend is unfit.
 */
function bestOf(
  views: readonly BackendView[],
  rank: (view: BackendView) => number,
  loads: Loads,
): BackendView | undefined {
  const bestRank = views.reduce((best, view) => Math.min(best, rank(view)), unfit);
  const best = views.filter((view) => rank(view) === bestRank && bestRank < unfit);
  if (best.length < 2) return best[0];
  const willing = best.filter(({ name }) => !loads.isPaused(name));
  return bestByZone(willing.length > 0 ? willing : best, loads);
}

/**
 * Returns a backend in the proxy's own zone, unless the load there is much higher than in other zones
 * (`PoolSet.weightOf`). undefined: `views` is empty.
 */
function bestByZone(views: readonly BackendView[], loads: Loads): BackendView | undefined {
  const near = leastOfTwo(
    views.filter(({ name }) => loads.isNear(name)),
    loads,
  );
  const far = leastOfTwo(
    views.filter(({ name }) => !loads.isNear(name)),
    loads,
  );
  if (near === undefined || far === undefined) return near ?? far;
  return loads.weightOf(far.name) < loads.weightOf(near.name) ? far : near;
}

/**
 * Draws two backends at random and returns the less loaded one. If thousands of proxies all picked the backend that
 * looks least loaded, they would send all new clients to that backend at once.
 */
function leastOfTwo(views: readonly BackendView[], { weightOf, random }: Loads): BackendView | undefined {
  if (views.length < 2) return views[0];
  const first = Math.floor(random() * views.length);
  const step = 1 + Math.floor(random() * (views.length - 1));
  const [one, other] = [views[first], views[(first + step) % views.length]];
  if (one === undefined || other === undefined) return one ?? other;
  return weightOf(other.name) < weightOf(one.name) ? other : one;
}
