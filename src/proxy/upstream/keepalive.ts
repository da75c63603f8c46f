/**
 * Finds silent connections of one backend. A PING goes out on each at every tick. One timer serves all connections, set
 * to the next deadline rather than to the next tick. If there are many, they take turns, until one of them is slow to
 * answer: then all are pinged at once. Time in which the proxy's own event loop stood still is not charged to the
 * backend, and nothing is concluded before the tick's input has been read (F11).
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import type { BackendFacts } from "../../health/backend.ts";
import { type PingTimes, Rtt } from "../../health/rtt.ts";
import type { Connection } from "./connection.ts";
import { upstreamLimits } from "./limits.ts";

/** What the keepalive needs of a connection; the number decides its turn. */
export type KeptAlive = Pick<Connection, "number" | "tick" | "ask" | "silentSince" | "discountStall">;

/** `deadAfterWhenAllSilentMs`: how long silence is tolerated while no backend at all answers (D14). */
export type KeepaliveTimes = PingTimes & {
  readonly intervalMs: number;
  readonly deadAfterWhenAllSilentMs: number;
};

export type KeepaliveParts<Kept extends KeptAlive> = {
  readonly clock: Clock;
  readonly times: KeepaliveTimes;
  readonly connections: () => Iterable<Kept>;
  /** `silent` is called for each silent connection at every look, then `notifyAttempts`; at least at every tick. */
  readonly health: {
    silent(connection: Kept, silentMs: number): void;
    notifyAttempts(): void;
    readonly hasAnswering: boolean;
  };
  /** Nothing has arrived for so long that the connection is given up. */
  readonly dead: (connection: Kept, silentMs: number) => void;
  /** What health knows of the backend. */
  readonly facts: () => Pick<BackendFacts, "fresh" | "answersAgainAt">;
  /** When the latest PING or probe was sent that another backend has answered: a clock reading. */
  readonly othersAnsweredAt: () => number;
  /** When a backend last answered after all were silent: a clock reading. */
  readonly silenceOverAt: () => number;
  /** True once the backend is no longer configured: no probe checks whether it answers. */
  readonly isRemoved: () => boolean;
  /** Called after every tick. */
  readonly ticked: () => void;
};

export class Keepalive<Kept extends KeptAlive> {
  readonly #parts: KeepaliveParts<Kept>;
  readonly rtt = new Rtt();
  #deadlines: PingTimes;
  #tickAt = 0;
  #beats = 0;
  /** The number of ticks in which each connection has one turn. */
  #turns = 1;
  #dueAt = 0;
  #waitsSince = 0;
  #stop: (() => void) | undefined;

  constructor(parts: KeepaliveParts<Kept>) {
    this.#parts = parts;
    this.#deadlines = parts.times;
  }

  /** When silence becomes suspicious and certain, in ms, by the backend's present round-trip time. */
  get deadlines(): PingTimes {
    return this.#deadlines;
  }

  start(): void {
    const { clock, times } = this.#parts;
    this.#tickAt = clock.now() + times.intervalMs;
    this.#wait(this.#tickAt);
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  #wait(at: number): void {
    const { clock } = this.#parts;
    this.#dueAt = at;
    this.#waitsSince = clock.now();
    this.#stop = clock.after(Math.max(0, at - clock.now()), () => this.#due());
  }

