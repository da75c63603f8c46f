/** Chooses the backend to which a watch moves, by the present state of backends, connections and caches. */
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { BackendState, BackendView } from "../../health/backend.ts";
import type { Backends } from "../../health/backends.ts";
import type { Attempt } from "../../upstream/pool/attempt.ts";
import { pick, pickOther } from "../../upstream/pool/pick.ts";
import type { PoolSet } from "../../upstream/pool/pool-set.ts";
import type { CacheTracker } from "../cache/cache-progress.ts";
import { watchLimits } from "../limits.ts";
import type { ServedBy, WatchContext } from "../session/watch-context.ts";
import type { WatchSession } from "../session/watch-session.ts";

type TargetPickerParts = {
  readonly clock: Clock;
  readonly backends: Backends;
  readonly pools: PoolSet;
  readonly caches: CacheTracker;
  /** Returns the version that a backend reports, such as "v1.36.1"; "": unknown. */
  readonly versionOf: (backend: string) => string;
};

const none: readonly string[] = [];

export class TargetPicker {
  readonly #parts: TargetPickerParts;

  constructor(parts: TargetPickerParts) {
    this.#parts = parts;
  }

  /**
   * True if no running backend has the watch's version, and no dead backend can come back with that version in its
   * cache (watch.md §5.4).
   */
  isForgotten(watch: WatchSession): boolean {
    const refusing = this.refusing(watch);
    const mayKnow = ({ name, state }: BackendView): boolean =>
      !refusing.includes(name) && (state !== "dead" || this.#isHidden(name));
    if (refusing.length === 0) return false;
    // `events` come from etcd and not from a cache, so if one backend refuses a version, all do.
    return watch.isRepeating || !this.#parts.backends.views.some(mayKnow);
  }

  /**
   * True if every backend has answered 404. An unreachable backend counts as serving the resource, because it may
   * already have a new CRD.
   */
  isServedNowhere(notServing: readonly string[]): boolean {
    return this.#parts.backends.views.every(({ name }) => notServing.includes(name));
  }

  /**
   * True if a dead backend may come back with its caches. That is so if the backend only stopped answering, and only a
   * short time ago. If a backend refuses new connections, its process has ended, and its caches are lost.
   */
  #isHidden(name: string): boolean {
    const { backends } = this.#parts;
    return backends.factsOf(name).fresh === "silence" && backends.stateMs(name) < watchLimits.resumeMs;
  }

  /**
   * True if the proxy may end a watch of a stalled cache, because another backend can serve the client's next watch.
   */
  mayEnd(watch: WatchSession): boolean {
    return this.better(watch, watch.attempt?.backend ?? "") !== undefined;
  }

  /** True if `attempt`, whose connection or backend is silent, should be given up for another backend or connection. */
  isInVain(watch: WatchSession, attempt: Attempt): boolean {
    // While many watches move, most attempts wait for a connection. That is no reason to leave a healthy backend.
    if (attempt.up === undefined && !this.isDoubtful(attempt.backend)) return false;
    if (watch.attempt !== undefined || this.elsewhereFor(watch, [attempt.backend]) !== undefined) return true;
    // No other backend can be asked. Another connection to the same backend is better only if that connection answers.
    const { pools } = this.#parts;
    return (
      !this.isDoubtful(attempt.backend) &&
      pools.promptConnection(attempt.backend, watch.poolKey()) !== undefined
    );
  }

  /** True if the attempt's request was sent and no other backend can be asked. */
  isAlone(watch: WatchSession, { backend, up }: Attempt): boolean {
    return up !== undefined && this.elsewhereFor(watch, [backend]) === undefined;
  }

  isDoubtful(backend: string): boolean {
    const state = this.stateOf(backend);
    return state === "suspect" || state === "dead";
  }

  /** True if the end of the attempt's stream is expected: after GOAWAY, or from a draining or removed backend. */
  isLeaving(attempt: Attempt): boolean {
    const state = this.stateOf(attempt.backend);
    return attempt.isConnectionRetiring || state === "draining" || state === undefined;
  }

