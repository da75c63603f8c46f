/**
 * What one backend's upstream connections say about it, all of them together: to health as evidence, and to the attempts on them, which may
 * ask elsewhere meanwhile. One upstream connection's silence may be that upstream connection's own; one that answers speaks for its backend (D6).
 */
import type { Clock } from "../../base/clock.ts";
import { type Failure, metOf } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Evidence } from "../../health/evidence.ts";
import type { Reads } from "../../health/read-latency.ts";
import type { PingTimes } from "../../health/rtt.ts";
import type { Connection } from "./connection.ts";

export type PoolHealthParts = {
  readonly clock: Clock;
  readonly connections: () => IteratorObject<Connection>;
  readonly learn: (evidence: Evidence) => void;
  /** Called once when an upstream connection in use falls silent while another is answered: its large packets may be lost. */
  readonly doubtLarge: () => void;
  readonly reads: Reads;
  /** When a PING's silence is suspicious, as far away as the backend is now. */
  readonly deadlines: () => PingTimes;
};

export class PoolHealth {
  readonly #parts: PoolHealthParts;
  /** The backend is suspected as a whole, for whatever reason. */
  #isSuspect = false;
  /** Its silence was told, and nothing else since. */
  #isSilent = false;
  /** When a PING was last answered so late that it had been lost once: a clock reading. */
  #lossAt = Number.NEGATIVE_INFINITY;
  /** It was removed: whether it is well is nobody's question any more. */
  #isDismissed = false;

  constructor(parts: PoolHealthParts) {
    this.#parts = parts;
  }

  /**
   * Does somebody speak for it? Octets show that an upstream connection's path is whole, but a frozen process's kernel has some to send as
   * well: while another upstream connection says nothing at all, one whose PING waits for half as long again says nothing either.
   */
  get hasAnswering(): boolean {
    const mostMs = limits.unansweredShare * this.#parts.deadlines().suspectAfterMs;
    return this.#parts
      .connections()
      .some((connection) => connection.isOpened && !connection.isSuspect && connection.pingMs < mostMs);
  }

  dismiss(): void {
    this.#isDismissed = true;
  }

  /** The backend as a whole was judged: its attempts hear when that makes it suspect, and when it is so no more. */
  judged(isSuspect: boolean): void {
    if (isSuspect === this.#isSuspect) return;
    this.#isSuspect = isSuspect;
    for (const connection of this.#parts.connections().toArray())
      if (!connection.isSuspect) connection.doubt(isSuspect);
  }

  opened(connection: Connection): void {
    this.#learn({ kind: "connection-opened", ms: this.#parts.clock.now() - connection.dialledAt });
  }

  /**
   * True while an upstream connection that was in use is silent and another upstream connection is answered, none of its PINGs late. A lost packet explains
   * it, a hole under one connection, or a path MTU: a probe whose answer takes a large packet tells which.
   */
  get mayLoseLarge(): boolean {
    if (this.#isLossy) return false;
    const isStuck = this.#parts
      .connections()
      .some((connection) => connection.isSuspect && connection.wasInUse);
    return isStuck && this.hasAnswering;
  }

  /** True if a PING that was sent after this clock reading was answered, and none was late for a while. */
  passesSmall(since: number): boolean {
    return (
      !this.#isLossy && this.#parts.connections().some((connection) => connection.isAnsweringSince(since))
    );
  }

  /** Small packets are lost as well: what is silent says nothing of large ones. */
  get #isLossy(): boolean {
    return this.#parts.clock.now() - this.#lossAt < limits.lossyMs;
  }

  /** Nothing came on this upstream connection for so long. */
  silent(connection: Connection, ms: number): void {
    const isNews = !connection.isSuspect;
    if (isNews) connection.wasInUse = connection.openCount > 0;
    connection.isSuspect = true;
    connection.suspectedAt = connection.now;
    if (this.hasAnswering) {
      if (isNews && connection.wasInUse) this.#parts.doubtLarge();
      return;
    }
    this.#isSilent = true;
    this.#learn({ kind: "connections-silent", ms, limitMs: this.#parts.deadlines().suspectAfterMs });
  }

  /** Something came on an upstream connection that was silent. */
  heard(connection: Connection): void {
    connection.isSuspect = false;
    if (!this.#isSuspect) connection.doubt(false);
    this.#speak();
  }

  /** A PING was answered: that is more than octets. */
  ponged(connection: Connection, isLate: boolean): void {
    if (isLate) this.#lossAt = this.#parts.clock.now();
    if (connection.isSuspect) this.heard(connection);
    else if (this.#isSilent) this.#speak();
  }

  /** Only now is it known which upstream connections are silent: none of those is to be asked instead. */
  tellAttempts(): void {
    const { connections, reads, clock, deadlines } = this.#parts;
    reads.fade(clock.now());
    const slowMs = reads.patienceMs(deadlines().suspectAfterMs);
    for (const connection of connections().toArray())
      if (this.#isSuspect || connection.isSuspect) connection.doubt(true);
      else if (connection.kind === "plain") connection.tellSlow(slowMs);
  }

  /** GOAWAY on one upstream connection is the answer to a 401 or a roll of its dice; on all of them the backend is going. */
  seeGoing(): void {
    const opened = this.#parts
      .connections()
      // One that we have sent away says nothing of its backend.
      .filter((connection) => connection.isOpened && (!connection.isRetiring || connection.isPeerGoing))
      .toArray();
    if (opened.length > 0 && opened.every((connection) => connection.isPeerGoing))
      this.#learn({ kind: "connections-going" });
  }

  /** An upstream connection is over, and no longer among the others. */
  closed(connection: Connection, failure: Failure | undefined): void {
    if (!connection.isOpened && failure?.origin === "backend") this.#dialFailed(connection, failure);
    const reason = failure?.message ?? "it ended";
    if (isLetGo(connection, failure)) return;
    if (this.#wasLast(connection)) this.#learn({ kind: "connections-lost", by: endOf(connection), reason });
    else if (connection.isSuspect) this.#speak();
  }

  #wasLast(connection: Connection): boolean {
    const others = this.#parts.connections().toArray();
    return connection.isOpened ? !others.some((other) => other.isOpened) : others.length === 0;
  }

  #dialFailed(connection: Connection, failure: Failure): void {
    const begunAt = connection.dialledAt;
    const ms = this.#parts.clock.now() - begunAt;
    this.#learn({ kind: "fresh", met: metOf(failure), begunAt, ms, reason: failure.message });
  }

  #speak(): void {
    if (!this.hasAnswering) return;
    this.#isSilent = false;
    this.#learn({ kind: "connections-answer" });
  }

  #learn(evidence: Evidence): void {
    if (!this.#isDismissed) this.#parts.learn(evidence);
  }
}

/** What we gave up ourselves, be it a dial or an idle upstream connection, says nothing of its backend, be it the last. */
function isLetGo(connection: Connection, failure: Failure | undefined): boolean {
  if (!connection.isOpened) return failure?.origin === "proxy";
  return failure === undefined && connection.isRetiring && !connection.isPeerGoing;
}

/** An upstream connection that was silent is given up for that; one whose peer ends it, with or without a word, had its socket ended. */
function endOf(connection: Connection): "ping" | "dial" | "socket" {
  if (!connection.isOpened) return "dial";
  return connection.isSuspect ? "ping" : "socket";
}
