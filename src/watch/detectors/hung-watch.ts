/**
 * Periodically finds watches that their backend should have ended, and watches that get no bookmarks although their
 * connection answers PINGs (D7, watch.md §6.3).
 */
import type { Clock } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import { inSlices } from "../../base/slices.ts";
import type { ActiveRequests } from "../../proxy/request/active-requests.ts";
import type { Exchange } from "../../proxy/request/exchange.ts";
import { watchLimits } from "../limits.ts";

/** Checks one watch. Catches an exception, so that the next watches are checked, too. */
function look({ watch, isEnded }: Exchange): void {
  if (watch === undefined || isEnded) return;
  try {
    watch.look();
  } catch (error) {
    watch.attemptFaulted(error);
  }
}

export class HungWatchDetector extends Interval {
  #endWalk = (): void => {};

  constructor(clock: Clock, exchanges: ActiveRequests) {
    super(clock, watchLimits.hungLookMs, () => {
      this.#endWalk();
      this.#endWalk = inSlices(clock, exchanges.live, look);
    });
  }

  override stop(): void {
    super.stop();
    this.#endWalk();
  }
}
