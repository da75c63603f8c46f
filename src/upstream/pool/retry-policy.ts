/**
 * When a request may be sent again after a failed attempt, and to which backend. `#retry` in request/exchange.ts sends
 * it again; dial-upgrade.ts and dial-through.ts in proxy/tunnel do so for Upgrades and passthrough connections.
 * request/hedge.ts sends an unanswered read to a second backend, before any attempt has failed.
 */
import type { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { errorCode, lost } from "../../h2/core/protocol-error.ts";
import { type PickParts, pick } from "./pick.ts";

/**
 * True if a request may be sent again after its stream ended with `code` (watch.md §10): the backend refused the stream
 * unprocessed, or the stream was lost and the request is safe. A write that a backend may have executed is never sent
 * again.
 */
export function maySendAgain(code: number, isSafe: boolean): boolean {
  return code === errorCode.REFUSED_STREAM || (code === lost && isSafe);
}

/** One empty list, shared by all requests that are never sent again. It saves an array for each of 50,000 watches. */
const none: readonly string[] = [];

/** Keeps the failed attempts of one request, Upgrade or passthrough connection, and chooses its next backend. */
export class Retries {
  /** Backends that are picked only if no other backend can be picked. */
  readonly #avoided: readonly string[];
  #tried = none;

  constructor(avoided: readonly string[] = none) {
    this.#avoided = avoided;
  }

  /** The backends of the failed attempts, earliest first. A backend that has failed twice is listed twice. */
  get tried(): readonly string[] {
    return this.#tried;
  }

  get isSpent(): boolean {
    return this.#tried.length >= limits.attempts;
  }

  /** Returns the backend for the next attempt, or a Failure if none can be asked now. */
  nextBackend(views: PickParts["views"], loads: PickParts["loads"], bound?: string): string | Failure {
    const tried = this.#avoided.length === 0 ? this.#tried : [...this.#tried, ...this.#avoided];
    return pick({ views, loads, bound, tried });
  }

  failed(backend: string): void {
    this.#tried = [...this.#tried, backend];
  }

  forget(count: number): void {
    this.#tried = this.#tried.length > count ? this.#tried.slice(count) : none;
  }
}
