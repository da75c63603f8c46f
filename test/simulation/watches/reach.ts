/** Who could have served, and since when: what befell each backend, as the weather tells it. */
import type { SimulatedApiserver } from "./apiserver.ts";

export class Reach {
  readonly #apiservers: readonly SimulatedApiserver[];
  readonly #now: () => number;
  /** When something befell a backend last, or was over; and each of them. */
  befellAt = Number.NEGATIVE_INFINITY;
  readonly #befellEachAt = new Map<SimulatedApiserver, number>();
  /** Since when those that serve nobody have not; and until when those that serve again did not. */
  readonly #hiddenSince = new Map<SimulatedApiserver, number>();
  readonly #wasHiddenSince = new Map<SimulatedApiserver, number>();
  readonly #hiddenUntil = new Map<SimulatedApiserver, number>();
  #isNobody = false;
  #nobodyUntil = Number.NEGATIVE_INFINITY;

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
    if (this.#isNobody) this.#nobodyUntil = this.befellAt;
    this.#isNobody = !this.#apiservers.some(isServing);
  }

  #isBack(backend: SimulatedApiserver): void {
    const since = this.#hiddenSince.get(backend);
    if (since === undefined) return;
    this.#hiddenSince.delete(backend);
    this.#wasHiddenSince.set(backend, since);
    this.#hiddenUntil.set(backend, this.befellAt);
  }

  /** When nobody at all could serve last; now, while that is so. */
  get nobodyAt(): number {
    return this.#isNobody ? this.#now() : this.#nobodyUntil;
  }

  /** Does anybody serve whoever goes on from this version, and has been well, and level with etcd, since then? */
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

  /** Was it out of reach, and came back after that? */
  isBackSince(one: SimulatedApiserver, since: number): boolean {
    return (this.#hiddenUntil.get(one) ?? Number.NEGATIVE_INFINITY) > since;
  }

  /** Has whoever knows the version been out of reach since then? One that came back after `foundBy` was not found yet. */
  isHiddenSince(resource: string, version: number, since: number, foundBy: number): boolean {
    const from = (one: SimulatedApiserver): number | undefined =>
      this.#hiddenSince.get(one) ??
      (this.isBackSince(one, foundBy) ? this.#wasHiddenSince.get(one) : undefined);
    return this.#apiservers
      .filter((one) => one.knows(resource, version))
      .every((one) => (from(one) ?? Number.POSITIVE_INFINITY) <= since);
  }
}

/** Whoever is well serves any version that is still to come. */
function isServing(one: SimulatedApiserver): boolean {
  return one.serves("", Number.POSITIVE_INFINITY);
}
