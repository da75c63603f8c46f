/**
 * Step 4 of 7: who answers?
 *
 * Pure: what health knows goes in, one backend's name or a Failure comes out. Next: dial.
 */
import { Failure } from "../failure.ts";
import type { BackendState, BackendView } from "../health/backend.ts";

export type Choice = {
  readonly views: readonly BackendView[];
  /** Streams open to each backend: the fewest wins. */
  readonly loads: (name: string) => number;
  /** Where the client's requests have gone so far: it stays there while that one serves (k/k 59848). */
  readonly bound: string | undefined;
  /** Backends that this request was already tried on. */
  readonly tried: readonly string[];
};

/** Better states first; a dead backend is never chosen, whatever the others are. */
const order: readonly BackendState[] = ["ready", "unknown", "draining", "suspect"];

export function choose({ views, loads, bound, tried }: Choice): string | Failure {
  const stays = views.find((view) => view.name === bound);
  const mayStay = stays?.state === "ready" || stays?.state === "unknown";
  if (stays !== undefined && mayStay && !tried.includes(stays.name)) return stays.name;
  const untried = views.filter((view) => !tried.includes(view.name));
  // Whoever is tried and still ready refused that stream only, with a GOAWAY say, and takes it on another lane.
  const again = views.filter((view) => view.state === "ready");
  const best = bestOf(untried, loads) ?? bestOf(again, loads);
  if (best !== undefined) return best.name;
  const counts = views.map((view) => `${view.name} ${view.state}`).join(", ");
  return new Failure("no-backend", "proxy", `Cannot choose a backend: ${counts || "none configured"}`);
}

function bestOf(views: readonly BackendView[], loads: Choice["loads"]): BackendView | undefined {
  for (const state of order) {
    const [best] = views
      .filter((view) => view.state === state)
      .toSorted((a, b) => loads(a.name) - loads(b.name));
    if (best !== undefined) return best;
  }
  return undefined;
}
