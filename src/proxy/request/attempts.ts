/** The attempts of one exchange: at one backend, or at two while nothing is answered. The first head wins. */

import { Attempt, type AttemptOwner } from "../upstream/attempt.ts";
import { Retries } from "../upstream/pick.ts";
import type { HeldResponse } from "./held-response.ts";

export class Attempts extends Retries {
  readonly #owner: AttemptOwner;
  #first: Attempt | undefined;
  #other: Attempt | undefined;
  #backend = "";
  /** The refusal of one of them, while the other may do better. Invariant: its attempt is the first or the other. */
  #held: HeldResponse | undefined;
  /** True if an attempt that is over may have been executed. */
  #hasLeft = false;

  constructor(owner: AttemptOwner, avoided?: readonly string[]) {
    super(avoided);
    this.#owner = owner;
  }

  /** The attempt whose response is relayed, or will be if it answers first. */
  get first(): Attempt | undefined {
    return this.#first;
  }

  /** A hedge: the same request, sent once more. */
  get other(): Attempt | undefined {
    return this.#other;
  }

  /** The backend that was asked last, or has answered. */
  get backend(): string {
    return this.#backend;
  }

  /** Hands the first attempt to a watch session. */
  handOver(): void {
    this.#first = undefined;
  }

  /** The watch session continues on this backend. */
  movedTo(backend: string): void {
    this.#backend = backend;
  }

  /** Creates the attempt at a backend, to be dialled. */
  ask(backend: string): Attempt {
    this.#backend = backend;
    this.#first = new Attempt(backend, this.#owner);
    return this.#first;
  }

  /** Adds a hedge; never more than two attempts at a time, so a suspect hedge is replaced by a better one. */
  hedge(backend: string): Attempt {
    this.#hasLeft ||= this.#other?.mayHaveRun === true;
    this.#endOther();
    this.#other = new Attempt(backend, this.#owner);
    return this.#other;
  }

  /** Replaces an attempt that waits for an upstream connection: nothing of it was sent. */
  move(attempt: Attempt, backend: string): Attempt {
    attempt.cancel(false);
    this.failed(attempt.backend);
    return attempt === this.#other ? this.hedge(backend) : this.ask(backend);
  }

  /** The backends that have the request, or had it in vain. */
  get asked(): readonly string[] {
    return [...this.tried, this.#backend, this.#other?.backend ?? ""];
  }

  /** True if any backend may have begun with the request: the client must not learn that none did (D17). */
  get mayHaveRun(): boolean {
    return this.#hasLeft || this.#first?.mayHaveRun === true || this.#other?.mayHaveRun === true;
  }

  get hasTwo(): boolean {
    return this.#other !== undefined;
  }

  /** True if every attempt is suspect and none has a response. */
  get isDoubted(): boolean {
    if (this.#held !== undefined || this.#first?.isSuspect !== true) return false;
    return this.#other === undefined || this.#other.isSuspect;
  }

  /** Bytes that wait here for its attempts. */
  get queuedBytes(): number {
    const heldBytes = this.#held?.heldBytes ?? 0;
    return (this.#first?.queuedBytes ?? 0) + (this.#other?.queuedBytes ?? 0) + heldBytes;
  }

  otherThan(attempt: Attempt): Attempt | undefined {
    return attempt === this.#first ? this.#other : this.#first;
  }

  /** This attempt answers and continues alone. Returns the other one, which is cancelled. */
  prefer(attempt: Attempt): Attempt | undefined {
    if (attempt === this.#other) this.#swap();
    const rest = this.#other;
    this.#endOther();
    this.#backend = attempt.backend;
    return rest;
  }

  hold(response: HeldResponse): void {
    this.#held = response;
  }

  get isHolding(): boolean {
    return this.#held !== undefined;
  }

  /** Returns the held response of this attempt. */
  heldOf(attempt: Attempt): HeldResponse | undefined {
    return this.#held?.attempt === attempt ? this.#held : undefined;
  }

  /** Returns what is held, if anything is, and makes its attempt the first: the other has not done better. */
  takeHeld(): HeldResponse | undefined {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined && held.attempt === this.#other) this.#swap();
    return held;
  }

  /** This attempt is over. True if another one continues. */
  goesOnWithout(attempt: Attempt): boolean {
    this.failed(attempt.backend);
    this.#hasLeft ||= attempt.mayHaveRun;
    this.#forgetHeldOf(attempt);
    if (attempt !== this.#other) this.#first = this.#other;
    this.#other = undefined;
    if (this.#first === undefined) return false;
    this.#backend = this.#first.backend;
    return true;
  }

  /** `isAnswered`: the first one's final head has come. */
  cancel(isAnswered: boolean): void {
    this.#endOther();
    this.#first?.cancel(isAnswered);
    this.#forgetHeldOf(this.#first);
  }

  #endOther(): void {
    this.#other?.cancel(false);
    this.#forgetHeldOf(this.#other);
    this.#other = undefined;
  }

  #forgetHeldOf(attempt: Attempt | undefined): void {
    if (this.#held?.attempt !== attempt) return;
    this.#held?.forget();
    this.#held = undefined;
  }

  #swap(): void {
    [this.#first, this.#other] = [this.#other, this.#first];
  }
}
