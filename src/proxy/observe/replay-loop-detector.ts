/**
 * Reports clients that request the same watch from the same version again and again (incident 001). Reports each client
 * at most once a minute. Such a client either got an old event and went back to the event's version, or it cannot
 * process the events that it gets.
 */
import { hash } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import type { Journal } from "../../events/journal.ts";
import { identityOf } from "../../kube/resume-request.ts";
import { clientKey, type RequestContext, userAgentOf } from "../../upstream/context/request-context.ts";
import type { WatchContext } from "../../watch/session/watch-context.ts";

/** Counts how often one client requests one watch from one version. */
export class ReplayLoop {
  #since = 0;
  #count = 0;
  /** Number of counted requests in the period of `replayMs` that ended at `#since`. */
  #countBefore = 0;
  #isTold = false;
  /** Number of ended watches that the client has not replaced by a new request yet. */
  #over = 0;

  /**
   * Records a request that a backend has answered. If the client repeats the watch too often, returns the number of
   * requests in the present period of `replayMs` or in the one before, whichever is larger. Otherwise, or if this
   * period's number was returned already, returns undefined.
   */
  asked(now: number): number | undefined {
    if (now - this.#since >= limits.replayMs) {
      this.#countBefore = now - this.#since < 2 * limits.replayMs ? this.#count : 0;
      this.#since = now;
      this.#count = 0;
      this.#isTold = false;
    }
    // A request counts only if it replaces a watch that has ended, because several informers of one client may open the
    // same watch.
    if (this.#over === 0) return undefined;
    this.#over -= 1;
    this.#count += 1;
    if (this.#count < limits.replays || this.#isTold) return undefined;
    this.#isTold = true;
    return Math.max(this.#count, this.#countBefore);
  }

  ended(): void {
    this.#over += 1;
  }
}

export class ReplayLoopDetector {
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #replays = new Lru<string, ReplayLoop>(limits.replayKeys);

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
  }

  /**
   * Records that a backend has answered the watch. The caller must call `ended` of the returned object when the watch
   * ends. Returns undefined if the watch does not start at an exact resource version.
   */
  answered(
    { start, version, target, resource }: WatchContext,
    { client, fields }: Pick<RequestContext, "client" | "fields">,
  ): ReplayLoop | undefined {
    if (start !== "exact") return undefined;
    // Keys are hashed, so that each has the same size, whatever clients send.
    const key = hash("sha256", `${clientKey(client, fields)} ${identityOf(target)}`, "base64url");
    const replayLoop = this.#replays.get(key) ?? new ReplayLoop();
    this.#replays.set(key, replayLoop);
    const times = replayLoop.asked(this.#clock.now());
    if (times === undefined) return replayLoop;
    const userAgent = userAgentOf(fields);
    this.#journal.write({
      kind: "watch.replay_loop",
      client: client.address,
      userAgent,
      resource,
      version,
      times,
    });
    return replayLoop;
  }
}