  /**
   * True if the attempt's backend is leaving and has no connection that takes a new stream. The backend is probably
   * shutting down, so a dial would fail, and thousands of watches would dial at once.
   */
  isClosed(watch: WatchSession, attempt: Attempt): boolean {
    const { pools } = this.#parts;
    return this.isLeaving(attempt) && pools.promptConnection(attempt.backend, watch.poolKey()) === undefined;
  }

  /**
   * Returns a backend for the watch, if possible one whose cache is not stalled. If all other backends' caches are
   * stalled, returns one of them, because its events are late but not lost.
   */
  choose(watch: WatchSession, tried: readonly string[]): string | undefined {
    const { pools } = this.#parts;
    const bound = watch.clientRequest.client.backend;
    const except = [...tried, ...this.stalled(watch)];
    const refusing = this.refusing(watch);
    const views = this.fitFor(watch).filter(({ name }) => !refusing.includes(name));
    const backend = pick({ views, loads: pools, bound, tried: except });
    return backend instanceof Failure ? undefined : backend;
  }

  /** Returns a backend other than `from` whose cache is not stalled; undefined if there is none. */
  better(watch: WatchSession, from: string): string | undefined {
    const backend = this.choose(watch, [from]);
    return backend === from || this.stalled(watch).includes(backend ?? "") ? undefined : backend;
  }

  stalled({ resource }: WatchSession): readonly string[] {
    return this.#parts.caches.isClear
      ? none
      : this.#parts.caches.stalledWith(resource, this.#parts.clock.now());
  }

  /**
   * Returns the backends that have answered 410 to a watch request from this watch's resume version or a newer version.
   */
  refusing({ resource, progress: { resumeVersion: version } }: WatchSession): readonly string[] {
    return version === undefined ? none : this.#parts.caches.refusing(resource, version);
  }

  elsewhereFor(watch: WatchSession, except: readonly string[]): string | undefined {
    const { pools } = this.#parts;
    const all = [...except, ...this.stalled(watch), ...this.refusing(watch)];
    return pickOther(this.fitFor(watch), pools, all);
  }

  /**
   * Returns the backends that take the client's identity and would send the same events. If the request has a parameter
   * that not all apiservers know, these are the backends with the version of the one that has answered the client.
   */
  fitFor({ clientRequest, asked: { servedBy } }: WatchSession): readonly BackendView[] {
    const { backends, pools } = this.#parts;
    const views = pools.fitFor(backends.views, clientRequest.asserted?.trust);
    return servedBy === undefined ? views : views.filter(({ name }) => this.#isLike(servedBy, name));
  }

  /** Returns those of the backends `names` that `fitFor` returns. */
  fitAmong(watch: WatchSession, names: readonly string[]): readonly string[] {
    const fit = this.fitFor(watch).map(({ name }) => name);
    return names.filter((name) => fit.includes(name));
  }

  #isLike({ backend, minor }: ServedBy, name: string): boolean {
    const other = this.#minorOf(name);
    return other === "" || minor === "" ? name === backend : other === minor;
  }

  #minorOf(backend: string): string {
    return /^v?(\d+\.\d+)/.exec(this.#parts.versionOf(backend))?.[1] ?? "";
  }

  /** Returns the context of a watch that `backend` has answered. */
  answeredBy(backend: string, asked: WatchContext): WatchContext {
    return asked.isUncommon ? { ...asked, servedBy: { backend, minor: this.#minorOf(backend) } } : asked;
  }

  /** True if a backend is ready, but all backends that would send the watch's events are dead. */
  isStranded(watch: WatchSession): boolean {
    const isAnyReady = this.#parts.backends.views.some(({ state }) => state === "ready");
    return (
      watch.asked.servedBy !== undefined &&
      isAnyReady &&
      this.fitFor(watch).every(({ state }) => state === "dead")
    );
  }

  /** Returns the state of a backend; undefined if it is no longer configured or discovered. */
  stateOf(backend: string): BackendState | undefined {
    return this.#parts.backends.views.find(({ name }) => name === backend)?.state;
  }
}
