/**
 * How often a watch may be asked for anew: a few times for each loss and not without end, so that a cluster that
 * cannot serve it lets the client know (watch.md §5.2).
 */
import { limits } from "../../base/limits.ts";

export class Attempts {
  /** The present loss of its backend: since when, and how often it was asked; -1 when there is none. */
  #since = -1;
  #attempts = 0;
  /** Of them, those that were lost on their way and are not counted. */
  #losses = 0;
  /** When a backend took the watch; -1 when none has. */
  #takenAt = -1;
  /** Did a backend say that the version is too old? */
  isExpired = false;
  /** Resumes with nothing new since, and when the first of them was. */
  #fruitless = 0;
  #fruitlessSince = 0;

  /** May it be asked for once more now? Counts it if so. */
  mayTry(now: number): boolean {
    this.#beginIfOver(now);
    if (this.#attempts >= limits.resumeAttempts || this.leftMs(now) <= 0) return false;
    if (this.#isFruitless(now)) return false;
    this.#attempts += 1;
    return true;
  }

  /** The one that was counted last could not be asked after all. */
  uncount(): void {
    this.#attempts -= 1;
  }

  /**
   * The one that was counted last was lost with its connection, and nobody has answered it: several apiservers may fall at
   * once. Not without end, since it may be what fells them.
   */
  lost(): void {
    if (this.#losses >= limits.resumeLosses) return;
    this.#losses += 1;
    this.uncount();
  }

  /** A backend said that the version is too old. */
  expire(now: number): void {
    this.#beginIfOver(now);
    this.isExpired = true;
  }

  #beginIfOver(now: number): void {
    // A backend that takes a watch it cannot serve says so in the same breath, with an ERROR: then it took nothing.
    const isOver = this.#takenAt >= 0 && now - this.#takenAt > limits.settledMs;
    if (this.#since >= 0 && !isOver) return;
    this.#since = now;
    this.#attempts = 0;
    this.#losses = 0;
    this.#takenAt = -1;
    this.isExpired = false;
  }

  #isFruitless(now: number): boolean {
    const isRecent = now - this.#fruitlessSince <= limits.fruitlessMs;
    return this.#fruitless >= limits.fruitlessResumes && isRecent;
  }

  /** For how long it may still be tried. */
  leftMs(now: number): number {
    return this.#since < 0 ? limits.resumeMs : limits.resumeMs - (now - this.#since);
  }

  /** A backend took the watch. */
  resumed(now: number): void {
    this.#takenAt = now;
    if (this.#fruitless === 0 || now - this.#fruitlessSince > limits.fruitlessMs) {
      this.#fruitless = 0;
      this.#fruitlessSince = now;
    }
    this.#fruitless += 1;
  }

  /** Something new came: the loss is over. */
  progressed(): void {
    this.#since = -1;
    this.#fruitless = 0;
    this.isExpired = false;
  }

  get isFruitful(): boolean {
    return this.#fruitless === 0;
  }
}
