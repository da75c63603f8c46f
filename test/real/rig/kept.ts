/** A program that is restarted whenever it exits, as a kubelet does, until `stop` is called. */
import { setTimeout as sleep } from "node:timers/promises";
import { Child, type Start } from "./child.ts";

/** Pause before a restart, so that a program that cannot start does not fill its log. */
const pauseMs = 1_000;

export class Kept {
  readonly name: string;
  readonly logFile: string;
  restarts = 0;
  readonly #start: Start;
  readonly #over: Promise<void>;
  #child: Child;
  #isStopping = false;

  constructor(start: Start) {
    this.name = start.name;
    this.logFile = start.logFile;
    this.#start = start;
    this.#child = new Child(start);
    this.#over = this.#keep();
  }

  async #keep(): Promise<void> {
    await this.#child.ended;
    while (!this.#isStopping) {
      this.restarts += 1;
      await sleep(pauseMs);
      await this.#startAgain();
    }
  }

  /** Resolves when the restarted program has exited. */
  async #startAgain(): Promise<void> {
    if (this.#isStopping) return;
    this.#child = new Child(this.#start);
    await this.#child.ended;
  }

  /**
   * Calls `isReady` repeatedly and resolves once it returns true. Rejects at once if the program exits, otherwise after
   * `ms`. The error contains the end of the program's log.
   */
  ready(ms: number, isReady: () => Promise<boolean>): Promise<void> {
    return this.#child.ready(ms, isReady);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#child.stop();
    await this.#over;
  }
}
