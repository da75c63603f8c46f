/**
 * Budgets for frames that a peer sends without making progress on an exchange: control frames, resets, empty frames.
 * Each kind has its own budget. An exhausted one ends the session with ENHANCE_YOUR_CALM, and the message names the
 * kind for the operator.
 *
 * Some clients send control frames with every request (such as PRIORITY of RFC 7540), so each request that a backend
 * has answered pays for a few frames of any kind except resets (D16). A request that the proxy answers or refuses
 * itself pays for nothing: it costs a client as little as the frames do.
 */

import type { Clock } from "../../base/clock.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import { h2Limits } from "../core/limits.ts";
import { errorCode, ProtocolError } from "../core/protocol-error.ts";

export type FloodKind = "control" | "priority" | "update" | "empty" | "connection" | "unknown" | "reset";

export class Floods {
  readonly #clock: Clock;
  /** Created on first use: most sessions never reset anything, and a budget takes a hundred bytes. */
  readonly #budgets: Partial<Record<FloodKind, TokenBucket>> = {};
  /** Frames that answered requests have paid for, beyond the budgets. */
  #earned = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Throws if the budget of this kind is exhausted; `bonus` is what the session's present activity earns (A15). */
  charge(kind: FloodKind, cost = 1, bonus = 0): void {
    if (!this.#budget(kind).take(cost, bonus) && !this.#isPaid(kind, cost))
      throw new ProtocolError(errorCode.ENHANCE_YOUR_CALM, "session", `Too many: ${kind}`);
  }

  /** A backend has answered one of the client's requests. The credit is bounded, so that it cannot be hoarded (A4). */
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
   * A DATA frame was sent, so the peer will update its windows. Go's client does so for every 4 KiB read, on the stream
   * and on the session: eight times for 16 KiB, for which Envoy allows 20. The saved credit covers ten streams of
   * client-go whose 4 MiB windows are read after the last DATA arrived.
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
