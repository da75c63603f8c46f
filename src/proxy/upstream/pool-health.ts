/**
 * Turns the state of all upstream connections to one backend into evidence about the backend's health, and notifies the
 * attempts on these connections, whose owners may then hedge. If one connection is silent and another answers, only the
 * silent connection is faulty (D6).
 */
import type { Clock } from "../../base/clock.ts";
import { type Failure, metOf } from "../../base/failure.ts";
import type { Evidence } from "../../health/evidence.ts";
import type { ReadLatency } from "../../health/read-latency.ts";
import type { PingTimes } from "../../health/rtt.ts";
import type { Connection } from "./connection.ts";
import { upstreamLimits } from "./limits.ts";

export type PoolHealthParts = {
  readonly clock: Clock;
  readonly connections: () => IteratorObject<Connection>;
  readonly learn: (evidence: Evidence) => void;
  /**
   * Called when the proxy has closed the last connection on its own initiative, which is no evidence about the backend.
   */
  readonly unconnected?: (() => void) | undefined;
  /**
   * Called once when a connection with open streams falls silent while another one answers, because the silent
   * connection may be losing large packets.
   */
  readonly probeLargePackets: () => void;
  readonly reads: ReadLatency;
  /**
   * Returns after how many ms of silence a connection is suspect, and after how many it is dead. Both times depend on
   * the backend's present round-trip time.
   */
  readonly deadlines: () => PingTimes;
};

export class PoolHealth {
  readonly #parts: PoolHealthParts;
  #isBackendSuspect = false;
  #hasReportedSilence = false;
  /** Clock reading at which a PING was last answered so late that one of its packets must have been lost. */
  #lossAt = Number.NEGATIVE_INFINITY;
  /** True once the backend was removed. From then on, what its connections do is no evidence. */
  #isDismissed = false;

  constructor(parts: PoolHealthParts) {
    this.#parts = parts;
  }

  /**
   * True if some connection certainly works. Received bytes alone do not prove it, because the kernel of a frozen
   * process still sends what is in its buffers. So a PING that is unanswered for too long counts as silence even while
   * bytes arrive.
   */
  get hasAnswering(): boolean {
    const mostMs = upstreamLimits.unansweredShare * this.#parts.deadlines().suspectAfterMs;
    return this.#parts
      .connections()
      .some((connection) => connection.isOpened && !connection.isSuspect && connection.pingMs < mostMs);
  }

  dismiss(): void {
    this.#isDismissed = true;
  }

  /** Notifies the attempts when the backend becomes suspect, and when it no longer is. */
  judged(isSuspect: boolean): void {
    if (isSuspect === this.#isBackendSuspect) return;
    this.#isBackendSuspect = isSuspect;
    for (const connection of this.#parts.connections().toArray())
      if (!connection.isSuspect) connection.doubt(isSuspect);
  }

  opened(connection: Connection): void {
    this.#learn({ kind: "connection-opened", ms: this.#parts.clock.now() - connection.dialledAt });
  }

  /**
   * True if a connection that was in use is silent while another one answers without late PINGs. The cause may be a
   * lost packet, a fault of one connection, or the path MTU; a probe with a large response decides.
   */
  get mayLoseLargePackets(): boolean {
    if (this.#isLossy) return false;
    const isStuck = this.#parts
      .connections()
      .some((connection) => connection.isSuspect && connection.wasInUse);
    return isStuck && this.hasAnswering;
  }

  /**
   * True if small packets pass: a PING that was sent after the clock reading `since` was answered, and no recent PING
   * was late.
   */
  passesSmallPackets(since: number): boolean {
    return (
      !this.#isLossy && this.#parts.connections().some((connection) => connection.isAnsweringSince(since))
    );
  }

  /** True if small packets were lost recently. A silent connection is then no sign that only large packets are lost. */
  get #isLossy(): boolean {
    return this.#parts.clock.now() - this.#lossAt < upstreamLimits.lossyMs;
  }

  /** Makes a connection suspect, because it was silent for `ms`. If no connection answers, reports the silence. */
  silent(connection: Connection, ms: number): void {
    const isNews = connection.suspect();
    if (this.hasAnswering) {
      if (isNews && connection.wasInUse) this.#parts.probeLargePackets();
      return;
    }
    this.#hasReportedSilence = true;
    this.#learn({ kind: "connections-silent", ms, limitMs: this.#parts.deadlines().suspectAfterMs });
  }

  /** Clears the suspicion of a connection on which bytes have arrived again. */
  resumed(connection: Connection): void {
    connection.clear();
    if (!this.#isBackendSuspect) connection.doubt(false);
    this.#reportAnswering();
  }

  /** Records an answered PING. It proves that the backend's process runs, which received bytes alone do not prove. */
  ponged(connection: Connection, isLate: boolean): void {
    if (isLate) this.#lossAt = this.#parts.clock.now();
    if (connection.isSuspect) this.resumed(connection);
    else if (this.#hasReportedSilence) this.#reportAnswering();
  }

  /**
   * Notifies suspect and slow attempts. Called only when all silent connections are known, because hedges avoid silent
   * connections.
   */
  notifyAttempts(): void {
    const { connections, reads, clock, deadlines } = this.#parts;
    reads.fade(clock.now());
    const slowMs = reads.hedgeAfterMs(deadlines().suspectAfterMs);
    for (const connection of connections().toArray())
      if (this.#isBackendSuspect || connection.isSuspect) connection.doubt(true);
      else if (connection.kind === "plain") connection.notifySlow(slowMs);
  }

  /**
   * Reports that the backend drains if all its connections have got a GOAWAY. A GOAWAY on only some connections has
   * another cause, such as a 401 or the apiserver's option --goaway-chance.
   */
  seeGoing(): void {
    const opened = this.#parts
      .connections()
      // A connection that the proxy has retired is no evidence about the backend.
      .filter((connection) => connection.isOpened && (!connection.isRetiring || connection.isPeerGoing))
      .toArray();
    if (opened.length > 0 && opened.every((connection) => connection.isPeerGoing))
      this.#learn({ kind: "connections-going" });
  }

  /** Reports what the end of a connection shows. The connection must have been removed from `connections`. */
  closed(connection: Connection, failure: Failure | undefined): void {
    if (!connection.isOpened && failure?.origin === "backend") this.#dialFailed(connection, failure);
    const reason = failure?.message ?? "the connection was closed";
    if (isLetGo(connection, failure)) return this.#letGo(connection);
    if (this.#wasLast(connection)) this.#learn({ kind: "connections-lost", by: endOf(connection), reason });
    else if (connection.isSuspect) this.#reportAnswering();
  }

  #letGo(connection: Connection): void {
    if (connection.isOpened && this.#wasLast(connection)) this.#parts.unconnected?.();
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

  #reportAnswering(): void {
    if (!this.hasAnswering) return;
    this.#hasReportedSilence = false;
    this.#learn({ kind: "connections-answer" });
  }

  #learn(evidence: Evidence): void {
    if (!this.#isDismissed) this.#parts.learn(evidence);
  }
}

/** True if the proxy itself gave up the dial or closed the idle connection, which says nothing about the backend. */
function isLetGo(connection: Connection, failure: Failure | undefined): boolean {
  if (!connection.isOpened) return failure?.origin === "proxy";
  return failure === undefined && connection.isRetiring && !connection.isPeerGoing;
}

/** How a connection ended. dial: it never opened. ping: it was silent. socket: the backend closed it. */
function endOf(connection: Connection): "ping" | "dial" | "socket" {
  if (!connection.isOpened) return "dial";
  return connection.isSuspect ? "ping" : "socket";
}
