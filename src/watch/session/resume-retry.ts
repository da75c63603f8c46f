/**
 * The search for the next backend of a watch: its reason, its start, the backends that were asked in vain, and the
 * function that cancels what the watch waits for.
 */
import type { Clock } from "../../base/clock.ts";
import { watchLimits } from "../cache/limits.ts";
import type { AskReason, EndReason } from "./end-verdict.ts";

const none: readonly string[] = [];

export class ResumeRetry {
  readonly #clock: Clock;
  /** Clock of the search. It stands still while the proxy's event loop does, because no backend can be asked then. */
  readonly #stallAwareClock: Clock;
  reason: AskReason = "lost";
  /** Backend that the watch has lost or should leave. */
  from = "";
  #since = 0;
  /** True if the last lost stream ended with END_STREAM. A second stream beside a first one does not count. */
  #hasEnded = false;
  #tried: readonly string[] = none;
  #triedAt = 0;
  /** Counts attempts. Undefined until the first one, because most watches never need any. */
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

  get ms(): number {
    return this.#clock.now() - this.#since;
  }

  /**
   * Backends that were asked in vain within the last `resumeMs`. New events clear the list. That a backend accepts the
   * watch does not clear it, because the backend may send an ERROR a moment later.
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
   * Uncounts the last attempt, because there was no connection for it. Returns the ms until the next attempt: more each
   * time, so that no backend is dialled in a loop.
   */
  unsent(): number {
    this.#attempts?.uncount();
    this.#unsentCount += 1;
    return (this.#unsentCount - 1) * watchLimits.unsentPauseMs;
  }

  /** Uncounts the last attempt, because its backend is still filling the requested cache. */
  uncount(): void {
    this.#attempts?.uncount();
  }

  /** Called when the last attempt lost its connection before any response. The first few such losses are uncounted. */
  lost(): void {
    this.#attempts?.lost();
  }

  /** Records a 404. The first one of each backend costs no attempt, because all backends are asked once. */
  unserved(backend: string): void {
    if (this.#notServing.includes(backend)) return;
    this.#notServing = [...this.#notServing, backend];
    this.#attempts?.uncount();
  }

  /** The backends that have answered 404 since the watch lost its stream. */
  get notServing(): readonly string[] {
    return this.#notServing;
  }

  /** Ms for which backends may still be asked. A longer Retry-After is shortened to this. */
  get leftMs(): number {
    return this.#attempts?.leftMs(this.#stallAwareClock.now()) ?? watchLimits.resumeMs;
  }

  /** True if the time for the search is over, even if no backend could be asked. */
  get isOver(): boolean {
    return this.leftMs <= 0;
  }

  /** True if a backend answered that the watch's version is too old (410). */
  get isExpired(): boolean {
    return this.#attempts?.isExpired === true;
  }

  /** Records a 410. `refusal`: the ERROR if the 410 answers the client's own request; then the search begins. */
  expired(backend: string, refusal: Buffer | undefined): void {
    this.#attempts ??= new ResumeBudget();
    this.#attempts.expire(this.#stallAwareClock.now());
    if (refusal === undefined) return;
    this.#refusal = refusal;
    this.begin("expired", backend);
  }

  /** The ERROR that the client gets if no backend has its version; undefined if there was no such ERROR. */
  get refusal(): Buffer | undefined {
    return this.isExpired ? this.#refusal : undefined;
  }

  /** The reason to journal if no backend accepts the watch. */
  get endReason(): EndReason {
    if (this.isExpired) return "expired";
    return this.#notServing.length > 0 ? "not_found" : "no_backend";
  }

  /** True if the watch was resumed and nothing new has come since. */
  get hasNoProgress(): boolean {
    return this.#attempts?.hasProgressed === false;
  }

  /** True if a backend ended the stream without a known reason, and the resume after that brought nothing new. */
  get hasEndedInVain(): boolean {
    return this.#hasEnded && this.hasNoProgress;
  }

  /** Records that a second stream was refused. No other one is requested for `ms`. */
  declined(ms: number): void {
    this.#declinedUntil = this.#stallAwareClock.now() + ms;
  }

  get isDeclined(): boolean {
    return this.#stallAwareClock.now() < this.#declinedUntil;
  }

  /** Ends the search, because a backend has accepted the watch. */
  found(): void {
    this.stop();
    this.#notServing = none;
    this.#declinedUntil = 0;
    this.#unsentCount = 0;
    this.#attempts?.resumed(this.#stallAwareClock.now());
  }

  progressed(): void {
    this.#tried = none;
    // Another backend has delivered something, so the ERROR of the backend that refused the version is void.
    this.#refusal = undefined;
    this.#attempts?.progressed();
  }

  // --- the one timer or queue entry that the search waits for ---

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
   * Calls `giveUp` if a backend answers PING but not the request. Keeps waiting while no other backend can be asked,
   * because a new request would cost an attempt and the old request's place in the backend's queue.
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
 * Limits how often a watch is requested again: a few times for each lost stream, and in total while nothing new comes.
 * At the limit the watch ends, which shows the client that the cluster cannot serve it (watch.md §5.2).
 */
export class ResumeBudget {
  /** Clock reading at which the stream was lost (-1: none is lost now), and the number of attempts since then. */
  #since = -1;
  #attempts = 0;
  /** Number of attempts that do not count, because they lost their connection. */
  #losses = 0;
  /** Clock reading at which a backend accepted the watch; -1: none has. */
  #takenAt = -1;
  /** True if a backend answered that the watch's version is too old (410). */
  isExpired = false;
  /** Number of resumes since the last new event, and the clock reading of the first of these resumes. */
  #resumesSinceProgress = 0;
  #noProgressSince = 0;

  /** True if the watch may be requested once more now. If so, counts the attempt. */
  mayTry(now: number): boolean {
    this.#beginIfOver(now);
    if (this.#attempts >= watchLimits.resumeAttempts || this.leftMs(now) <= 0) return false;
    if (this.#hasNoProgress(now)) return false;
    this.#attempts += 1;
    return true;
  }

  uncount(): void {
    this.#attempts -= 1;
  }

  /**
   * Uncounts the last attempt, which lost its connection before the response, because several apiservers may fail at
   * once. Only a few attempts are uncounted, because the request itself may be what makes the apiservers fail.
   */
  lost(): void {
    if (this.#losses >= watchLimits.resumeLosses) return;
    this.#losses += 1;
    this.uncount();
  }

  /** Records that a backend has answered that the version is too old. */
  expire(now: number): void {
    this.#beginIfOver(now);
    this.isExpired = true;
  }

  #beginIfOver(now: number): void {
    // The loss is over only `settledMs` after a backend accepts the watch, because an ERROR may follow at once.
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

  /** Returns the ms for which the watch may still be requested. */
  leftMs(now: number): number {
    return this.#since < 0 ? watchLimits.resumeMs : watchLimits.resumeMs - (now - this.#since);
  }

  /** Counts a resume, because a backend has accepted the watch. */
  resumed(now: number): void {
    this.#takenAt = now;
    if (this.#resumesSinceProgress === 0 || now - this.#noProgressSince > watchLimits.noProgressMs) {
      this.#resumesSinceProgress = 0;
      this.#noProgressSince = now;
    }
    this.#resumesSinceProgress += 1;
  }

  /** Called when something new has come: the lost stream is replaced. */
  progressed(): void {
    this.#since = -1;
    this.#resumesSinceProgress = 0;
    this.isExpired = false;
  }

  get hasProgressed(): boolean {
    return this.#resumesSinceProgress === 0;
  }
}
