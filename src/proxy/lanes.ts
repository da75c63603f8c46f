/**
 * One backend's lanes. Requests of one trust class and kind share a row of them; when the last row's room runs low
 * another lane is dialled before it is needed. Requests that find none wait here, unsent, until a lane opens or the
 * dial fails. Tells health what dials and PINGs say.
 */
import type { Clock } from "../clock.ts";
import { Failure } from "../failure.ts";
import { Budget } from "../h2/budget.ts";
import type { Buffered } from "../h2/buffered.ts";
import type { Turn } from "../h2/turn.ts";
import type { Evidence } from "../health/evidence.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import { faulted } from "./faulted.ts";
import { Lane, type LaneOwner } from "./lane.ts";
import type { TrustClass } from "./trust.ts";
import type { Wire, WireOwner } from "./wire.ts";

/** Short requests and long ones never share a lane: 80 watches would leave no room for a GET. */
export type LaneKind = "plain" | "long";

/** Which lanes a request may use. `owner` names the client of a private one. */
export type LaneKey = {
  readonly trust: TrustClass;
  readonly kind: LaneKind;
  readonly owner: string;
  /** The three in one word, made once: every request looks its row up by it. */
  readonly name: string;
};

export function laneKey(trust: TrustClass, kind: LaneKind, owner = ""): LaneKey {
  return { trust, kind, owner, name: owner === "" ? `${trust} ${kind}` : `${trust} ${kind} ${owner}` };
}

/** Someone who waits for a lane: told exactly one of the two. */
export type Waiter = {
  /** Where it waits. */
  key: LaneKey;
  /** Which lanes it may use by now: a credential may be proven while it waits. */
  wanted(): LaneKey;
  ready(lane: Lane): void;
  refused(failure: Failure): void;
};

export type LanesOptions = {
  readonly backend: string;
  readonly clock: Clock;
  readonly turn: Turn;
  readonly buffered: Buffered;
  readonly journal: Journal;
  readonly learn: (evidence: Evidence) => void;
  readonly connect: (owner: WireOwner) => Wire;
  readonly streams: number;
  readonly warm: number;
  readonly ping: {
    readonly intervalMs: number;
    readonly suspectAfterMs: number;
    readonly deadAfterMs: number;
  };
};

type Row = {
  readonly key: LaneKey;
  readonly lanes: Lane[];
  /** With the time since when each waits. */
  readonly waiting: Map<Waiter, number>;
};

/** Kept open even when nobody asks, so that the first request and a mass move find them (D2). */
const warmKeys = [laneKey("proven", "plain"), laneKey("proven", "long")] as const;

export class Lanes implements LaneOwner {
  readonly #options: LanesOptions;
  readonly #rows = new Map<string, Row>();
  readonly #dials: Budget;
  readonly #unprovenDials: Budget;
  readonly #rowOf = new Map<Lane, Row>();
  /** Lanes with a PING unanswered beyond the first deadline. */
  readonly #silent = new Set<Lane>();
  #redialMs: number = limits.redialFirstMs;
  #stopRedial: (() => void) | undefined;
  #stopTick: () => void = () => {};
  #tickedAt: number;
  #names = 0;
  #isStopped = false;
  /** Since the last lane failed no dial has succeeded. */
  #isDead = false;

