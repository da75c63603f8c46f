/** Where a watch may go, as backends, upstream connections and caches are just now; judged anew each time that it is asked. */
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { BackendState, BackendView } from "../../health/backend.ts";
import type { Backends } from "../../health/backends.ts";
import type { Attempt } from "../../proxy/upstream/attempt.ts";
import { pick, pickOther } from "../../proxy/upstream/pick.ts";
import type { PoolKey } from "../../proxy/upstream/pool-key.ts";
import type { PoolSet } from "../../proxy/upstream/pool-set.ts";
import type { CacheTracker } from "../cache/cache-progress.ts";
import { watchLimits } from "../cache/limits.ts";

export type TargetPickerParts = {
  readonly clock: Clock;
  readonly backends: Backends;
  readonly pools: PoolSet;
  readonly caches: CacheTracker;
};

/** What is looked at of a watch: whose it is, what it has, and from which version it would go on. */
export type Seeker = {
  readonly client: { readonly backend: string | undefined };
  readonly attempt: Attempt | undefined;
  readonly merge: { readonly resource: string; readonly isRepeating: boolean };
  readonly progress: { readonly resumeVersion: string | undefined };
  poolKey(): PoolKey;
};

const nobody: readonly string[] = [];

export class TargetPicker {
  readonly #parts: TargetPickerParts;

  constructor(parts: TargetPickerParts) {
    this.#parts = parts;
  }

  /**
   * Does nobody know its version any more (watch.md §5.4): neither who can be asked, nor who is only out of reach? A
   * backend whose sockets are refused has lost its process, and its cache with it.
   */
  isForgotten(seeker: Seeker): boolean {
    const refusing = this.refusing(seeker);
    const mayKnow = ({ name, state }: BackendView): boolean =>
      !refusing.includes(name) && (state !== "dead" || this.#isHidden(name));
    if (refusing.length === 0) return false;
    // All backends ask the same etcd.
    return seeker.merge.isRepeating || !this.#parts.backends.views.some(mayKnow);
  }

  /** True if every backend is among these, which have answered 404. One that is out of reach may have seen a new CRD before them. */
  isServedNowhere(notServing: readonly string[]): boolean {
    return this.#parts.backends.views.every(({ name }) => notServing.includes(name));
  }

  /** True of a dead backend whose watches may still be waiting for it: sockets to it meet silence, and not for long. */
  #isHidden(name: string): boolean {
    const { backends } = this.#parts;
    return backends.held(name).fresh === "silence" && backends.stateMs(name) < watchLimits.resumeMs;
  }

  /** Its backend stands still. Does another one go on, to which its client would come? */
  mayEnd(seeker: Seeker): boolean {
    return this.better(seeker, seeker.attempt?.backend ?? "") !== undefined;
  }

  /** A second leg is suspected, or one that is waited for. Is somebody else better off to be asked? */
  isInVain(seeker: Seeker, attempt: Attempt): boolean {
    // One that waits for an upstream connection, as all do in a mass move, is better off nowhere else while its backend is well.
    if (attempt.up === undefined && !this.isDoubtful(attempt.backend)) return false;
    if (seeker.attempt !== undefined || this.elsewhereFor(seeker, [attempt.backend]) !== undefined)
      return true;
    // The only one left is waited for, unless another of its upstream connections answers.
    const { pools } = this.#parts;
    return (
      !this.isDoubtful(attempt.backend) &&
      pools.promptConnection(attempt.backend, seeker.poolKey()) !== undefined
    );
  }

  /** It was asked, and nobody else can be. */
  isAlone(seeker: Seeker, { backend, up }: Attempt): boolean {
    return up !== undefined && this.elsewhereFor(seeker, [backend]) === undefined;
  }

  /** Had one better not wait for this backend? */
  isDoubtful(backend: string): boolean {
    const state = this.stateOf(backend);
    return state === "suspect" || state === "dead";
  }

  /** Is it known why this leg's backend ends its streams? */
  isLeaving(attempt: Attempt): boolean {
    const state = this.stateOf(attempt.backend);
    return attempt.isConnectionRetiring || state === "draining" || state === undefined;
  }

  /** One that stands still is chosen only when nobody else is there: from its version on, a watch misses nothing. */
  choose(seeker: Seeker, tried: readonly string[]): string | undefined {
    const { backends, pools } = this.#parts;
    const loads = (name: string): number => pools.weightOf(name);
    const bound = seeker.client.backend;
    const except = [...tried, ...this.stalled(seeker)];
    const refusing = this.refusing(seeker);
    const views = backends.views.filter(({ name }) => !refusing.includes(name));
    const backend = pick({ views, loads, bound, tried: except });
    return backend instanceof Failure ? undefined : backend;
  }

  /** Who is surely better than the backend it has. */
  better(seeker: Seeker, from: string): string | undefined {
    const backend = this.choose(seeker, [from]);
    return backend === from || this.stalled(seeker).includes(backend ?? "") ? undefined : backend;
  }

  stalled({ merge: { resource } }: Seeker): readonly string[] {
    return this.#parts.caches.isClear
      ? nobody
      : this.#parts.caches.stalledWith(resource, this.#parts.clock.now());
  }

  /** Those whose caches are known to begin behind its version. */
  refusing({ merge: { resource }, progress: { resumeVersion: version } }: Seeker): readonly string[] {
    return version === undefined ? nobody : this.#parts.caches.refusing(resource, version);
  }

  elsewhereFor(seeker: Seeker, except: readonly string[]): string | undefined {
    const { backends, pools } = this.#parts;
    const all = [...except, ...this.stalled(seeker), ...this.refusing(seeker)];
    return pickOther(backends.views, (name) => pools.weightOf(name), all);
  }

  /** Undefined when it is no backend of ours any more. */
  stateOf(backend: string): BackendState | undefined {
    return this.#parts.backends.views.find(({ name }) => name === backend)?.state;
  }
}
