/** Picks the backend that a request takes, and the next one after a failed attempt. */
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { BackendState, BackendView } from "../../health/backend.ts";

export type PickParts = {
  readonly views: readonly BackendView[];
  /** The weighed load of each backend: the least wins. */
  readonly loads: (name: string) => number;
  /** The backend of the client's previous requests: it is kept while it serves (k/k 59848). */
  readonly bound: string | undefined;
  /** Backends that this request was already tried on. */
  readonly tried: readonly string[];
};

/** Better states first; a dead backend is never chosen, whatever the others are. */
const willing: readonly BackendState[] = ["ready", "unknown", "draining"];
const doubtful: readonly BackendState[] = ["suspect"];
/** States in which a backend is known to answer: a hedge goes to no other. */
const answering: readonly BackendState[] = ["ready", "draining"];

/**
 * Returns the bound backend while it serves, else the least loaded one in the best available state. Of suspect backends one
 * that answers comes first: after a silence of all (D14) the others may stay silent.
 */
export function pick({ views, loads, bound, tried }: PickParts): string | Failure {
  if (bound !== undefined && mayStay(bound, views, tried)) return bound;
  const untried = views.filter((view) => !tried.includes(view.name));
  const ready = views.filter((view) => view.state === "ready");
  // A backend that was tried and is still ready refused that stream only, for example with a GOAWAY, and takes it on
  // another connection. One that refused it twice may be failing connection by connection: then a suspect backend is the
  // better choice.
  const again = ready.filter(({ name }) => tried.indexOf(name) === tried.lastIndexOf(name));
  const best =
    bestOf(untried, willing, loads) ??
    bestOf(again, willing, loads) ??
    bestOf(
      untried.filter(({ isMute }) => isMute !== true),
      doubtful,
      loads,
    ) ??
    bestOf(untried, doubtful, loads) ??
    bestOf(ready, willing, loads);
  if (best !== undefined) return best.name;
  const counts = views.map((view) => `${view.name} ${view.state}`).join(", ");
  return new Failure("no-backend", "proxy", `Cannot choose a backend: ${counts || "none configured"}`);
}

/** Nearly every request is decided here, so no array is created for it. */
function mayStay(bound: string, views: readonly BackendView[], tried: readonly string[]): boolean {
  const view = views.find(({ name }) => name === bound);
  return (view?.state === "ready" || view?.state === "unknown") && !tried.includes(bound);
}

/** Returns another backend, if those in `except` do not answer; undefined if none is known to be better. */
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

/** Most requests never retry: they share this list, which saves an array for each of 50,000 watches. */
const none: readonly string[] = [];

/** The retries of one request, one Upgrade or one passthrough connection: the backends that were tried, and which one is next. */
export class Retries {
  /** Picked only if no other backend can be. */
  readonly #avoided: readonly string[];
  #tried = none;

  constructor(avoided: readonly string[] = none) {
    this.#avoided = avoided;
  }

  /** The backends whose attempts failed, the earliest first. A backend that failed twice is listed twice. */
  get tried(): readonly string[] {
    return this.#tried;
  }

  /** True if `limits.attempts` attempts have failed. */
  get isSpent(): boolean {
    return this.#tried.length >= limits.attempts;
  }

  /** Returns the backend of the next attempt, or a Failure if none can be asked now. */
  nextBackend(views: PickParts["views"], loads: PickParts["loads"], bound?: string): string | Failure {
    const tried = this.#avoided.length === 0 ? this.#tried : [...this.#tried, ...this.#avoided];
    return pick({ views, loads, bound, tried });
  }

  /** The attempt at this backend failed. */
  failed(backend: string): void {
    this.#tried = [...this.#tried, backend];
  }

  /** The earliest `count` failed attempts no longer count. */
  forget(count: number): void {
    this.#tried = this.#tried.length > count ? this.#tried.slice(count) : none;
  }
}