  #due(): void {
    const { clock, connections, times } = this.#parts;
    const now = clock.now();
    const lateMs = now - this.#dueAt;
    const isLate = lateMs > limits.stallMs;
    // It is unknown when within this wait the loop stood still, so none of the wait counts.
    if (isLate) for (const connection of connections()) connection.discountStall(now - this.#waitsSince);
    const isTick = now >= this.#tickAt;
    if (isTick) {
      this.#tickAt = Math.max(this.#tickAt + times.intervalMs, now + times.intervalMs / 2);
      this.rtt.fade(now);
      this.#deadlines = this.rtt.deadlines(times);
    }
    // Scheduled before anything else: a fault in one tick must not stop the keepalive.
    this.#wait(this.#tickAt);
    // Input that arrived during the stall is read before connections are judged.
    clock.soon(() => this.#look());
    if (!isTick) return;
    this.#beat(Array.from(connections()), isLate);
    this.#parts.ticked();
  }

  #beat(connections: readonly Kept[], isLate: boolean): void {
    this.#beats += 1;
    this.#turns = connections.length > upstreamLimits.pingsPerBeat ? upstreamLimits.pingTurns : 1;
    // A distant backend's handshake takes three round trips.
    const dialMs = Math.max(limits.dialMs, this.#deadlines.deadAfterMs);
    for (const connection of connections) {
      const isTurn = (connection.number + this.#beats) % this.#turns === 0;
      connection.tick({ isTurn, isLate, dialMs });
    }
  }

  #look(): void {
    if (this.#stop === undefined) return;
    const { health, dead, facts } = this.#parts;
    const silent = this.#silent();
    const { suspectAfterMs } = this.#deadlines;
    const suspectAt = this.#judge(
      silent,
      () => suspectAfterMs,
      (connection, ms) => health.silent(connection, ms),
    );
    health.notifyAttempts();
    // Known only after all connections were checked. If the backend answers elsewhere, a silent connection may only be
    // waiting for a retransmission by its kernel.
    const isAnswering = facts().fresh === "answer" || health.hasAnswering;
    const deadAfterMs = isAnswering ? this.#answeringLimitMs : this.#silentLimitMs;
    const deadAt = this.#judge(silent, deadAfterMs, dead);
    this.#lookAgainAt(Math.min(this.#tickAt, suspectAt, deadAt, this.#pingAll(silent)));
  }

  /** The connections with a pending PING: few of many. */
  #silent(): Kept[] {
    const silent: Kept[] = [];
    for (const connection of this.#parts.connections())
      if (connection.silentSince !== undefined) silent.push(connection);
    return silent;
  }

  /** A slow connection may be the first of several: the others are pinged without waiting for their turns. */
  #pingAll(silent: readonly Kept[]): number {
    if (this.#turns === 1) return Number.POSITIVE_INFINITY;
    let slow = 0;
    const afterMs = upstreamLimits.rollCallShare * this.#deadlines.suspectAfterMs;
    const nextAt = this.#judge(
      silent,
      () => afterMs,
      () => {
        slow += 1;
      },
    );
    if (slow > 0) for (const connection of this.#parts.connections()) connection.ask();
    return nextAt;
  }

  /** Calls `notify` for each connection that was silent for that long; returns when the next one will be. */
  #judge(
    silent: readonly Kept[],
    afterMs: (silentSince: number) => number,
    notify: (connection: Kept, silentMs: number) => void,
  ): number {
    const now = this.#parts.clock.now();
    let nextAt = Number.POSITIVE_INFINITY;
    for (const connection of silent) {
      // Notifying one may end others.
      const { silentSince } = connection;
      if (silentSince === undefined) continue;
      // Compares the sum, to which the timer is set: the difference may be smaller by a rounding error, and loop for
      // ever.
      const dueAt = silentSince + afterMs(silentSince);
      if (now >= dueAt) notify(connection, now - silentSince);
      else nextAt = Math.min(nextAt, dueAt);
    }
    return nextAt;
  }

  /**
   * The limit for a connection whose backend answers elsewhere. The kernel doubles its pause before each retransmission,
   * so after an outage the next one comes, at the latest, as long after its end as it lasted.
   */
  readonly #answeringLimitMs = (silentSince: number): number => {
    const { facts, silenceOverAt } = this.#parts;
    const holeMs = Math.max(facts().answersAgainAt, silenceOverAt()) - silentSince;
    const mostMs = 2 * holeMs + upstreamLimits.connectionPatienceMs;
    return Math.max(
      this.#deadlines.deadAfterMs,
      upstreamLimits.connectionPatienceMs,
      holeMs > 0 ? mostMs : 0,
    );
  };

  /**
   * The limit for a connection whose backend is silent. If no other backend answers either, the fault is most likely the
   * proxy's own network (D14). After such an outage one backend answers first: the silence of the others counts from then
   * on.
   */
  readonly #silentLimitMs = (silentSince: number): number => {
    const { deadAfterMs } = this.#deadlines;
    const isAlone = this.#parts.othersAnsweredAt() > silentSince + upstreamLimits.togetherMs;
    if (!isAlone) return Math.max(deadAfterMs, this.#parts.times.deadAfterWhenAllSilentMs);
    const holeMs = this.#parts.silenceOverAt() - silentSince;
    // Without probes the first sign of life may be the kernel's next retransmission on this connection.
    if (holeMs > 0 && this.#parts.isRemoved()) return this.#answeringLimitMs(silentSince);
    return deadAfterMs + Math.max(0, holeMs);
  };

  #lookAgainAt(at: number): void {
    if (this.#stop === undefined || at >= this.#dueAt) return;
    this.#stop();
    this.#wait(at);
  }
}
