/**
 * The search for a watch's next backend: when and why it began, which backends have failed, and the timer or queue
 * that it waits for. Limits how often a watch is requested again: the attempts after each lost stream, and the resumes
 * in a row without a new event. At the limit the watch ends, so that the client sees that the cluster cannot serve it
 * (watch.md §5.2).
 */
import type { Clock } from "../../base/clock.ts";
import { watchLimits } from "../limits.ts";
import type { AskReason, EndReason } from "./end-verdict.ts";
import { expired } from "./expired-version.ts";

const none: readonly string[] = [];

/**
 * A stream whose first event is an ERROR. `refusal`: the bytes of the ERROR if it answers the client's own request;
 * undefined if it answers a request of the proxy.
 */
type RefusedStream = {
  readonly attempt: { readonly backend: string };
  readonly refusal: Buffer | undefined;
};

export class ResumeRetry {
  readonly #clock: Clock;
  /**
   * A clock that stops while the event loop is stalled. Otherwise, a stall could use up the time for finding a backend
   * before the proxy has asked one.
   */
  readonly #stallAwareClock: Clock;
  reason: AskReason = "lost";
  /** The backend that the watch has lost or should leave. */
  from = "";
  #since = 0;
  /** True if the search began because the backend ended the watch's stream with END_STREAM. */
  #hasEnded = false;
  #tried: readonly string[] = none;
  #triedAt = 0;
  /** True since the first attempt. A hedge that succeeds before it counts as no resume. */
  #hasAsked = false;
  /** Clock reading at which the stream was lost; -1: no stream is lost now. */
  #lostAt = -1;
  #attempts = 0;
  #uncountedLosses = 0;
  /** Clock reading at which a backend accepted the watch; -1: none has yet. */
  #acceptedAt = -1;
  /** Code, such as 410, of the latest ERROR event that may become the final answer to the client; 0: no such event. */
  #refusedWith = 0;
  /** True from a resume until a new event or bookmark comes. */
  hasNoProgress = false;
  /**
   * Number of resumes that brought no new event or bookmark. A resume whose stream stayed open for `servedMs` is not
   * counted.
   */
  #resumesInVain = 0;
  #noProgressSince = 0;
  #unsentCount = 0;
  #declinedUntil = 0;
  #refusal: Buffer | undefined;
  #notServing: readonly string[] = none;
  #stopWaiting: (() => void) | undefined;

  constructor(clock: Clock, stallAwareClock: Clock) {
    this.#clock = clock;
    this.#stallAwareClock = stallAwareClock;
  }

  /**
   * Begins the search for a backend that continues the watch. `hasOther`: true if the watch already has the stream on
   * which it continues.
   */
  begin(reason: AskReason, from: string, hasOther = false): void {
    this.reason = reason;
    if (reason !== "sentinel" && reason !== "refreshed") this.#hasEnded = reason === "ended" && !hasOther;
    this.from = from;
    this.#notServing = none;
    this.#since = this.#clock.now();
  }

  get ms(): number {
    return this.#clock.now() - this.#since;
  }

  /**
   * Backends that were asked without success, until `resumeMs` after the latest attempt. A new event or bookmark clears
   * the list earlier. The acceptance of a request does not clear the list, because an ERROR may still follow.
   */
  get tried(): readonly string[] {
    return this.#stallAwareClock.now() - this.#triedAt < watchLimits.resumeMs ? this.#tried : none;
  }

  inVain(backend: string): void {
    this.#tried = [...this.tried, backend];
    this.#triedAt = this.#stallAwareClock.now();
  }

  /** True if another backend may be asked; if so, counts the attempt. */
  mayTry(): boolean {
    this.#beginIfOver();
    if (this.#attempts >= watchLimits.resumeAttempts || this.isOver || this.#isFruitless) return false;
    this.#attempts += 1;
    return true;
  }

  get #isFruitless(): boolean {
    const isRecent = this.#stallAwareClock.now() - this.#noProgressSince <= watchLimits.noProgressMs;
    return this.#resumesInVain >= watchLimits.noProgressResumes && isRecent;
  }

