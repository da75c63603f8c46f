/** Which backends could have served, and since when, from the faults that befell each. */
import type { SimulatedApiserver } from "./apiserver.ts";

export class Reach {
  readonly #apiservers: readonly SimulatedApiserver[];
  readonly #now: () => number;
  /** When something befell a backend last, or was over; and each of them. */
  befellAt = Number.NEGATIVE_INFINITY;
  readonly #befellEachAt = new Map<SimulatedApiserver, number>();
  /** Since when an apiserver that does not serve has been hidden; and until when one that serves again was. */
  readonly #hiddenSince = new Map<SimulatedApiserver, number>();
  readonly #wasHiddenSince = new Map<SimulatedApiserver, number>();
  readonly #hiddenUntil = new Map<SimulatedApiserver, number>();
  #isUnserved = false;
  #unservedUntil = Number.NEGATIVE_INFINITY;

  constructor(apiservers: readonly SimulatedApiserver[], now: () => number) {
    this.#apiservers = apiservers;
    this.#now = now;
  }

  /** Something befell this backend, or is over. */
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

  /** When no apiserver at all could serve last; now, while that is so. */
  get unservedAt(): number {
    return this.#isUnserved ? this.#now() : this.#unservedUntil;
  }

  /** True if an apiserver serves watches from this version, and has been well, and level with etcd, since then. */
  isServedSince(resource: string, version: number, since: number): boolean {
    const isWell = (one: SimulatedApiserver): boolean =>
      (this.#befellEachAt.get(one) ?? Number.NEGATIVE_INFINITY) < since && one.behindUntil < since;
    return this.#apiservers.some((one) => one.serves(resource, version) && isWell(one));
  }

  /** When the first of those that know the version could be reached again and was level; long ago, if one always was. */
  reachableAgain(resource: string, version: number): number {
    const times = this.#apiservers
      .filter((one) => one.serves(resource, version))
      .map((one) => Math.max(this.#hiddenUntil.get(one) ?? Number.NEGATIVE_INFINITY, one.behindUntil));
    return times.length === 0 ? Number.NEGATIVE_INFINITY : Math.min(...times);
  }

  /** True if it was out of reach, and came back after that. */
  isBackSince(one: SimulatedApiserver, since: number): boolean {
    return (this.#hiddenUntil.get(one) ?? Number.NEGATIVE_INFINITY) > since;
  }

  /** True if each apiserver that knows the version has been out of reach since then. One that came back after `foundBy` was not found yet. */
  isHiddenSince(resource: string, version: number, since: number, foundBy: number): boolean {
    const from = (one: SimulatedApiserver): number | undefined =>
      this.#hiddenSince.get(one) ??
      (this.isBackSince(one, foundBy) ? this.#wasHiddenSince.get(one) : undefined);
    return this.#apiservers
      .filter((one) => one.knows(resource, version))
      .every((one) => (from(one) ?? Number.POSITIVE_INFINITY) <= since);
  }
}

/** An apiserver that is well serves any version that is still to come. */
function isServing(one: SimulatedApiserver): boolean {
  return one.serves("", Number.POSITIVE_INFINITY);
}
