/**
 * What one backend's lanes say about it, all of them together: to health as evidence, and to the legs on them, which may
 * ask elsewhere meanwhile. One lane's silence may be that lane's own; one that answers speaks for its backend (D6).
 */
import type { Clock } from "../../base/clock.ts";
import { type Failure, metOf } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Evidence } from "../../health/evidence.ts";
import type { Reads } from "../../health/reads.ts";
import type { PingTimes } from "../../health/rtt.ts";
import type { Lane } from "./lane.ts";

export type WitnessParts = {
  readonly clock: Clock;
  readonly lanes: () => IteratorObject<Lane>;
  readonly learn: (evidence: Evidence) => void;
  /** Called once when a lane in use falls silent while another is answered: its large packets may be lost. */
  readonly doubtLarge: () => void;
  readonly reads: Reads;
  /** When a PING's silence is suspicious, as far away as the backend is now. */
  readonly deadlines: () => PingTimes;
};

export class Witness {
  readonly #parts: WitnessParts;
  /** The backend is suspected as a whole, for whatever reason. */
  #isSuspect = false;
  /** Its silence was told, and nothing else since. */
  #isSilent = false;
  /** It was removed: whether it is well is nobody's question any more. */
  #isDismissed = false;

  constructor(parts: WitnessParts) {
    this.#parts = parts;
  }

  /**
   * Does somebody speak for it? Octets show that a lane's path is whole, but a frozen process's kernel has some to send as
   * well: while another lane says nothing at all, one whose PING waits for half as long again says nothing either.
   */
  get hasAnswering(): boolean {
    const mostMs = limits.unansweredShare * this.#parts.deadlines().suspectAfterMs;
    return this.#parts.lanes().some((lane) => lane.isOpened && !lane.isSuspect && lane.pingMs < mostMs);
  }

  dismiss(): void {
    this.#isDismissed = true;
  }

  /** The backend as a whole was judged: its legs hear when that makes it suspect, and when it is so no more. */
  judged(isSuspect: boolean): void {
    if (isSuspect === this.#isSuspect) return;
    this.#isSuspect = isSuspect;
    for (const lane of this.#parts.lanes().toArray()) if (!lane.isSuspect) lane.doubt(isSuspect);
  }

  opened(lane: Lane): void {
    this.#learn({ kind: "lane-opened", ms: this.#parts.clock.now() - lane.dialledAt });
  }

  /**
   * True while a lane that was in use is silent and another lane is answered. A lost packet explains it, a hole under one
   * connection, or a path MTU: a probe whose answer takes a large packet tells which.
   */
  get mayLoseLarge(): boolean {
    const isStuck = this.#parts.lanes().some((lane) => lane.isSuspect && lane.wasInUse);
    return isStuck && this.hasAnswering;
  }

  /** Nothing came on this lane for so long. */
  silent(lane: Lane, ms: number): void {
    const isNews = !lane.isSuspect;
    if (isNews) lane.wasInUse = lane.openCount > 0;
    lane.isSuspect = true;
    lane.suspectedAt = lane.now;
    if (this.hasAnswering) {
      if (isNews && lane.wasInUse) this.#parts.doubtLarge();
      return;
    }
    this.#isSilent = true;
    this.#learn({ kind: "lanes-silent", ms, limitMs: this.#parts.deadlines().suspectAfterMs });
  }

  /** Something came on a lane that was silent. */
  heard(lane: Lane): void {
    lane.isSuspect = false;
    if (!this.#isSuspect) lane.doubt(false);
    this.#speak();
  }

  /** A PING was answered: that is more than octets. */
  ponged(lane: Lane): void {
    if (lane.isSuspect) this.heard(lane);
    else if (this.#isSilent) this.#speak();
  }

  /** Only now is it known which lanes are silent: none of those is to be asked instead. */
  tellLegs(): void {
    const { lanes, reads, clock, deadlines } = this.#parts;
    reads.fade(clock.now());
    const slowMs = reads.patienceMs(deadlines().suspectAfterMs);
    for (const lane of lanes().toArray())
      if (this.#isSuspect || lane.isSuspect) lane.doubt(true);
      else if (lane.kind === "plain") lane.tellSlow(slowMs);
  }

  /** GOAWAY on one lane is the answer to a 401 or a roll of its dice; on all of them the backend is going. */
  seeGoing(): void {
    const opened = this.#parts
      .lanes()
      // One that we have sent away says nothing of its backend.
      .filter((lane) => lane.isOpened && (!lane.isRetiring || lane.isPeerGoing))
      .toArray();
    if (opened.length > 0 && opened.every((lane) => lane.isPeerGoing)) this.#learn({ kind: "lanes-going" });
  }

  /** A lane is over, and no longer among the others. */
  closed(lane: Lane, failure: Failure | undefined): void {
    if (!lane.isOpened && failure?.origin === "backend") this.#dialFailed(lane, failure);
    const reason = failure?.message ?? "it ended";
    if (isLetGo(lane, failure)) return;
    if (this.#wasLast(lane)) this.#learn({ kind: "lanes-lost", by: endOf(lane), reason });
    else if (lane.isSuspect) this.#speak();
  }

  #wasLast(lane: Lane): boolean {
    const others = this.#parts.lanes().toArray();
    return lane.isOpened ? !others.some((other) => other.isOpened) : others.length === 0;
  }

  #dialFailed(lane: Lane, failure: Failure): void {
    const begunAt = lane.dialledAt;
    const ms = this.#parts.clock.now() - begunAt;
    this.#learn({ kind: "fresh", met: metOf(failure), begunAt, ms, reason: failure.message });
  }

  #speak(): void {
    if (!this.hasAnswering) return;
    this.#isSilent = false;
    this.#learn({ kind: "lanes-answer" });
  }

  #learn(evidence: Evidence): void {
    if (!this.#isDismissed) this.#parts.learn(evidence);
  }
}

/** What we gave up ourselves, be it a dial or an idle lane, says nothing of its backend, be it the last. */
function isLetGo(lane: Lane, failure: Failure | undefined): boolean {
  if (!lane.isOpened) return failure?.origin === "proxy";
  return failure === undefined && lane.isRetiring && !lane.isPeerGoing;
}

/** A lane that was silent is given up for that; one whose peer ends it, with or without a word, had its socket ended. */
function endOf(lane: Lane): "ping" | "dial" | "socket" {
  if (!lane.isOpened) return "dial";
  return lane.isSuspect ? "ping" : "socket";
}