  /** Does not count the latest attempt, which found no connection. Returns the ms until the next attempt. */
  unsent(): number {
    this.uncount();
    this.#unsentCount += 1;
    return (this.#unsentCount - 1) * watchLimits.unsentPauseMs;
  }

  /** Does not count the latest attempt, because its backend is still initialising its watch cache. */
  uncount(): void {
    this.#attempts -= 1;
  }

  /**
   * Does not count the latest attempt, which lost its connection before any response. That may happen to several
   * attempts when several apiservers fail at once. Only the first `resumeLosses` losses are not counted, because the
   * request itself may make apiservers fail.
   */
  lost(): void {
    if (this.#uncountedLosses >= watchLimits.resumeLosses) return;
    this.#uncountedLosses += 1;
    this.uncount();
  }

  #beginIfOver(): void {
    this.#hasAsked = true;
    const now = this.#stallAwareClock.now();
    this.#settle(now);
    if (this.#lostAt >= 0) return;
    this.#lostAt = now;
    this.#attempts = 0;
    this.#uncountedLosses = 0;
    this.#acceptedAt = -1;
    this.#refusedWith = 0;
  }

  /**
   * If a backend accepted the watch more than `settledMs` ago, counts the resume as successful. Before that, an ERROR
   * event may still follow the acceptance.
   */
  #settle(now: number): void {
    const sinceAcceptedMs = this.#acceptedAt < 0 ? 0 : now - this.#acceptedAt;
    if (sinceAcceptedMs > watchLimits.settledMs) this.#lostAt = -1;
    // A quiet watch makes no progress on any backend. If its stream was open for `servedMs`, the backend served it.
    if (sinceAcceptedMs >= watchLimits.servedMs) this.#resumesInVain = 0;
  }

  /** Records a 404. A backend's first 404 does not count as an attempt, so that all backends can be asked. */
  unserved(backend: string): void {
    if (this.#notServing.includes(backend)) return;
    this.#notServing = [...this.#notServing, backend];
    this.uncount();
  }

  /** The backends that have answered 404 since the watch lost its stream. */
  get notServing(): readonly string[] {
    return this.#notServing;
  }

  get leftMs(): number {
    return watchLimits.resumeMs - (this.#lostAt < 0 ? 0 : this.#stallAwareClock.now() - this.#lostAt);
  }

  get isOver(): boolean {
    return this.leftMs <= 0;
  }

  /**
   * Records an ERROR that may be final: a 410 (expired-version.ts), or any ERROR that answers the client's own request.
   */
  refused({ attempt, refusal }: RefusedStream, code: number): void {
    this.#beginIfOver();
    this.#refusedWith = code;
    if (refusal === undefined) return;
    this.#refusal = refusal;
    this.begin(code === expired ? "expired" : "lost", attempt.backend);
  }

  /** The ERROR event that the client gets if no backend accepts its request; undefined: there is none. */
  get refusal(): Buffer | undefined {
    return this.#refusedWith === 0 ? undefined : this.#refusal;
  }

  /** The reason to journal if no backend accepts the watch. */
  get endReason(): EndReason {
    if (this.#refusedWith === expired) return "expired";
    return this.#notServing.length > 0 ? "not_found" : "no_backend";
  }

  /** True if a backend ended the stream without a known reason, and the resume after that has brought nothing new. */
  get hasEndedInVain(): boolean {
    return this.#hasEnded && this.hasNoProgress;
  }

  /** Called when a backend has refused a second stream. No second stream is requested for `ms`. */
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
    if (this.#hasAsked) this.#resumed(this.#stallAwareClock.now());
  }

  #resumed(now: number): void {
    // The hedge may replace a stream that was itself resumed long ago. In that case, the earlier resume counts as
    // successful.
    this.#settle(now);
    this.#acceptedAt = now;
    if (this.#resumesInVain === 0 || now - this.#noProgressSince > watchLimits.noProgressMs) {
      this.#resumesInVain = 0;
      this.#noProgressSince = now;
    }
    this.#resumesInVain += 1;
    this.hasNoProgress = true;
  }

  /** Called when a new event or bookmark has come, which shows that the latest resume, if any, was successful. */
  progressed(): void {
    this.#tried = none;
    // A backend has delivered a newer event or bookmark, so the client must not get the ERROR with which another
    // backend refused the watch earlier.
    this.#refusal = undefined;
    this.#lostAt = -1;
    this.#resumesInVain = 0;
    this.hasNoProgress = false;
    this.#refusedWith = 0;
  }

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
   * Calls `giveUp` if the backend does not answer the request in time. If no other backend can be asked, waits longer
   * instead, because a new request to the same backend would cost an attempt and begin at the end of the backend's
   * queue.
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
