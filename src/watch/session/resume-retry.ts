/**
 * The search for a watch's next backend: its reason and start, the backends that were asked in vain, and the pending
 * wait.
 */
import type { Clock } from "../../base/clock.ts";
import { watchLimits } from "../cache/limits.ts";
import type { AskReason, EndReason } from "./end-verdict.ts";

const none: readonly string[] = [];

export class ResumeRetry {
  readonly #clock: Clock;
  /** Measures the search. It stands still while the proxy's own event loop does, because no backend can be asked then. */
  readonly #stallAwareClock: Clock;
  reason: AskReason = "lost";
  /** The backend that is to be left, or was lost. */
  from = "";
  #since = 0;
  /** True if the last loss of a backend was an orderly end. A second stream beside a first is no loss. */
  #hasEnded = false;
  #tried: readonly string[] = none;
  #triedAt = 0;
  /** Most watches never have one. */
  #attempts: ResumeBudget | undefined;
  #unsentCount = 0;
  #declinedUntil = 0;
  #refusal: Buffer | undefined;
  #notServing: readonly string[] = none;
  #stopWaiting: (() => void) | undefined;

  constructor(clock: Clock, stallAwareClock: Clock) {
    this.#clock = clock;
    this.#stallAwareClock = stallAwareClock;
  }

  begin(reason: AskReason, from: string): void {
    this.reason = reason;
    if (reason !== "sentinel" && reason !== "refreshed") this.#hasEnded = reason === "ended";
    this.from = from;
    this.#notServing = none;
    this.#since = this.#clock.now();
  }

  /** How long the search has gone on, in ms. */
  get ms(): number {
    return this.#clock.now() - this.#since;
  }

  /**
   * Backends that were recently asked in vain. A backend that accepted the watch and refused it a moment later is no
   * reason to ask the others again: the list is cleared by new events, or by time.
   */
  get tried(): readonly string[] {
    return this.#stallAwareClock.now() - this.#triedAt < watchLimits.resumeMs ? this.#tried : none;
  }

  inVain(backend: string): void {
    this.#tried = [...this.tried, backend];
    this.#triedAt = this.#stallAwareClock.now();
  }

  /** True if one more backend may be asked; if so, counts the attempt. */
  mayTry(): boolean {
    this.#attempts ??= new ResumeBudget();
    return this.#attempts.mayTry(this.#stallAwareClock.now());
  }

  /**
   * The attempt counted last could not be sent: there was no connection. Returns the delay before the next one, a little
   * longer each time, so that no backend is dialled in a loop.
   */
  unsent(): number {
    this.#attempts?.uncount();
    this.#unsentCount += 1;
    return (this.#unsentCount - 1) * watchLimits.unsentPauseMs;
  }

  /** The attempt counted last does not count: its backend is still filling the requested cache. */
  uncount(): void {
    this.#attempts?.uncount();
  }

  /** The attempt counted last was lost with its connection, before any answer. */
  lost(): void {
    this.#attempts?.lost();
  }

  /**
   * This backend answers 404. The first 404 of each backend does not count as an attempt, because all backends are asked
   * once.
   */
  unserved(backend: string): void {
    if (this.#notServing.includes(backend)) return;
    this.#notServing = [...this.#notServing, backend];
    this.#attempts?.uncount();
  }

  /** The backends that have answered 404 since the watch lost its stream. */
  get notServing(): readonly string[] {
    return this.#notServing;
  }

  /** How long backends may still be asked, in ms: a longer Retry-After is cut to this. */
  get leftMs(): number {
    return this.#attempts?.leftMs(this.#stallAwareClock.now()) ?? watchLimits.resumeMs;
  }

  /** True if the time is over, even if no backend could be asked. */
  get isOver(): boolean {
    return this.leftMs <= 0;
  }

  /** True if a backend answered that the version is too old. */
  get isExpired(): boolean {
    return this.#attempts?.isExpired === true;
  }

  /** `refusal`: the backend's ERROR, if it answers the client's own request. Then the search begins with it. */
  expired(backend: string, refusal: Buffer | undefined): void {
    this.#attempts ??= new ResumeBudget();
    this.#attempts.expire(this.#stallAwareClock.now());
    if (refusal === undefined) return;
    this.#refusal = refusal;
    this.begin("expired", backend);
  }

  /** What the client gets if no backend is found that knows its version. */
  get refusal(): Buffer | undefined {
    return this.isExpired ? this.#refusal : undefined;
  }

  /** Why the watch ends if no backend accepts it. */
  get endReason(): EndReason {
    if (this.isExpired) return "expired";
    return this.#notServing.length > 0 ? "not_found" : "no_backend";
  }

  /** True if nothing new has come since the watch was resumed. */
  get hasNoProgress(): boolean {
    return this.#attempts?.hasProgressed === false;
  }

  /** True if its backend ended it without a reason, and nothing new came of a resume. Other moves do not count. */
  get hasEndedInVain(): boolean {
    return this.#hasEnded && this.hasNoProgress;
  }

  /** A second stream was refused: no other is requested for `ms`. */
  declined(ms: number): void {
    this.#declinedUntil = this.#stallAwareClock.now() + ms;
  }

  get isDeclined(): boolean {
    return this.#stallAwareClock.now() < this.#declinedUntil;
  }

  /** A backend accepted the watch. */
  found(): void {
    this.stop();
    this.#notServing = none;
    this.#declinedUntil = 0;
    this.#unsentCount = 0;
    this.#attempts?.resumed(this.#stallAwareClock.now());
  }

  progressed(): void {
    this.#tried = none;
    // Another backend knew its version, so the refusal of the first one is void.
    this.#refusal = undefined;
    this.#attempts?.progressed();
  }

  // --- one wait at a time ---

  get isWaiting(): boolean {
    return this.#stopWaiting !== undefined;
  }

  waitFor(undo: () => void): void {
    this.stop();
    this.#stopWaiting = undo;
  }

  after(ms: number, run: () => void): void {
    this.waitFor(
      this.#stallAwareClock.after(ms, () => {
        this.#stopWaiting = undefined;
        run();
      }),
    );
  }

