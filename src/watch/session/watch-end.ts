/**
 * How a watch ends for its client: between two events, once, and never so soon that client-go takes it for a failure and
 * lists everything again (D5, watch.md §5.1's last row).
 */
import { endOf } from "./ending.ts";
import type { Progress } from "./progress.ts";
import type { ResumeRetry } from "./resume-retry.ts";
import type { UpstreamMerge } from "./upstream-merge.ts";
import type { WatchHost } from "./watch-host.ts";

export type WatchEndParts = {
  readonly host: WatchHost;
  readonly progress: Progress;
  readonly merge: UpstreamMerge;
  readonly retry: ResumeRetry;
};

export class WatchEnd {
  readonly #parts: WatchEndParts;

  constructor(parts: WatchEndParts) {
    this.#parts = parts;
  }

  /** Its server's own end, or its client's deadline. */
  due(): void {
    this.#close();
    this.#whenOld(() => this.#parts.host.endsHere(true));
  }

  /** An end of ours; `told` when it comes. */
  early(told: () => void): void {
    const { host, merge, retry } = this.#parts;
    // It is about to end already, for the reason that came first.
    if (retry.isClosed) return;
    this.#close();
    const { refusal } = retry;
    if (refusal !== undefined && merge.first === undefined) {
      // It is the answer to what the client asked: no end of ours.
      merge.release(refusal);
      return host.endsHere(true);
    }
    this.#whenOld(() => {
      told();
      host.endsHere(false);
    });
  }

  #close(): void {
    this.#parts.retry.close();
    this.#parts.merge.dropOther();
  }

  #whenOld(end: () => void): void {
    const { progress, merge, retry } = this.#parts;
    const { phase, liveEvents } = progress;
    const inMs = endOf({ phase, liveEvents, liveMs: merge.times.liveMs });
    if (inMs > 0) retry.after(inMs, end);
    else end();
  }
}
