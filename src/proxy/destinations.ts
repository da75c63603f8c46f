/** Where a watch may go, as backends, lanes and caches are just now; judged anew each time that it is asked. */
import type { Clock } from "../clock.ts";
import { Failure } from "../failure.ts";
import type { BackendState, BackendView } from "../health/backend.ts";
import type { Backends } from "../health/backends.ts";
import { limits } from "../limits.ts";
import type { Standings } from "../watch/stale.ts";
import { choose, elsewhere } from "./choose.ts";
import type { Leg } from "./leg.ts";
import type { Upstreams } from "./upstreams.ts";
import type { Watching } from "./watching.ts";

export type DestinationsParts = {
  readonly clock: Clock;
  readonly backends: Backends;
  readonly upstreams: Upstreams;
  readonly standings: Standings;
};

const nobody: readonly string[] = [];

export class Destinations {
  readonly #parts: DestinationsParts;

  constructor(parts: DestinationsParts) {
    this.#parts = parts;
  }

  /**
   * Does nobody know its version any more (watch.md §5.4): neither who can be asked, nor who is only out of reach? A
   * backend whose sockets are refused has lost its process, and its cache with it.
   */
  isForgotten(watching: Watching): boolean {
    const refusing = this.refusing(watching);
    const mayKnow = ({ name, state, since }: BackendView): boolean =>
      !refusing.includes(name) && (state !== "dead" || this.#isHidden(name, since));
    if (refusing.length === 0) return false;
    // All backends ask the same etcd.
    return watching.legs.isRepeating || !this.#parts.backends.views.some(mayKnow);
  }

  #isHidden(name: string, since: number): boolean {
    return (
      this.#parts.backends.held(name).fresh === "silence" && this.#parts.clock.now() - since < limits.resumeMs
    );
  }

  /** Its backend stands still. Does another one go on, to which its client would come? */
  mayEnd(watching: Watching): boolean {
    return this.better(watching, watching.leg?.backend ?? "") !== undefined;
  }

  /** A second leg is suspected, or one that is waited for. Is somebody else better off to be asked? */
  isInVain(watching: Watching, leg: Leg): boolean {
    // One that waits for a lane, as all do in a mass move, is better off nowhere else while its backend is well.
    if (leg.up === undefined && !this.isDoubtful(leg.backend)) return false;
    if (watching.leg !== undefined || this.elsewhereFor(watching, [leg.backend]) !== undefined) return true;
    // The only one left is waited for, unless another of its lanes answers.
    const { upstreams } = this.#parts;
    return (
      !this.isDoubtful(leg.backend) && upstreams.promptLane(leg.backend, watching.laneKey()) !== undefined
    );
  }

  /** It was asked, and nobody else can be. */
  isAlone(watching: Watching, { backend, up }: Leg): boolean {
    return up !== undefined && this.elsewhereFor(watching, [backend]) === undefined;
  }

  /** Had one better not wait for this backend? */
  isDoubtful(backend: string): boolean {
    const state = this.stateOf(backend);
    return state === "suspect" || state === "dead";
  }

  /** Is it known why this leg's backend ends its streams? */
  isLeaving(leg: Leg): boolean {
    const state = this.stateOf(leg.backend);
    return leg.isLaneRetiring || state === "draining" || state === undefined;
  }

  /** One that stands still is chosen only when nobody else is there: from its version on, a watch misses nothing. */
  choose(watching: Watching, tried: readonly string[]): string | undefined {
    const { backends, upstreams } = this.#parts;
    const loads = (name: string): number => upstreams.weightOf(name);
    const bound = watching.client.backend;
    const except = [...tried, ...this.stalled(watching)];
    const refusing = this.refusing(watching);
    const views = backends.views.filter(({ name }) => !refusing.includes(name));
    const backend = choose({ views, loads, bound, tried: except });
    return backend instanceof Failure ? undefined : backend;
  }

  /** Who is surely better than the backend it has. */
  better(watching: Watching, from: string): string | undefined {
    const backend = this.choose(watching, [from]);
    return backend === from || this.stalled(watching).includes(backend ?? "") ? undefined : backend;
  }

  stalled({ legs: { resource } }: Watching): readonly string[] {
    return this.#parts.standings.isClear
      ? nobody
      : this.#parts.standings.stalledWith(resource, this.#parts.clock.now());
  }

  /** Those whose caches are known to begin behind its version. */
  refusing({ legs: { resource }, progress: { resumeVersion: version } }: Watching): readonly string[] {
    return version === undefined ? nobody : this.#parts.standings.refusing(resource, version);
  }

  elsewhereFor(watching: Watching, except: readonly string[]): string | undefined {
    const { backends, upstreams } = this.#parts;
    const all = [...except, ...this.stalled(watching), ...this.refusing(watching)];
    return elsewhere(backends.views, (name) => upstreams.weightOf(name), all);
  }

  /** Undefined when it is no backend of ours any more. */
  stateOf(backend: string): BackendState | undefined {
    return this.#parts.backends.views.find(({ name }) => name === backend)?.state;
  }
}