  /**
   * A backend that answers PING but not the request is given up, unless it is the only one that can be asked: a new
   * request to it would cost an attempt, and the place in that backend's queue.
   */
  untilAnswered(isAlone: () => boolean, giveUp: () => void): void {
    this.after(watchLimits.resumeAnswerMs, () => {
      if (isAlone() && !this.isOver) this.untilAnswered(isAlone, giveUp);
      else giveUp();
    });
  }

  stop(): void {
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
  }
}

/**
 * How often a watch may be requested again: a few times for each loss, and bounded in total, so that the client learns of
 * a cluster that cannot serve it (watch.md §5.2).
 */
export class ResumeBudget {
  /** The present loss of its backend: since when (-1 if there is none), and the number of attempts. */
  #since = -1;
  #attempts = 0;
  /** Those attempts that were lost with their connection and are not counted. */
  #losses = 0;
  /** When a backend accepted the watch; -1 if none has. */
  #takenAt = -1;
  /** True if a backend answered that the version is too old. */
  isExpired = false;
  /** Resumes with nothing new since, and when the first of them was. */
  #resumesSinceProgress = 0;
  #noProgressSince = 0;

  /** True if it may be requested once more now; if so, counts the attempt. */
  mayTry(now: number): boolean {
    this.#beginIfOver(now);
    if (this.#attempts >= watchLimits.resumeAttempts || this.leftMs(now) <= 0) return false;
    if (this.#hasNoProgress(now)) return false;
    this.#attempts += 1;
    return true;
  }

  /** The attempt counted last could not be sent after all. */
  uncount(): void {
    this.#attempts -= 1;
  }

  /**
   * The attempt counted last was lost with its connection, unanswered: several apiservers may fail at once. Uncounted
   * only a few times, since the request itself may be what makes them fail.
   */
  lost(): void {
    if (this.#losses >= watchLimits.resumeLosses) return;
    this.#losses += 1;
    this.uncount();
  }

  /** A backend answered that the version is too old. */
  expire(now: number): void {
    this.#beginIfOver(now);
    this.isExpired = true;
  }

  #beginIfOver(now: number): void {
    // A backend that accepts a watch it cannot serve sends an ERROR at once: that does not count as accepted.
    const isOver = this.#takenAt >= 0 && now - this.#takenAt > watchLimits.settledMs;
    if (this.#since >= 0 && !isOver) return;
    this.#since = now;
    this.#attempts = 0;
    this.#losses = 0;
    this.#takenAt = -1;
    this.isExpired = false;
  }

  #hasNoProgress(now: number): boolean {
    const isRecent = now - this.#noProgressSince <= watchLimits.noProgressMs;
    return this.#resumesSinceProgress >= watchLimits.noProgressResumes && isRecent;
  }

  /** How long it may still be tried. */
  leftMs(now: number): number {
    return this.#since < 0 ? watchLimits.resumeMs : watchLimits.resumeMs - (now - this.#since);
  }

  /** A backend accepted the watch. */
  resumed(now: number): void {
    this.#takenAt = now;
    if (this.#resumesSinceProgress === 0 || now - this.#noProgressSince > watchLimits.noProgressMs) {
      this.#resumesSinceProgress = 0;
      this.#noProgressSince = now;
    }
    this.#resumesSinceProgress += 1;
  }

  /** Something new came: the loss is over. */
  progressed(): void {
    this.#since = -1;
    this.#resumesSinceProgress = 0;
    this.isExpired = false;
  }

  get hasProgressed(): boolean {
    return this.#resumesSinceProgress === 0;
  }
}
