/**
 * Which of one backend's upstream connections answer? A PING goes out on each at every tick, and each deadline is looked at when it
 * falls due, not at the tick after: one timer for all upstream connections. Many upstream connections take turns, until one of them is slow to answer:
 * then all are asked at once. Time in which our own loop stood still is charged to nobody, and nothing is concluded
 * before the turn's input has been read (F11).
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { type PingTimes, Rtt } from "../../health/rtt.ts";

export type KeepaliveTick = {
  /** A PING is due, if none is under way. */
  readonly isTurn: boolean;
  /** Our own loop stood still: what the backend sent may still be unread. */
  readonly isLate: boolean;
  /** How long an upstream connection may take to open. */
  readonly dialMs: number;
};

/** What the keepalive needs of an upstream connection. */
export type KeptAlive = {
  /** One of its own among the backend's upstream connections: whose turn it is goes by it. */
  readonly number: number;
  /** Once every interval. */
  tick(beat: KeepaliveTick): void;
  /** Sends a PING, if none is under way. */
  ask(): void;
  /** Since when nothing at all was heard although a PING waits for its answer; undefined when none does. */
  readonly silentSince: number | undefined;
  /** Of this much waiting nobody knows whether it was the backend's. */
  discountStall(ms: number): void;
};

/** `deadAfterWhenAllSilentMs`: how long silence is borne while no backend at all answers (D14). */
export type KeepaliveTimes = PingTimes & {
  readonly intervalMs: number;
  readonly deadAfterWhenAllSilentMs: number;
};

export type KeepaliveParts<Connection extends KeptAlive> = {
  readonly clock: Clock;
  readonly times: KeepaliveTimes;
  readonly connections: () => Iterable<Connection>;
  /** Told at every look, for as long as it lasts. */
  readonly suspect: (connection: Connection, silentMs: number) => void;
  /** Every upstream connection has been looked at. Told at every tick at least. */
  readonly looked: () => void;
  /** Nothing was heard for so long that the upstream connection is given up. */
  readonly dead: (connection: Connection, silentMs: number) => void;
  /** Does the backend answer elsewhere? Then a silent upstream connection may only be waiting for its kernel to send again. */
  readonly isAnswering: () => boolean;
  /** When the backend last began to answer again after a silence of all its upstream connections: a clock reading. */
  readonly answersAgainAt: () => number;
  /** When the latest PING or probe was sent that another backend has answered: a clock reading. */
  readonly othersAnsweredAt: () => number;
  /** When a backend last answered after all were silent: a clock reading. */
  readonly silenceOverAt: () => number;
  /** True once the backend is configured no more: no probe tells whether it answers. */
  readonly isRemoved: () => boolean;
  /** After every tick. */
  readonly ticked: () => void;
};

export class Keepalive<Connection extends KeptAlive> {
  readonly #parts: KeepaliveParts<Connection>;
  readonly rtt = new Rtt();
  #deadlines: PingTimes;
  #tickAt = 0;
  #beats = 0;
  /** In how many beats each upstream connection has its turn. */
  #turns = 1;
  #dueAt = 0;
  #waitsSince = 0;
  #stop: (() => void) | undefined;

  constructor(parts: KeepaliveParts<Connection>) {
    this.#parts = parts;
    this.#deadlines = parts.times;
  }

  /** When silence becomes suspicious and certain, in ms, as far away as the backend is now. */
  get deadlines(): PingTimes {
    return this.#deadlines;
  }

