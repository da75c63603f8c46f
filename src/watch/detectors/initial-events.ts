/**
 * Finds an upper limit for the versions of a watch's initial events. An ADDED with a newer version then proves that the
 * initial events are over, and that the watch can move to another backend (watch.md W3). An apiserver reads the state
 * for the initial events, from its watch cache or from etcd, before it sends the first of these events
 * (k8s.io/apiserver, storage/cacher and storage/etcd3). So if a consistent list is requested after the first event, the
 * list's version is at least as new as every initial event.
 */
import type { Clock } from "../../base/clock.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { Journal } from "../../events/journal.ts";
import type { PoolSet } from "../../upstream/pool/pool-set.ts";
import { watchLimits } from "../limits.ts";
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

  /**
   * Requests one list whose version is an upper limit for the versions of the initial events. If the token bucket is
   * empty, the proxy tries again when the next bytes of the stream arrive.
   */
  requestBound(watch: WatchSession, { attempt, reading }: WatchStream): void {
    if (reading.initialUpTo !== undefined || !isNeeded(watch.asked)) return;
    const context = watch.listed();
    if (context === undefined || !this.#budget.take()) return;
    reading.initialUpTo = "";
    const onAnswer = ({ version }: { readonly version: string }): void => {
      reading.initialUpTo = version;
    };
    listAs(watch, { backend: attempt.backend, context, onAnswer }, this.#parts);
  }
}

/**
 * False if the watch has no initial events, if a bookmark will end them, or for an aggregated API, whose versions
 * cannot be compared.
 */
function isNeeded({ start, awaitsMarker, origin }: WatchContext): boolean {
  const isForeign = origin.isKnown && origin.isForeign;
  return start === "state" && !awaitsMarker && !isForeign;
}
