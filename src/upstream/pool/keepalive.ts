/**
 * Finds silent connections to one backend by PINGs. One timer, set to the next deadline, serves all connections. If
 * there are many connections, only some send a PING at each tick; once the answer to a PING is late, all connections
 * send a PING at once. Time in which the proxy's event loop was stalled does not count as silence, and connections are
 * judged only after the tick's input has been read (F11).
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import type { BackendFacts } from "../../health/backend.ts";
import { type PingTimes, Rtt } from "../../health/rtt.ts";
import type { Connection } from "./connection.ts";
import { upstreamLimits } from "./limits.ts";

/** `number` decides in which tick the connection gets its PING. */
export type KeptAlive = Pick<
  Connection,
  "number" | "tick" | "ask" | "silentSince" | "discountStall" | "leaveBehind"
>;

/** `deadAfterWhenAllSilentMs`: ms of silence after which connections close while no backend at all answers (D14). */
export type KeepaliveTimes = PingTimes & {
  readonly intervalMs: number;
  readonly deadAfterWhenAllSilentMs: number;
};

export type KeepaliveParts<Kept extends KeptAlive> = {
  readonly clock: Clock;
  readonly times: KeepaliveTimes;
  readonly connections: () => Iterable<Kept>;
  /** At each check, `silent` is called for every silent connection, and then `notifyAttempts` once. */
  readonly health: {
    silent(connection: Kept, silentMs: number): void;
    notifyAttempts(): void;
    readonly hasAnswering: boolean;
  };
  /** Called when a connection has been silent for so long that it must be closed. */
  readonly dead: (connection: Kept, silentMs: number) => void;
  /** Returns what the health checks have recorded about the backend. */
  readonly facts: () => Pick<BackendFacts, "fresh" | "answersAgainAt" | "packetsLostAt">;
  /** Returns the clock reading at which the proxy sent the latest answered PING or probe to any other backend. */
  readonly othersAnsweredAt: () => number;
  /** Returns the clock reading at the end of the latest period without an answer from any backend. */
  readonly silenceOverAt: () => number;
  /** True if the backend is no longer configured, so that no probe checks it. */
  readonly isRemoved: () => boolean;
  readonly ticked: () => void;
};

export class Keepalive<Kept extends KeptAlive> {
  readonly #parts: KeepaliveParts<Kept>;
  readonly rtt = new Rtt();
  #times: KeepaliveTimes;
  #deadlines: PingTimes;
  #tickAt = 0;
  #beats = 0;
  /** Each connection sends a PING once in this many ticks. */
  #turns = 1;
  #dueAt = 0;
  #waitsSince = 0;
  #stop: (() => void) | undefined;

  constructor(parts: KeepaliveParts<Kept>) {
    this.#parts = parts;
    this.#times = parts.times;
    this.#deadlines = parts.times;
  }

  /**
   * After how many ms of silence a connection is suspect, and after how many it is dead. Both times depend on the
   * backend's present round-trip time.
   */
  get deadlines(): PingTimes {
    return this.#deadlines;
  }

  start(): void {
    this.#tickAt = this.#parts.clock.now() + this.#times.intervalMs;
    this.#wait(this.#tickAt);
  }

