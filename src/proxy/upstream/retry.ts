/** Retries: which backend is asked next, and how often. Attempts (requests), Upgrades and passthrough connections use it. */
import type { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { type PickParts, pick } from "./pick.ts";

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
