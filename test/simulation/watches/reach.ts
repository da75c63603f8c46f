/** Derives from the faults of the apiservers which of them could serve a watch, and since when. */
import type { SimulatedApiserver } from "./apiserver.ts";

export class Reach {
  readonly #apiservers: readonly SimulatedApiserver[];
  readonly #now: () => number;
  /** The last time at which a fault of any backend began or ended, and the same for each backend. */
  befellAt = Number.NEGATIVE_INFINITY;
  readonly #befellEachAt = new Map<SimulatedApiserver, number>();
  /**
   * For each apiserver that cannot serve now, the beginning of its outage. For each that can serve again, the beginning
   * and the end of its last outage.
   */
  readonly #hiddenSince = new Map<SimulatedApiserver, number>();
  readonly #wasHiddenSince = new Map<SimulatedApiserver, number>();
  readonly #hiddenUntil = new Map<SimulatedApiserver, number>();
  #isUnserved = false;
  #unservedUntil = Number.NEGATIVE_INFINITY;

  constructor(apiservers: readonly SimulatedApiserver[], now: () => number) {
    this.#apiservers = apiservers;
    this.#now = now;
  }

  /** Called when a fault of this backend begins or ends. */
  look(backend: SimulatedApiserver): void {
    this.befellAt = this.#now();
    this.#befellEachAt.set(backend, this.befellAt);
    if (!isServing(backend)) {
      if (!this.#hiddenSince.has(backend)) this.#hiddenSince.set(backend, this.befellAt);
    } else this.#isBack(backend);
    if (this.#isUnserved) this.#unservedUntil = this.befellAt;
    this.#isUnserved = !this.#apiservers.some(isServing);
  }

  #isBack(backend: SimulatedApiserver): void {
    const since = this.#hiddenSince.get(backend);
    if (since === undefined) return;
    this.#hiddenSince.delete(backend);
    this.#wasHiddenSince.set(backend, since);
    this.#hiddenUntil.set(backend, this.befellAt);
  }

  /** The last time at which no apiserver could serve a watch. The present time while none can. */
  get unservedAt(): number {
    return this.#isUnserved ? this.#now() : this.#unservedUntil;
  }

  /** True if some apiserver serves watches from `version`, and had no fault and no lag behind etcd after `since`. */
  isServedSince(resource: string, version: number, since: number): boolean {
    const isWell = (one: SimulatedApiserver): boolean =>
      (this.#befellEachAt.get(one) ?? Number.NEGATIVE_INFINITY) < since && one.behindUntil < since;
    return this.#apiservers.some((one) => one.serves(resource, version) && isWell(one));
  }

  /**
   * Returns the time at which the first apiserver with this version could be reached again and no longer lagged.
   * -Infinity if one was always reachable and up to date, or if none has the version.
   */
  reachableAgain(resource: string, version: number): number {
    const times = this.#apiservers
      .filter((one) => one.serves(resource, version))
      .map((one) => Math.max(this.#hiddenUntil.get(one) ?? Number.NEGATIVE_INFINITY, one.behindUntil));
    return times.length === 0 ? Number.NEGATIVE_INFINITY : Math.min(...times);
  }

  /** True if the apiserver was unreachable and came back after `since`. */
  isBackSince(one: SimulatedApiserver, since: number): boolean {
    return (this.#hiddenUntil.get(one) ?? Number.NEGATIVE_INFINITY) > since;
  }

  /**
   * True if each apiserver that knows the version has been unreachable since `since` at the latest. An apiserver that
   * came back after `foundBy` counts as unreachable, because the proxy has not noticed its return yet.
   */
  isHiddenSince(resource: string, version: number, since: number, foundBy: number): boolean {
    const from = (one: SimulatedApiserver): number | undefined =>
      this.#hiddenSince.get(one) ??
      (this.isBackSince(one, foundBy) ? this.#wasHiddenSince.get(one) : undefined);
    return this.#apiservers
      .filter((one) => one.knows(resource, version))
      .every((one) => (from(one) ?? Number.POSITIVE_INFINITY) <= since);
  }
}

/** True if the apiserver could serve a watch from a future version, which needs no history. */
function isServing(one: SimulatedApiserver): boolean {
  return one.serves("", Number.POSITIVE_INFINITY);
}
