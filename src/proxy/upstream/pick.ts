/** Which backend is asked: what health knows goes in, one backend's name or a Failure comes out. */
import { Failure } from "../../base/failure.ts";
import type { BackendState, BackendView } from "../../health/backend.ts";

export type PickParts = {
  readonly views: readonly BackendView[];
  /** What each backend has to answer, weighed: the least wins. */
  readonly loads: (name: string) => number;
  /** Where the client's requests have gone so far: it stays there while that one serves (k/k 59848). */
  readonly bound: string | undefined;
  /** Backends that this request was already tried on. */
  readonly tried: readonly string[];
};

/** Better states first; a dead backend is never chosen, whatever the others are. */
const willing: readonly BackendState[] = ["ready", "unknown", "draining"];
const doubtful: readonly BackendState[] = ["suspect"];
/** Who is known to answer: what is asked twice is asked of nobody else. */
const answering: readonly BackendState[] = ["ready", "draining"];

/** The bound backend while it serves, else the least loaded of the best state that can be had. */
export function pick({ views, loads, bound, tried }: PickParts): string | Failure {
  if (bound !== undefined && mayStay(bound, views, tried)) return bound;
  const untried = views.filter((view) => !tried.includes(view.name));
  const ready = views.filter((view) => view.state === "ready");
  // Whoever is tried and still ready refused that stream only, with a GOAWAY say, and takes it on another upstream connection. Refused
  // twice, it may be dying, upstream connection after upstream connection: who is in doubt is the better choice then.
  const again = ready.filter(({ name }) => tried.indexOf(name) === tried.lastIndexOf(name));
  const best =
    bestOf(untried, willing, loads) ??
    bestOf(again, willing, loads) ??
    bestOf(untried, doubtful, loads) ??
    bestOf(ready, willing, loads);
  if (best !== undefined) return best.name;
  const counts = views.map((view) => `${view.name} ${view.state}`).join(", ");
  return new Failure("no-backend", "proxy", `Cannot choose a backend: ${counts || "none configured"}`);
}

/** Nearly every request is decided here, so no list is made for it. */
function mayStay(bound: string, views: readonly BackendView[], tried: readonly string[]): boolean {
  const view = views.find(({ name }) => name === bound);
  return (view?.state === "ready" || view?.state === "unknown") && !tried.includes(bound);
}

/** Who else may be asked, when those in `except` do not answer; undefined when nobody is known to be any better. */
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
