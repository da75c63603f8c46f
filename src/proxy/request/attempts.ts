/** Whom one exchange was asked of: of one backend, or of two while nothing is answered. The first head wins. */

import { Attempt, type AttemptOwner } from "../upstream/attempt.ts";
import { Retries } from "../upstream/retry.ts";

export class Attempts extends Retries {
  readonly #owner: AttemptOwner;
  #first: Attempt | undefined;
  #other: Attempt | undefined;
  #backend = "";
  /** An attempt that is over may have been executed. */
  #hasLeft = false;

  constructor(owner: AttemptOwner, avoided?: readonly string[]) {
    super(avoided);
    this.#owner = owner;
  }

  /** Its answer is relayed, or will be if it is the first. */
  get first(): Attempt | undefined {
    return this.#first;
  }

  /** A hedge: the same request, asked once more. */
  get other(): Attempt | undefined {
    return this.#other;
  }

  /** The backend that was asked last, or has answered. */
  get backend(): string {
    return this.#backend;
  }

  /** The first attempt belongs to a watch session from here on. */
  handOver(): void {
    this.#first = undefined;
  }

  /** The session of the watch continues there. */
  movedTo(backend: string): void {
    this.#backend = backend;
  }

  /** Gives it to a backend: the attempt is to be dialled. */
  ask(backend: string): Attempt {
    this.#backend = backend;
    this.#first = new Attempt(backend, this.#owner);
    return this.#first;
  }

  /** Asks once more; never of more than two at a time, so a hedge in doubt makes room for a better one. */
  hedge(backend: string): Attempt {
    this.#hasLeft ||= this.#other?.mayHaveRun === true;
    this.#other?.cancel(false);
    this.#other = new Attempt(backend, this.#owner);
    return this.#other;
  }

  /** Takes the place of an attempt that waits for an upstream connection: nothing of it was sent. */
  move(attempt: Attempt, backend: string): Attempt {
    attempt.cancel(false);
    this.failed(attempt.backend);
    return attempt === this.#other ? this.hedge(backend) : this.ask(backend);
  }

  /** The backends that have it, or had it in vain. */
  get asked(): readonly string[] {
    return [...this.tried, this.#backend, this.#other?.backend ?? ""];
  }

  /** True if any backend may have begun with the request: the client must not be told that none did (D17). */
  get mayHaveRun(): boolean {
    return this.#hasLeft || this.#first?.mayHaveRun === true || this.#other?.mayHaveRun === true;
  }

  get hasTwo(): boolean {
    return this.#other !== undefined;
  }

  /** Is nobody who was asked known to be well, and nothing heard? */
  get isDoubted(): boolean {
    if (this.#first?.isSuspect !== true || this.#first.refusal !== undefined) return false;
    return this.#other === undefined || (this.#other.isSuspect && this.#other.refusal === undefined);
  }

  /** What waits here on their account. */
  get queuedBytes(): number {
    return (this.#first?.queuedBytes ?? 0) + (this.#other?.queuedBytes ?? 0);
  }

  otherThan(attempt: Attempt): Attempt | undefined {
    return attempt === this.#first ? this.#other : this.#first;
  }

  /** This one answers: it goes on alone. Returns the one that nobody wants any more. */
  prefer(attempt: Attempt): Attempt | undefined {
    if (attempt === this.#other) this.#swap();
    const rest = this.#other;
    rest?.cancel(false);
    this.#other = undefined;
    this.#backend = attempt.backend;
    return rest;
  }

  /** Whoever has refused comes first: nobody has done better in time. */
  waitUntilReady(): void {
    if (this.#first?.refusal === undefined && this.#other?.refusal !== undefined) this.#swap();
  }

  /** This one is over. Is there another, whose answer is as good? */
  goesOnWithout(attempt: Attempt): boolean {
    this.failed(attempt.backend);
    this.#hasLeft ||= attempt.mayHaveRun;
    attempt.refusal?.forget();
    if (attempt !== this.#other) this.#first = this.#other;
    this.#other = undefined;
    if (this.#first === undefined) return false;
    this.#backend = this.#first.backend;
    return true;
  }

  /** `isAnswered`: the first one's final head has come. */
  cancel(isAnswered: boolean): void {
    this.#first?.cancel(isAnswered);
    this.#other?.cancel(false);
    this.#other = undefined;
  }

  #swap(): void {
    [this.#first, this.#other] = [this.#other, this.#first];
  }
}
