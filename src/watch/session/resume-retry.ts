/** The search for a watch's next backend: why and since when, who was asked in vain, and what is waited for. */
import type { Clock } from "../../base/clock.ts";
import { watchLimits } from "../cache/limits.ts";
import type { AskReason, EndReason } from "./end-verdict.ts";

const nobody: readonly string[] = [];

export class ResumeRetry {
  readonly #clock: Clock;
  /** What the search is measured by: it stands still while our own loop does, in which no backend could be asked. */
  readonly #stallAwareClock: Clock;
  reason: AskReason = "lost";
  /** The backend that is to be left, or was lost. */
  from = "";
  #since = 0;
  /** Did the last loss of a backend come as an end in good order? Second legs beside a first are no loss. */
  #hasEnded = false;
  #tried: readonly string[] = nobody;
  #triedAt = 0;
  /** Most watches never have one. */
  #attempts: Attempts | undefined;
  #unsentCount = 0;
  #declinedUntil = 0;
  #refusal: Buffer | undefined;
  #notServing: readonly string[] = nobody;
  #stopWaiting: (() => void) | undefined;

  constructor(clock: Clock, stallAwareClock: Clock) {
    this.#clock = clock;
    this.#stallAwareClock = stallAwareClock;
  }

  begin(reason: AskReason, from: string): void {
    this.reason = reason;
    if (reason !== "sentinel" && reason !== "refreshed") this.#hasEnded = reason === "ended";
    this.from = from;
    this.#notServing = nobody;
    this.#since = this.#clock.now();
  }

  /** For how long it has gone on, in ms. */
  get ms(): number {
    return this.#clock.now() - this.#since;
  }

  /**
   * Backends that were asked in vain, and lately. One that took the watch and refused it a moment later is no reason to
   * ask the others again: that they are forgotten takes something new, or time.
   */
  get tried(): readonly string[] {
    return this.#stallAwareClock.now() - this.#triedAt < watchLimits.resumeMs ? this.#tried : nobody;
  }

  inVain(backend: string): void {
    this.#tried = [...this.tried, backend];
    this.#triedAt = this.#stallAwareClock.now();
  }

  /** May somebody be asked once more? Counts it if so. */
  mayTry(): boolean {
    this.#attempts ??= new Attempts();
    return this.#attempts.mayTry(this.#stallAwareClock.now());
  }

  /**
   * The one that was counted last could not be asked: there was no upstream connection. Returns for how long the next is put off, a
   * little longer each time, so that nobody is dialled in a loop.
   */
  unsent(): number {
    this.#attempts?.uncount();
    this.#unsentCount += 1;
    return (this.#unsentCount - 1) * watchLimits.unsentPauseMs;
  }

  /** The one that was counted last is not to count: its backend fills the cache that was asked for. */
  uncount(): void {
    this.#attempts?.uncount();
  }

  /** The one that was counted last was lost with its connection, before anybody answered it. */
  lost(): void {
    this.#attempts?.lost();
  }

  /** This backend answers 404. The first time is no attempt: each backend says it once before it is known of all. */
  unserved(backend: string): void {
    if (this.#notServing.includes(backend)) return;
    this.#notServing = [...this.#notServing, backend];
    this.#attempts?.uncount();
  }

  /** The backends that have answered 404 since the watch lost its leg. */
  get notServing(): readonly string[] {
    return this.#notServing;
  }

  /** For how long somebody may still be asked, in ms: no Retry-After is waited for beyond that. */
  get leftMs(): number {
    return this.#attempts?.leftMs(this.#stallAwareClock.now()) ?? watchLimits.resumeMs;
  }

  /** Is its time over, even if nobody could be asked? */
  get isOver(): boolean {
    return this.leftMs <= 0;
  }

  /** Did a backend say that the version is too old? */
  get isExpired(): boolean {
    return this.#attempts?.isExpired === true;
  }

  /** `refusal`: its word, when that is the answer to the client's own request. Then the search begins with it. */
  expired(backend: string, refusal: Buffer | undefined): void {
    this.#attempts ??= new Attempts();
    this.#attempts.expire(this.#stallAwareClock.now());
    if (refusal === undefined) return;
    this.#refusal = refusal;
    this.begin("expired", backend);
  }

  /** What the client is told if no backend is found that knows its version. */
  get refusal(): Buffer | undefined {
    return this.isExpired ? this.#refusal : undefined;
  }

  /** Why the watch ends when nobody takes it. */
  get endReason(): EndReason {
    if (this.isExpired) return "expired";
    return this.#notServing.length > 0 ? "not_found" : "no_backend";
  }

  /** Has nothing new come since the watch was resumed? */
  get isFruitless(): boolean {
    return this.#attempts?.isFruitful === false;
  }

  /** Did its backend end it without a reason, and did nothing new come of asking anew? Other moves do not count. */
  get hasEndedInVain(): boolean {
    return this.#hasEnded && this.isFruitless;
  }

  /** A second leg was refused: for so long no other is asked for. */
  declined(ms: number): void {
    this.#declinedUntil = this.#stallAwareClock.now() + ms;
  }

  get isDeclined(): boolean {
    return this.#stallAwareClock.now() < this.#declinedUntil;
  }

  /** A backend took the watch. */
  found(): void {
    this.stop();
    this.#notServing = nobody;
    this.#declinedUntil = 0;
    this.#unsentCount = 0;
    this.#attempts?.resumed(this.#stallAwareClock.now());
  }

  progressed(): void {
    this.#tried = nobody;
    // Another backend knew its version: what the first one said is no answer any more.
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
   * A backend that answers PING and nothing else is not waited for; but one that nobody else can be asked for is: anew it
   * would cost an attempt, and its place in that backend's queue.
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
 * How often a watch may be asked for anew: a few times for each loss and not without end, so that a cluster that
 * cannot serve it lets the client know (watch.md §5.2).
 */
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
    if (this.#attempts >= watchLimits.resumeAttempts || this.leftMs(now) <= 0) return false;
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
    if (this.#losses >= watchLimits.resumeLosses) return;
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
    const isOver = this.#takenAt >= 0 && now - this.#takenAt > watchLimits.settledMs;
    if (this.#since >= 0 && !isOver) return;
    this.#since = now;
    this.#attempts = 0;
    this.#losses = 0;
    this.#takenAt = -1;
    this.isExpired = false;
  }

  #isFruitless(now: number): boolean {
    const isRecent = now - this.#fruitlessSince <= watchLimits.fruitlessMs;
    return this.#fruitless >= watchLimits.fruitlessResumes && isRecent;
  }

  /** For how long it may still be tried. */
  leftMs(now: number): number {
    return this.#since < 0 ? watchLimits.resumeMs : watchLimits.resumeMs - (now - this.#since);
  }

  /** A backend took the watch. */
  resumed(now: number): void {
    this.#takenAt = now;
    if (this.#fruitless === 0 || now - this.#fruitlessSince > watchLimits.fruitlessMs) {
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
