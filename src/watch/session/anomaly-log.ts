/**
 * Journals faults that are found in single watches. Each kind of fault is journaled at most once a minute for each
 * backend and resource, however many watches have it.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import type { Journal } from "../../events/journal.ts";
import { type RequestContext, userAgentOf } from "../../upstream/context/request-context.ts";
import type { WatchEvent } from "../codec/event.ts";
import { watchLimits } from "../limits.ts";

/** The watch in which the fault was found. */
export type AnomalySource = {
  readonly context: Pick<RequestContext, "client" | "fields">;
  readonly resource: string;
  readonly backend: string;
};

export class AnomalyLog {
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #lastWrittenAt = new Lru<string, number>(limits.anomalies);

  /**
   * Called if two backends deliver different events to one watch. The backend `ours` has delivered the event of
   * `version`. The backend `theirs` has skipped this event, or has delivered another event before it.
   */
  onUnlike: (resource: string, ours: string, theirs: string, version: string) => void = () => {};

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
  }

  /** Journals a watch that has missed its bookmarks for `silentMs` although its connection answers. */
  hung({ context, resource, backend }: AnomalySource, silentMs: number): void {
    if (!this.#isDue(`hung ${backend} ${resource}`)) return;
    this.#journal.write({
      kind: "watch.hung",
      client: context.client.address,
      userAgent: userAgentOf(context.fields),
      resource,
      backend,
      silentMs: Math.round(silentMs),
      limitMs: watchLimits.hungMs,
    });
  }

  /** Journals an event older than `seen`, the version that the same stream had already delivered (incident 001). */
  outdated({ context, resource, backend }: AnomalySource, { type, version }: WatchEvent, seen: string): void {
    if (!this.#isDue(`outdated ${backend} ${resource}`)) return;
    this.#journal.write({
      kind: "event.version_regressed",
      client: context.client.address,
      userAgent: userAgentOf(context.fields),
      resource,
      backend,
      type,
      version,
      seen,
    });
  }

  /** Calls `onUnlike` only at the next tick, because that call may end the stream whose bytes are being read. */
  unlike({ resource, backend }: AnomalySource, theirs: string, version: string): void {
    this.#clock.soon(() => this.onUnlike(resource, backend, theirs, version));
  }

  #isDue(key: string): boolean {
    const now = this.#clock.now();
    const at = this.#lastWrittenAt.get(key);
    if (at !== undefined && now - at < limits.anomalyMs) return false;
    this.#lastWrittenAt.set(key, now);
    return true;
  }
}
