/**
 * The life of a worker's place: one of the N places for a worker process.
 *
 *                  ready              drain
 *     starting ───────────▶ serving ──────────▶ draining
 *        ▲  │ ended            │ ended             │ ended
 *        │  ▼                  ▼                   ▼
 *        └── dead ◀────────────┴───────────────────┘
 *      due
 *
 * A worker ends if its process exits, hangs or sends nonsense; the last two also get a SIGKILL. While the proxy drains,
 * "due" never comes.
 */
import type { Clock } from "../base/clock.ts";
import { workerLimits } from "./limits.ts";

export const workerStates = ["starting", "serving", "draining", "dead"] as const;
export type WorkerState = (typeof workerStates)[number];

export const workerInputs = ["ready", "drain", "ended", "due"] as const;
export type WorkerInput = (typeof workerInputs)[number];

/** State -> input -> next state. An input without an entry changes nothing. */
export const transitions: Readonly<Record<WorkerState, Partial<Record<WorkerInput, WorkerState>>>> = {
  starting: { ready: "serving", drain: "draining", ended: "dead" },
  serving: { drain: "draining", ended: "dead" },
  draining: { ended: "dead" },
  dead: { due: "starting" },
};

export class WorkerLife {
  readonly #clock: Clock;
  #state: WorkerState = "dead";
  #servedAt: number | undefined;
  /** Starts in a row after which the worker did not serve for long. */
  #failures = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get state(): WorkerState {
    return this.#state;
  }

  /** Changes the state. Returns false if the input changes nothing in this state. */
  take(input: WorkerInput): boolean {
    const next = transitions[this.#state][input];
    if (next === undefined) return false;
    const now = this.#clock.now();
    if (next === "serving") this.#servedAt = now;
    if (next === "dead") {
      const isSteady = this.#servedAt !== undefined && now - this.#servedAt >= workerLimits.steadyMs;
      this.#failures = isSteady ? 0 : this.#failures + 1;
      this.#servedAt = undefined;
    }
    this.#state = next;
    return true;
  }

  /** Milliseconds until a dead worker is started again: none after it served for long, and for the first failure. */
  get restartMs(): number {
    const { restartMs, mostRestartMs } = workerLimits;
    return this.#failures < 2
      ? 0
      : Math.min(mostRestartMs, restartMs * 2 ** Math.min(10, this.#failures - 2));
  }

  toString(): string {
    return this.#failures === 0 ? this.#state : `${this.#state} (${this.#failures} failures)`;
  }
}