  /** Applies new times at once, also to connections that are silent now. */
  configure(times: KeepaliveTimes): void {
    const now = this.#parts.clock.now();
    this.#times = times;
    this.#deadlines = this.rtt.deadlines(times);
    this.#tickAt = Math.min(this.#tickAt, now + times.intervalMs);
    this.#lookAgainAt(now);
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
    const { clock, connections } = this.#parts;
    const times = this.#times;
    const now = clock.now();
    const lateMs = now - this.#dueAt;
    const isLate = lateMs > limits.stallMs;
    // The timer fired late because the event loop was stalled. It is unknown when the stall began, so none of the time
    // since the timer was set counts as silence.
    if (isLate) for (const connection of connections()) connection.discountStall(now - this.#waitsSince);
    const isTick = now >= this.#tickAt;
    if (isTick) {
      this.#tickAt = Math.max(this.#tickAt + times.intervalMs, now + times.intervalMs / 2);
      this.rtt.fade(now);
      this.#deadlines = this.rtt.deadlines(times);
    }
    // Schedules the next tick first, so that an exception in this tick does not end the keepalive.
    this.#wait(this.#tickAt);
    // Judges the connections later, after the input that came during a stall has been read.
    clock.soon(() => this.#look());
    if (!isTick) return;
    this.#beat(Array.from(connections()), isLate);
    this.#parts.ticked();
  }

  #beat(connections: readonly Kept[], isLate: boolean): void {
    this.#beats += 1;
    this.#turns = connections.length > upstreamLimits.pingsPerBeat ? upstreamLimits.pingTurns : 1;
    // The deadline of a dial is at least as long as the silence after which a connection is dead, because the handshake
    // with a distant backend takes three long round trips.
    const dialMs = Math.max(limits.dialMs, this.#deadlines.deadAfterMs);
    for (const connection of connections) {
      const isTurn = (connection.number + this.#beats) % this.#turns === 0;
      connection.tick({ isTurn, isLate, dialMs });
    }
  }

  #look(): void {
    if (this.#stop === undefined) return;
    const { health, dead } = this.#parts;
    const silent = this.#silent();
    const { suspectAfterMs } = this.#deadlines;
    const suspectAt = this.#judge(
      silent,
      () => suspectAfterMs,
      (connection, ms) => health.silent(connection, ms),
    );
    health.notifyAttempts();
    // Must be the last step: the steps before it find out whether the backend answers on any connection. If the backend
    // does answer, a silent connection may only be waiting for the next TCP retransmission.
    const isAnswering = this.#isAnswering;
    const deadAfterMs = isAnswering ? this.#answeringLimitMs : this.#silentLimitMs;
    const deadAt = this.#judge(silent, deadAfterMs, (connection, ms) => {
      // TCP may still carry over what can go on nowhere else.
      const isKept = isAnswering && ms < upstreamLimits.boundPatienceMs && connection.leaveBehind();
      if (!isKept) dead(connection, ms);
    });
    this.#lookAgainAt(Math.min(this.#tickAt, suspectAt, deadAt, this.#pingAll(silent)));
  }

  /** True if the backend answers on another socket. Small packets pass as well while only large ones are lost. */
  get #isAnswering(): boolean {
    const { health, facts, clock } = this.#parts;
    const { fresh, packetsLostAt } = facts();
    const passesSmall = packetsLostAt >= 0 && clock.now() - packetsLostAt < upstreamLimits.lossyMs;
    return fresh === "answer" || passesSmall || health.hasAnswering;
  }

  #silent(): Kept[] {
    const silent: Kept[] = [];
    for (const connection of this.#parts.connections())
      if (connection.silentSince !== undefined) silent.push(connection);
    return silent;
  }

  /**
   * If the answer to one PING is overdue, sends a PING on all connections, because other connections may be silent,
   * too. Returns the clock reading of the next check.
   */
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

  /**
   * Calls `notify` for each connection that has been silent for `afterMs`. Returns the clock reading at which the next
   * connection will have been silent for `afterMs`.
   */
  #judge(
    silent: readonly Kept[],
    afterMs: (silentSince: number) => number,
    notify: (connection: Kept, silentMs: number) => void,
  ): number {
    const now = this.#parts.clock.now();
    let nextAt = Number.POSITIVE_INFINITY;
    for (const connection of silent) {
      // An earlier call of `notify` may have closed this connection.
      const { silentSince } = connection;
      if (silentSince === undefined) continue;
      // Compares with the same sum to which the timer is set. A comparison of differences could have a rounding error,
      // and the check would then repeat for ever.
      const dueAt = silentSince + afterMs(silentSince);
      if (now >= dueAt) notify(connection, now - silentSince);
      else nextAt = Math.min(nextAt, dueAt);
    }
    return nextAt;
  }

  /**
   * Returns how many ms a connection may be silent while its backend answers on other connections. After an outage, the
   * next TCP retransmission may take as long again as the outage, because the kernel doubles the pause between
   * retransmissions.
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
   * Returns how many ms a connection may be silent before it is closed, if its backend answers on no other connection.
   * If no other backend answers either, the proxy's own network is most likely at fault (D14). When such an outage
   * ends, one backend answers first. The silence of the others is then measured only from this answer on.
   */
  readonly #silentLimitMs = (silentSince: number): number => {
    const { deadAfterMs } = this.#deadlines;
    const isAlone = this.#parts.othersAnsweredAt() > silentSince + upstreamLimits.togetherMs;
    if (!isAlone) return Math.max(deadAfterMs, this.#times.deadAfterWhenAllSilentMs);
    const holeMs = this.#parts.silenceOverAt() - silentSince;
    // A removed backend is not probed, so its first sign of life may be a TCP retransmission on this connection. The
    // connection is therefore kept longer: as long as if the backend answered on other connections.
    if (holeMs > 0 && this.#parts.isRemoved()) return this.#answeringLimitMs(silentSince);
    return deadAfterMs + Math.max(0, holeMs);
  };

  #lookAgainAt(at: number): void {
    if (this.#stop === undefined || at >= this.#dueAt) return;
    this.#stop();
    this.#wait(at);
  }
}
