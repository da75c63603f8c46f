/**
 * Measures the time that watchkeeper itself adds to a request. Phase "request" lasts from the arrival of the request's
 * head until the head was written to a backend, phase "response" from the arrival of the response's head until this
 * head was written to the client. A request that had to wait for a connection, for a ready backend or for its admission
 * counts in phase "queued" instead of "request".
 *
 * All heads that are forwarded in one turn of the event loop are written together, so one clock reading at the turn's
 * end is the end time of all of them. Their begin times are clock readings that the data path takes for other purposes
 * anyway.
 */
import type { Clock } from "../../base/clock.ts";
import { Histogram, overheadBounds } from "../../base/histogram.ts";
import type { FlushScheduler } from "../../h2/core/flush-scheduler.ts";

export type OverheadPhase = "request" | "queued" | "response";

export class Overhead {
  readonly #clock: Clock;
  readonly #turn: FlushScheduler;
  readonly histograms: Readonly<Record<OverheadPhase, Histogram>> = {
    request: new Histogram(overheadBounds),
    queued: new Histogram(overheadBounds),
    response: new Histogram(overheadBounds),
  };
  /**
   * The heads that are written in this turn of the event loop, in three parallel arrays, so that no object is created
   * for a head. The arrays never shrink.
   */
  readonly #phases: OverheadPhase[] = [];
  readonly #beginnings: number[] = [];
  readonly #auditIds: string[] = [];
  #count = 0;

  constructor(clock: Clock, turn: FlushScheduler) {
    this.#clock = clock;
    this.#turn = turn;
  }

  /** Measures a head that is written at the end of this turn. `since`: clock reading at its arrival. */
  forwarded(phase: OverheadPhase, since: number, auditId: string): void {
    const at = this.#count;
    if (at === 0) this.#turn.markLast(this);
    this.#phases[at] = phase;
    this.#beginnings[at] = since;
    this.#auditIds[at] = auditId;
    this.#count = at + 1;
  }

  flush(): void {
    const now = this.#clock.now();
    for (let at = 0; at < this.#count; at += 1) {
      const histogram = this.histograms[this.#phases[at] ?? "request"];
      histogram.observe((now - (this.#beginnings[at] ?? now)) / 1000, this.#auditIds[at], now);
      this.#auditIds[at] = "";
    }
    this.#count = 0;
  }
}
