/** The attempts of one exchange at backends: one, or two while neither is answered. The first response wins. */

import type { Failure } from "../../base/failure.ts";
import type { Field } from "../../h2/core/field.ts";
import type { AssertedTrust } from "../../upstream/identity/asserted-identity.ts";
import { Attempt, type AttemptOwner } from "../../upstream/pool/attempt.ts";
import { Retries } from "../../upstream/pool/retry-policy.ts";
import type { Move } from "../../watch/session/end-verdict.ts";
import type { RequestGate } from "../limits/request-gate.ts";
import type { RequestTrace } from "../observe/request-trace.ts";
import type { ExchangeRequest, ExchangeServices } from "./exchange-request.ts";
import { HeldBody, type HeldResponse } from "./held-response.ts";

export class AttemptPair extends Retries {
  readonly #owner: AttemptOwner;
  /** The request's trace; undefined: the request is not traced. */
  readonly trace: RequestTrace | undefined;
  #first: Attempt | undefined;
  #other: Attempt | undefined;
  #backend = "";
  /**
   * A response that is held back (held-response.ts). Invariant: its attempt is `#first` or `#other`.
   */
  #held: HeldResponse | undefined;
  /** True if an attempt has ended although its backend may have begun to process the request. */
  #hasLeft = false;
  readonly #observers: ExchangeRequest["observers"];
  readonly #info: ExchangeRequest["info"];
  /** True if the observers (load/request-observer.ts) count the request as one that is under way at `#backend`. */
  #isCounted = false;
  /**
   * The phase (overhead.ts) to which the time before the first attempt counts; undefined once this attempt was sent.
   */
  #sending: "request" | "queued" | undefined = "request";

  constructor(
    owner: AttemptOwner,
    { avoided, observers, info, trace }: Pick<ExchangeRequest, "avoided" | "observers" | "info" | "trace">,
  ) {
    super(avoided);
    this.#owner = owner;
    this.#observers = observers;
    this.#info = info;
    this.trace = trace;
  }

  /** Makes `backend` the request's backend, at which the observers count the request. A hedge is not counted. */
  #place(backend: string): void {
    if (this.#isCounted && backend === this.#backend) return;
    this.end();
    this.#backend = backend;
    this.#isCounted = true;
    this.#observers.began(backend, this.#info);
  }

