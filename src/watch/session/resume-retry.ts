/** The search for a watch's next backend: why and since when, who was asked in vain, and what is waited for. */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { Attempts } from "./attempts.ts";
import type { AskReason, EndReason } from "./watch-reasons.ts";

const nobody: readonly string[] = [];

export class ResumeRetry {
  readonly #clock: Clock;
  /** What the search is measured by: it stands still while our own loop does, in which no backend could be asked. */
  readonly #patience: Clock;
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

  constructor(clock: Clock, patience: Clock) {
    this.#clock = clock;
    this.#patience = patience;
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
    return this.#patience.now() - this.#triedAt < limits.resumeMs ? this.#tried : nobody;
  }

  inVain(backend: string): void {
    this.#tried = [...this.tried, backend];
    this.#triedAt = this.#patience.now();
  }

  /** May somebody be asked once more? Counts it if so. */
  mayTry(): boolean {
    this.#attempts ??= new Attempts();
    return this.#attempts.mayTry(this.#patience.now());
  }

  /**
   * The one that was counted last could not be asked: there was no upstream connection. Returns for how long the next is put off, a
   * little longer each time, so that nobody is dialled in a loop.
   */
  unsent(): number {
    this.#attempts?.uncount();
    this.#unsentCount += 1;
    return (this.#unsentCount - 1) * limits.unsentPauseMs;
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
    return this.#attempts?.leftMs(this.#patience.now()) ?? limits.resumeMs;
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
    this.#attempts.expire(this.#patience.now());
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
    this.#declinedUntil = this.#patience.now() + ms;
  }

  get isDeclined(): boolean {
    return this.#patience.now() < this.#declinedUntil;
  }

  /** A backend took the watch. */
  found(): void {
    this.stop();
    this.#notServing = nobody;
    this.#declinedUntil = 0;
    this.#unsentCount = 0;
    this.#attempts?.resumed(this.#patience.now());
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
      this.#patience.after(ms, () => {
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
    this.after(limits.resumeAnswerMs, () => {
      if (isAlone() && !this.isOver) this.untilAnswered(isAlone, giveUp);
      else giveUp();
    });
  }

  stop(): void {
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
  }
}
