/**
 * Limits how many TLS handshakes begin in one turn of the event loop. Each takes about a millisecond, so a few hundred
 * at once would delay every established stream (A51). The source addresses take turns, so that a flood from one address
 * delays only that address.
 */
import type { Clock } from "../../base/clock.ts";
import { FairQueue, type Waiting } from "../admission/fair-queue.ts";

/**
 * Maximum number of TLS handshakes that begin in one turn of the event loop. Each takes 1.3 ms with P-256 on a slow
 * core (A51).
 */
export const handshakesPerTurn = 4;

/** A socket that waits for its handshake. `user`: its source address. */
export type WaitingHandshake = Waiting & { readonly begin: () => void };

export class HandshakeQueue {
  readonly #clock: Clock;
  readonly #waiting = new FairQueue<WaitingHandshake>(Number.POSITIVE_INFINITY);
  #isTurning = false;
  #begun = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Calls `begin` now or, if enough handshakes have begun in this turn of the event loop, in a later turn. */
  enter(handshake: WaitingHandshake): void {
    this.#turnLater();
    this.#waiting.add(handshake);
    if (this.#begun < handshakesPerTurn) this.#next();
  }

  /** Removes a waiting socket, so that its `begin` is not called. */
  leave(handshake: WaitingHandshake): void {
    this.#waiting.remove(handshake);
  }

  #turnLater(): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    this.#clock.soon(() => this.#turn());
  }

  #turn(): void {
    this.#isTurning = false;
    this.#begun = 0;
    while (this.#begun < handshakesPerTurn && this.size > 0) this.#next();
    if (this.#begun > 0) this.#turnLater();
  }

  #next(): void {
    const next = this.#waiting.next(Number.POSITIVE_INFINITY);
    if (next === undefined) return;
    // How many handshakes of an address are under way does not count.
    this.#waiting.leave(next.user);
    this.#begun += 1;
    next.begin();
  }
}