  /** Reports to the observers that the request has ended, or that it leaves its present backend. */
  end(): void {
    if (!this.#isCounted) return;
    this.#isCounted = false;
    this.#observers.ended(this.#backend, this.#info);
  }

  /**
   * Reports the final head of each attempt to the observers, even if the client gets the response of another attempt.
   */
  answered(attempt: Attempt, head: readonly Field[], now: number): void {
    attempt.answered(now);
    this.#observers.answered(attempt.backend, this.#info, attempt.sinceSent(now), head);
  }

  /** The attempt whose response goes to the client. A hedge that is answered earlier takes its place. */
  get first(): Attempt | undefined {
    return this.#first;
  }

  /** The hedge: a second attempt with the same request. */
  get other(): Attempt | undefined {
    return this.#other;
  }

  /** The trust class of the identity that the proxy asserts; undefined: it asserts none. */
  get trust(): AssertedTrust | undefined {
    return this.#owner.context.asserted?.trust;
  }

  /** Returns the backend for the next attempt, or a Failure if none can be asked now. `bound`: the client's backend. */
  nextFor(
    { backends, pools }: Pick<ExchangeServices, "backends" | "pools">,
    bound: string | undefined,
    gate: RequestGate | undefined,
  ): string | Failure {
    const views = pools.fitFor(backends.views, this.trust);
    if (views.length === 0 && backends.views.length > 0) return pools.unfitFor(this.trust);
    if (gate === undefined) return this.nextBackend(views, pools, bound);
    return this.nextBackend(gate.choice(views, bound), pools, gate.boundTo(bound));
  }

  /** The backend that has answered; before a response, the backend of the latest attempt that is not a hedge. */
  get backend(): string {
    return this.#backend;
  }

  /**
   * Makes the time until the request is sent count as phase "queued" (overhead.ts), because the request has to wait.
   */
  queue(): void {
    if (this.#sending !== undefined) this.#sending = "queued";
  }

  /**
   * Records that an attempt was sent. For the first attempt, returns the phase (overhead.ts) to which the time before
   * sending counts. For any other attempt, returns undefined.
   */
  sent(attempt: Attempt): "request" | "queued" | undefined {
    this.trace?.sent(attempt);
    const phase = this.#sending;
    this.#sending = undefined;
    return phase;
  }

  /** Drops the first attempt, which a watch session takes over. */
  handOver(): void {
    this.#first = undefined;
  }

  /** Records that the watch session continues on another backend. */
  moved(move: Move): void {
    this.#place(move.to);
    if (move.reason !== "refreshed") this.trace?.moved(move);
  }

  /** Creates the first attempt, at this backend. The caller must dial it. */
  ask(backend: string): Attempt {
    this.#place(backend);
    this.#first = new Attempt(backend, this.#owner);
    this.trace?.asked(this.#first, backend, false);
    return this.#first;
  }

  /**
   * Adds a hedge (a second attempt). Replaces an earlier hedge that is suspect, because there are at most two attempts.
   */
  hedge(backend: string): Attempt {
    this.#hasLeft ||= this.#other?.mayHaveRun === true;
    this.#endOther();
    this.#other = new Attempt(backend, this.#owner);
    this.trace?.asked(this.#other, backend, true);
    return this.#other;
  }

  /** Replaces an attempt that still waits for an upstream connection by an attempt at `backend`. */
  move(attempt: Attempt, backend: string): Attempt {
    attempt.cancel(false);
    this.failed(attempt.backend);
    this.trace?.lost(attempt, "no_connection");
    return attempt === this.#other ? this.hedge(backend) : this.ask(backend);
  }

  /** The backends that have been asked, including those of failed attempts. */
  get asked(): readonly string[] {
    return [...this.tried, this.#backend, this.#other?.backend ?? ""];
  }

  /** True if any backend may have begun to process the request. The client must then not get "not processed" (D17). */
  get mayHaveRun(): boolean {
    return this.#hasLeft || this.#first?.mayHaveRun === true || this.#other?.mayHaveRun === true;
  }

  get hasTwo(): boolean {
    return this.#other !== undefined;
  }

  /** True if the first bytes of a successful read's body have arrived, and are held. */
  get isHoldingBody(): boolean {
    return this.#held instanceof HeldBody;
  }

  /**
   * True if every attempt is suspect and no refusal is held back. A held body does not count as a response here,
   * because the rest of the body may never come.
   */
  get isDoubted(): boolean {
    const isRefused = this.isHolding && !this.isHoldingBody;
    if (isRefused || this.#first?.isSuspect !== true) return false;
    return this.#other === undefined || this.#other.isSuspect;
  }

  get queuedBytes(): number {
    const heldBytes = this.#held?.heldBytes ?? 0;
    return (this.#first?.queuedBytes ?? 0) + (this.#other?.queuedBytes ?? 0) + heldBytes;
  }

  otherThan(attempt: Attempt): Attempt | undefined {
    return attempt === this.#first ? this.#other : this.#first;
  }

  /** Makes this attempt the only one. Cancels the other attempt and returns it; undefined: there was none. */
  prefer(attempt: Attempt): Attempt | undefined {
    if (attempt === this.#other) this.#swap();
    const rest = this.#other;
    this.trace?.answered(attempt);
    this.#endOther();
    this.#place(attempt.backend);
    return rest;
  }

  /**
   * Returns true if the body of the other attempt's successful response is held. In this case drops `attempt`, whose
   * response is not successful.
   */
  prefersBodyTo(attempt: Attempt): boolean {
    if (!this.isHoldingBody) return false;
    attempt.cancel(true);
    return this.goesOnWithout(attempt);
  }

  hold<T extends HeldResponse>(response: T): T {
    this.#held = response;
    return response;
  }

  get isHolding(): boolean {
    return this.#held !== undefined;
  }

  heldOf(attempt: Attempt): HeldResponse | undefined {
    return this.#held?.attempt === attempt ? this.#held : undefined;
  }

  /** Returns the held response, and makes its attempt the first one; undefined: no response is held. */
  takeHeld(): HeldResponse | undefined {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined && held.attempt === this.#other) this.#swap();
    return held;
  }

  /** Removes an attempt that is over. Returns true if there is another attempt, with which the request continues. */
  goesOnWithout(attempt: Attempt): boolean {
    this.failed(attempt.backend);
    this.trace?.lost(attempt, "lost");
    this.#hasLeft ||= attempt.mayHaveRun;
    this.#forgetHeldOf(attempt);
    if (attempt !== this.#other) this.#first = this.#other;
    this.#other = undefined;
    if (this.#first === undefined) {
      this.end();
      return false;
    }
    this.#place(this.#first.backend);
    return true;
  }

  /** Ends the attempts. `isAnswered`: true if the final response head of the first attempt has arrived. */
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