  get isRunning(): boolean {
    return this.#stop !== undefined;
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
    // When within this wait the loop stood still is not known: none of it counts.
    if (isLate) for (const connection of connections()) connection.discountStall(now - this.#waitsSince);
    const isTick = now >= this.#tickAt;
    if (isTick) {
      this.#tickAt = Math.max(this.#tickAt + times.intervalMs, now + times.intervalMs / 2);
      this.rtt.fade(now);
      this.#deadlines = this.rtt.deadlines(times);
    }
    // Arranged before anything is done: a fault in one beat is not the last of all.
    this.#wait(this.#tickAt);
    // What arrived while we were busy is read before anyone is judged by it.
    clock.soon(() => this.#look());
    if (!isTick) return;
    this.#beat(Array.from(connections()), isLate);
    this.#parts.ticked();
  }

  #beat(connections: readonly Connection[], isLate: boolean): void {
    this.#beats += 1;
    this.#turns = connections.length > limits.pingsPerBeat ? limits.pingTurns : 1;
    // A far backend's handshake takes three round trips.
    const dialMs = Math.max(limits.dialMs, this.#deadlines.deadAfterMs);
    for (const connection of connections) {
      const isTurn = (connection.number + this.#beats) % this.#turns === 0;
      connection.tick({ isTurn, isLate, dialMs });
    }
  }

  #look(): void {
    if (this.#stop === undefined) return;
    const { suspect, dead, looked, isAnswering } = this.#parts;
    const silent = this.#silent();
    const { suspectAfterMs } = this.#deadlines;
    const suspectAt = this.#judge(silent, () => suspectAfterMs, suspect);
    looked();
    // Whether it answers elsewhere is known only when all upstream connections have been looked at.
    const deadAfterMs = isAnswering() ? this.#patienceMs : this.#deadAfterMs;
    const deadAt = this.#judge(silent, deadAfterMs, dead);
    this.#lookAgainAt(Math.min(this.#tickAt, suspectAt, deadAt, this.#pingAll(silent)));
  }

  /** Those whose PING waits for its answer: few of many. */
  #silent(): Connection[] {
    const silent: Connection[] = [];
    for (const connection of this.#parts.connections())
      if (connection.silentSince !== undefined) silent.push(connection);
    return silent;
  }

  /** One that is slow to answer may be the first of all: the others are asked without waiting for their turns. */
  #pingAll(silent: readonly Connection[]): number {
    if (this.#turns === 1) return Number.POSITIVE_INFINITY;
    let slow = 0;
    const afterMs = limits.rollCallShare * this.#deadlines.suspectAfterMs;
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

  /** Tells of each upstream connection that was silent for so long; returns when the next one will be. */
  #judge(
    silent: readonly Connection[],
    afterMs: (silentSince: number) => number,
    tell: (connection: Connection, silentMs: number) => void,
  ): number {
    const now = this.#parts.clock.now();
    let nextAt = Number.POSITIVE_INFINITY;
    for (const connection of silent) {
      // What is told of one may end others.
      const { silentSince } = connection;
      if (silentSince === undefined) continue;
      // The sum is compared, for it is what the timer is set to: the difference may be less by a rounding, for ever.
      const dueAt = silentSince + afterMs(silentSince);
      if (now >= dueAt) tell(connection, now - silentSince);
      else nextAt = Math.min(nextAt, dueAt);
    }
    return nextAt;
  }

  /**
   * Of an upstream connection whose backend answers elsewhere. The kernel waits twice as long before each retransmission, so after a hole
   * the next one comes at the latest as long after its end as it lasted.
   */
  readonly #patienceMs = (silentSince: number): number => {
    const { answersAgainAt, silenceOverAt } = this.#parts;
    const holeMs = Math.max(answersAgainAt(), silenceOverAt()) - silentSince;
    const mostMs = 2 * holeMs + limits.connectionPatienceMs;
    return Math.max(this.#deadlines.deadAfterMs, limits.connectionPatienceMs, holeMs > 0 ? mostMs : 0);
  };

  /**
   * Of an upstream connection whose backend says nothing. If no other backend answers either, the hole is most likely our own (D14). Of such
   * a hole one backend's answer is the first: the silence of the others is counted from then on.
   */
  readonly #deadAfterMs = (silentSince: number): number => {
    const { deadAfterMs } = this.#deadlines;
    const isAlone = this.#parts.othersAnsweredAt() > silentSince + limits.togetherMs;
    if (!isAlone) return Math.max(deadAfterMs, this.#parts.times.deadAfterWhenAllSilentMs);
    const holeMs = this.#parts.silenceOverAt() - silentSince;
    // Without probes the first sign that it answers again may be the kernel's next retransmission on this upstream connection.
    if (holeMs > 0 && this.#parts.isRemoved()) return this.#patienceMs(silentSince);
    return deadAfterMs + Math.max(0, holeMs);
  };

  #lookAgainAt(at: number): void {
    if (this.#stop === undefined || at >= this.#dueAt) return;
    this.#stop();
    this.#wait(at);
  }
}