  constructor(options: LanesOptions) {
    this.#options = options;
    this.#dials = new Budget(options.clock, limits.dialsPerSecond, limits.dialsPerSecond);
    this.#unprovenDials = new Budget(
      options.clock,
      limits.unprovenDialsPerSecond,
      limits.unprovenDialsPerSecond,
    );
    this.#tickedAt = options.clock.now();
  }

  start(): void {
    for (const key of warmKeys) this.#keepWarm(this.#row(key));
    this.#schedule();
  }

  /**
   * Retires every lane; those who wait hear that the backend is gone. Lanes that still have streams keep their PING:
   * a backend is often removed because it hangs, and nobody else would ever tell who waits on it.
   */
  stop(): void {
    this.#isStopped = true;
    this.#stopRedial?.();
    for (const lane of Array.from(this.#rowOf.keys())) lane.retire();
    if (this.#rowOf.size === 0) this.#stopTick();
    this.#refuseAll(new Failure("backend-refused", "backend", "The backend was removed"));
  }

  /** A lane with room, or undefined: then one may wait for it. */
  take(key: LaneKey): Lane | undefined {
    const row = this.#row(key);
    for (const lane of row.lanes) {
      // A silent lane gets nothing new; another one, or a fresh socket, may well answer (D6).
      if (lane.room <= 0 || this.#silent.has(lane)) continue;
      if (lane.room === 1) this.#dialAhead(row);
      return lane;
    }
    return undefined;
  }

  wait(waiter: Waiter): void {
    const row = this.#row(waiter.key);
    if (row.waiting.size >= limits.waitingExchanges) {
      waiter.refused(
        new Failure("overload", "proxy", `Too many requests wait for backend ${this.#options.backend}`),
      );
      return;
    }
    row.waiting.set(waiter, this.#options.clock.now());
    this.#dial(row);
  }

  /** The waiter has gone: its client hung up. */
  forget(waiter: Waiter): void {
    this.#rows.get(waiter.key.name)?.waiting.delete(waiter);
  }

  get openStreams(): number {
    let sum = 0;
    for (const lane of this.#rowOf.keys()) sum += lane.openCount;
    return sum;
  }

  get rows(): readonly {
    readonly key: LaneKey;
    readonly lanes: readonly Lane[];
    readonly waiting: number;
  }[] {
    return [...this.#rows.values()].map(({ key, lanes, waiting }) => ({ key, lanes, waiting: waiting.size }));
  }

  // --- what lanes tell ---

  opened(lane: Lane): void {
    const { backend, journal, learn } = this.#options;
    this.#redialMs = limits.redialFirstMs;
    this.#isDead = false;
    learn({ kind: "dial", ok: true, reason: "" });
    journal.write({ kind: "lane.opened", backend, lane: lane.name });
  }

  changed(lane: Lane): void {
    const row = this.#rowOf.get(lane);
    if (row === undefined || row.waiting.size === 0) return;
    for (const waiter of Array.from(row.waiting.keys())) {
      if (lane.room <= 0) break;
      row.waiting.delete(waiter);
      waiter.ready(lane);
    }
    if (row.waiting.size > 0) this.#dial(row);
  }

  silent(lane: Lane, ms: number): void {
    const { ping, learn } = this.#options;
    // The first deadline adapts to how far the backend is; a far one answers late and is well (F10).
    const suspectAfterMs = Math.max(ping.suspectAfterMs, 8 * Math.max(0, lane.rttMs));
    if (ms < suspectAfterMs) return;
    this.#silent.add(lane);
    // One lane's silence may be that lane's own; a backend is suspect when none of them answers (D6). Whether it is
    // well is nobody's question any more once it is removed.
    const isWhole = Array.from(this.#rowOf.keys()).every((one) => one.isOpening || this.#silent.has(one));
    if (isWhole && !this.#isStopped) learn({ kind: "silence", ms });
    if (ms < Math.max(ping.deadAfterMs, 2 * suspectAfterMs)) return;
    lane.fail(new Failure("backend-lost", "backend", `PING unanswered for ${Math.round(ms)} ms`));
  }

  answered(lane: Lane): void {
    if (this.#silent.delete(lane) && !this.#isStopped) this.#endSuspicion();
  }

  faulted(error: unknown): void {
    faulted(this.#options.journal, error);
  }

  closed(lane: Lane, failure: Failure | undefined): void {
    const row = this.#rowOf.get(lane);
    if (row === undefined) return;
    this.#rowOf.delete(lane);
    row.lanes.splice(row.lanes.indexOf(lane), 1);
    const reason = failure?.message ?? "ended";
    this.#options.journal.write({
      kind: "lane.closed",
      backend: this.#options.backend,
      lane: lane.name,
      reason,
    });
    if (this.#isStopped) return this.#rowOf.size === 0 ? this.#stopTick() : undefined;
    if (this.#silent.delete(lane)) this.#endSuspicion();
    if (failure !== undefined) this.#lost(lane, row, failure);
    this.#dialOrForget(row);
    this.#redialSoon();
  }

  // --- dialling ---

  /** A row that lost a lane needs another if somebody waits; a client's own that is empty is not kept. */
  #dialOrForget(row: Row): void {
    if (row.waiting.size > 0) this.#dial(row);
    else if (row.lanes.length === 0 && row.key.owner !== "") this.#rows.delete(row.key.name);
  }

  /** A lane that answers speaks for its backend, whatever the others do (D6). */
  #endSuspicion(): void {
    const hasAnswering = this.#rowOf.keys().some((lane) => lane.isOpened && !this.#silent.has(lane));
    if (hasAnswering) this.#options.learn({ kind: "answer" });
  }

  /** Those who waited for this lane go to another backend, unsent; when it was the last, all who wait do. */
  #lost(lane: Lane, row: Row, failure: Failure): void {
    const refusal = new Failure("backend-refused", "backend", failure.message, failure);
    if (this.#rowOf.size === 0) {
      this.#isDead = true;
      this.#options.learn({ kind: "dial", ok: false, reason: failure.message });
      this.#refuseAll(refusal);
    } else if (!lane.isOpened && !row.lanes.some((other) => other.isOpening)) {
      this.#refuse(row, refusal);
    }
  }

  #refuseAll(failure: Failure): void {
    for (const row of this.#rows.values()) this.#refuse(row, failure);
  }

  #refuse(row: Row, failure: Failure): void {
    const waiting = Array.from(row.waiting.keys());
    row.waiting.clear();
    for (const waiter of waiting) waiter.refused(failure);
  }

  #row(key: LaneKey): Row {
    let row = this.#rows.get(key.name);
    if (row === undefined) {
      row = { key, lanes: [], waiting: new Map() };
      this.#rows.set(key.name, row);
    }
    return row;
  }

  /** One dial at a time for a row, unless more wait than one lane takes. */
  #dial(row: Row): void {
    const opening = row.lanes.filter((lane) => lane.isOpening).length;
    if (opening * this.#options.streams >= Math.max(1, row.waiting.size) || this.#isStopped) return;
    const isUnproven = row.key.trust === "unproven";
    // Those that retire take nobody any more, and may have watches for an hour: they hold up no successor.
    const taking = row.lanes.filter((lane) => !lane.isRetiring).length;
    if (row.lanes.length >= limits.lanes || (isUnproven && taking >= limits.unprovenLanes)) return;
    // A dial that the budget holds back is made by a later tick: those who wait are still there.
    if (!(isUnproven ? this.#unprovenDials : this.#dials).take()) return;
    this.#names += 1;
    const { clock, turn, buffered, connect, streams } = this.#options;
    const name = `${row.key.trust}-${row.key.kind}-${this.#names}`;
    const lane = new Lane({ name, clock, turn, buffered, owner: this, mostStreams: streams, connect });
    row.lanes.push(lane);
    this.#rowOf.set(lane, row);
  }

  #dialAhead(row: Row): void {
    const hasSpare = row.lanes.filter((lane) => lane.isOpening || lane.room > 1).length > 0;
    if (!hasSpare) this.#dial(row);
  }

  #keepWarm(row: Row): void {
    if (row.lanes.length < this.#options.warm) this.#dial(row);
  }

  /** After a loss the warm lanes come back, later each time that it fails. */
  #redialSoon(): void {
    if (this.#stopRedial !== undefined || this.#isStopped) return;
    this.#stopRedial = this.#options.clock.after(this.#redialMs, () => {
      this.#stopRedial = undefined;
      this.#redialMs = Math.min(limits.redialMostMs, this.#redialMs * 2);
      for (const key of warmKeys) this.#keepWarm(this.#row(key));
      // Nobody is sent to a dead backend, so without warm lanes nobody would ever find it alive again.
      if (this.#isDead && this.#rowOf.size === 0) this.#dial(this.#row(warmKeys[0]));
    });
  }

  // --- time ---

  #schedule(): void {
    this.#stopTick = this.#options.clock.after(this.#options.ping.intervalMs, () => this.#tick());
  }

  #tick(): void {
    const { clock, ping } = this.#options;
    const now = clock.now();
    // A tick this late means that we stood still ourselves: nobody could have answered (F11).
    const lateMs = now - this.#tickedAt - ping.intervalMs;
    const stalledMs = lateMs > ping.intervalMs ? lateMs : 0;
    this.#tickedAt = now;
    for (const lane of Array.from(this.#rowOf.keys())) lane.tick(stalledMs);
    if (this.#isStopped) return this.#rowOf.size > 0 ? this.#schedule() : undefined;
    for (const row of this.#rows.values()) {
      this.#attend(row, now);
      if (row.waiting.size > 0) this.#dial(row);
      this.#retireIdle(row, now);
    }
    this.#schedule();
  }

  /** Nobody waits for ever: who may use better lanes by now goes there, who has waited too long goes elsewhere. */
  #attend(row: Row, now: number): void {
    for (const [waiter, since] of row.waiting) {
      const key = waiter.wanted();
      if (key.name !== row.key.name) this.#move(waiter, since, key);
      else if (now - since > limits.laneWaitMs) {
        row.waiting.delete(waiter);
        const message = `Backend ${this.#options.backend} had no room in ${limits.laneWaitMs} ms`;
        waiter.refused(new Failure("overload", "proxy", message));
      }
    }
  }

  #move(waiter: Waiter, since: number, key: LaneKey): void {
    this.forget(waiter);
    waiter.key = key;
    const lane = this.take(key);
    if (lane === undefined) this.#row(key).waiting.set(waiter, since);
    else waiter.ready(lane);
  }

  #retireIdle(row: Row, now: number): void {
    const keep = row.key.trust === "proven" ? this.#options.warm : 0;
    const idle = row.lanes.filter((lane) => lane.openCount === 0 && now - lane.idleSince > limits.idleLaneMs);
    const spare = row.lanes.length - keep;
    for (const lane of idle.slice(0, Math.max(0, spare))) lane.retire();
  }
}
