/**
 * Finds out up to which version the initial events of a watch can be, so that a newer ADDED proves that they are over
 * and the watch can continue at another backend (watch.md W3). The apiserver takes the state for the initial events
 * from its watch cache before it sends the response's head (k8s.io/apiserver, storage/cacher, Cacher.Watch). So a
 * consistent list that is sent after the head is at least as new as every initial event.
 */
import type { Clock } from "../../base/clock.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { Journal } from "../../events/journal.ts";
import type { PoolSet } from "../../proxy/upstream/pool-set.ts";
import { watchLimits } from "../cache/limits.ts";
import type { WatchContext } from "../session/watch-context.ts";
import type { WatchSession } from "../session/watch-session.ts";
import type { WatchStream } from "../session/watch-stream.ts";
import { listAs } from "./list-request.ts";

type InitialEventsParts = { readonly clock: Clock; readonly journal: Journal; readonly pools: PoolSet };

export class InitialEvents {
  readonly #parts: InitialEventsParts;
  readonly #budget: TokenBucket;

  constructor(parts: InitialEventsParts) {
    this.#parts = parts;
    const { initialListBurst, initialListsPerSecond } = watchLimits;
    this.#budget = new TokenBucket(parts.clock, initialListBurst, initialListsPerSecond);
  }

  /** Called when a backend has accepted the stream, and again if its API turns out to be a custom resource. */
  bound(watch: WatchSession, stream: WatchStream, asked: WatchContext): void {
    const isMissing = stream.reading.initialUpTo === "" && isNeeded(watch, asked);
    const context = isMissing ? watch.listed() : undefined;
    if (context === undefined || !this.#budget.take()) return;
    const { backend } = stream.attempt;
    const onAnswer = ({ version }: { readonly version: string }): void => {
      stream.reading.initialUpTo = version;
    };
    listAs(watch, { backend, context, onAnswer }, this.#parts);
  }
}

/** `isRepeating`: `events` are in no watch cache, so their initial events may be newer than the list. */
function isNeeded({ progress }: WatchSession, { request, origin, isRepeating }: WatchContext): boolean {
  const isOwn = !isRepeating && !(origin.isKnown && origin.isForeign);
  return progress.phase === "opening" && request.start === "state" && !request.awaitsMarker && isOwn;
}
