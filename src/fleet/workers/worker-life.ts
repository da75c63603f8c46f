/**
 * The life of a worker. The proxy has a fixed number of workers; each one has one process at a time, and after the end
 * of a process it starts another one. If a worker drains because of a fault in it, its `successor` starts meanwhile.
 *
 *                  ready              drain
 *     starting ───────────▶ serving ──────────▶ draining
 *        ▲  │ ended            │ ended             │ ended
 *        │  ▼                  ▼                   ▼
 *        └── dead ◀────────────┴───────────────────┘
 *      due
 *
 * "ended": the process has exited, or was killed because it did not start in time, hung or sent an invalid message.
 * "due": the delay before the next start (`restartMs`) is over. While the proxy drains, no process is started again.
 */
import type { Clock } from "../../base/clock.ts";
import { workerLimits } from "./limits.ts";

export const workerStates = ["starting", "serving", "draining", "dead"] as const;
export type WorkerState = (typeof workerStates)[number];

export const workerInputs = ["ready", "drain", "ended", "due"] as const;
export type WorkerInput = (typeof workerInputs)[number];

/** By state and input: the next state. An input without an entry changes nothing. */
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
  /** Number of processes in succession that ended before they had served for `steadyMs`. */
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
    if (next === "serving") this.#servedAt = this.#clock.now();
    if (next === "dead") {
      this.#failures = this.#failuresAtEnd;
      this.#servedAt = undefined;
    }
    this.#state = next;
    return true;
  }

  /** What `#failures` would be if the process ended now. */
  get #failuresAtEnd(): number {
    const isSteady =
      this.#servedAt !== undefined && this.#clock.now() - this.#servedAt >= workerLimits.steadyMs;
    return isSteady ? 0 : this.#failures + 1;
  }

  /** Returns the life of the worker that replaces this one. The fault that makes this one drain counts as its end. */
  successor(): WorkerLife {
    const life = new WorkerLife(this.#clock);
    life.#failures = this.#failuresAtEnd;
    return life;
  }

  /**
   * Milliseconds until a dead worker is started again; 0 if fewer than two processes in succession have ended before
   * they had served for `steadyMs`.
   */
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
