/**
 * Limits frames of a peer that cause work but do not advance a request: control frames, resets, empty frames. Each kind
 * has its own budget, a token bucket. An exhausted budget ends the session with ENHANCE_YOUR_CALM; the message names
 * the kind for the operator. Some clients send control frames with every request, for example PRIORITY (RFC 7540). So
 * for each request that a backend has answered, the peer may send a few more frames of any kind except resets (D16). A
 * request that the proxy itself answers does not count, because a client can send such requests as cheaply as the
 * frames.
 */

import type { Clock } from "../../base/clock.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import { h2Limits } from "../core/limits.ts";
import { errorCode, ProtocolError } from "../core/protocol-error.ts";

export type FloodKind = "control" | "priority" | "update" | "empty" | "connection" | "unknown" | "reset";

export class Floods {
  readonly #clock: Clock;
  /** Each budget is created at its first use, because it takes a hundred bytes, and most sessions need few budgets. */
  readonly #budgets: Partial<Record<FloodKind, TokenBucket>> = {};
  /** Number of frames beyond the budgets that the peer may still send, because backends answered its requests (D16). */
  #earned = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Takes `cost` from the budget of `kind` or, if that is exhausted, from the earned credit. Throws if both are
   * exhausted. `bonus` adds to the budget for this call only.
   */
  charge(kind: FloodKind, cost = 1, bonus = 0): void {
    if (!this.#budget(kind).take(cost, bonus) && !this.#isPaid(kind, cost))
      throw new ProtocolError(errorCode.ENHANCE_YOUR_CALM, "session", `Too many frames: ${kind}`);
  }

  /** Adds credit, up to `earnedFrames`, for a request that a backend has answered (A4). */
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
   * Called for each DATA frame that was sent. Raises the budget for WINDOW_UPDATE by 20, as Envoy does. Go's client
   * updates the windows of stream and session for every 4 KiB that it reads: eight updates for 16 KiB.
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
  reset: [h2Limits.resetBurst, h2Limits.resetsPerSecond],
};
