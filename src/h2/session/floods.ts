/**
 * What a peer may do without any exchange moving on: control frames, resets, empty frames. Each kind has its own
 * budget; spending one is ENHANCE_YOUR_CALM for the session, and the message names the kind for the operator.
 *
 * Some clients send control frames with every request (PRIORITY in RFC 7540's days), so a request that a backend has
 * answered pays for a few, of any kind but resets (D16). What is answered or refused here pays for nothing: it costs a
 * client as little as the frames do.
 */

import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import { h2Limits } from "../core/limits.ts";
import { errorCode, ProtocolError } from "../core/protocol-error.ts";

export type FloodKind = "control" | "priority" | "update" | "empty" | "connection" | "unknown" | "reset";

export class Floods {
  readonly #clock: Clock;
  /** Made on first use: most sessions never reset anything, and a budget costs a hundred bytes. */
  readonly #budgets: Partial<Record<FloodKind, TokenBucket>> = {};
  /** Frames that answered requests have paid for, beyond the budgets. */
  #earned = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Throws when the budget of this kind is spent; `bonus` is what the session's present activity earns (A15). */
  charge(kind: FloodKind, cost = 1, bonus = 0): void {
    if (!this.#budget(kind).take(cost, bonus) && !this.#isPaid(kind, cost))
      throw new ProtocolError(errorCode.ENHANCE_YOUR_CALM, "session", `Too many: ${kind}`);
  }

  /** A backend's answer to one of the client's requests has come. Bounded, so that it cannot be hoarded (A4). */
  answered(): void {
    if (this.#earned < h2Limits.earnedFrames)
      this.#earned = Math.min(h2Limits.earnedFrames, this.#earned + h2Limits.framesPerAnswer);
  }

  #isPaid(kind: FloodKind, cost: number): boolean {
    if (kind === "reset" || kind === "connection") return false;
    const frames = kind === "unknown" ? Math.ceil(cost / h2Limits.unknownFrameBytes) : cost;
    if (frames > this.#earned) return false;
    this.#earned -= frames;
    return true;
  }

  /**
   * A DATA frame went out, so the peer will update its windows. Go's client does so for every 4 KiB read, on the
   * stream and on the session: eight times for 16 KiB, which Envoy allows 20 for as well. What is saved up covers ten
   * streams of client-go whose 4 MiB windows are read empty after the last DATA came.
   */
  earnUpdates(): void {
    (this.#budgets.update ?? this.#budget("update")).earn(20, 20 * h2Limits.updateBurst);
  }

  #budget(kind: FloodKind): TokenBucket {
    const known = this.#budgets[kind];
    if (known !== undefined) return known;
    const [burst, perSecond] = rates[kind];
    const budget = new TokenBucket(this.#clock, burst, perSecond);
    this.#budgets[kind] = budget;
    return budget;
  }
}

const rates: Record<FloodKind, readonly [burst: number, perSecond: number]> = {
  control: [h2Limits.controlBurst, h2Limits.controlPerSecond],
  priority: [h2Limits.priorityBurst, h2Limits.priorityPerSecond],
  update: [h2Limits.updateBurst, h2Limits.updatesPerSecond],
  empty: [h2Limits.emptyDataBurst, h2Limits.emptyDataPerSecond],
  connection: [h2Limits.connectionFramesBurst, h2Limits.connectionFramesPerSecond],
  unknown: [h2Limits.unknownBurst, h2Limits.unknownPerSecond],
  reset: [limits.resetBurst, limits.resetsPerSecond],
};
