/**
 * Limits how many TLS handshakes begin in one turn of the event loop. Each takes about a millisecond, so a few hundred
 * at once would delay every established stream (A51). The sockets of each source address have a queue of their own, and
 * the queues take turns, so that a flood from one address delays only that address.
 */
import type { Clock } from "../../base/clock.ts";

/**
 * Maximum number of TLS handshakes that begin in one turn of the event loop. Each takes 1.3 ms with P-256 on a slow
 * core (A51).
 */
export const handshakesPerTurn = 4;

type Begin = () => void;

export class HandshakeQueue {
  readonly #clock: Clock;
  /** Waiting sockets by source address. The address that was served last goes to the end. */
  readonly #sources = new Map<string, Begin[]>();
  #isTurning = false;
  #begun = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    let size = 0;
    for (const waiting of this.#sources.values()) size += waiting.length;
    return size;
  }

  /** Calls `begin` now or, if enough handshakes have begun in this turn of the event loop, in a later turn. */
  enter(source: string, begin: Begin): void {
    this.#turnLater();
    if (this.#begun < handshakesPerTurn && this.#sources.size === 0) {
      this.#begun += 1;
      begin();
      return;
    }
    const waiting = this.#sources.get(source);
    if (waiting === undefined) this.#sources.set(source, [begin]);
    else waiting.push(begin);
  }

  /** Removes a waiting socket, so that its `begin` is not called. */
  leave(source: string, begin: Begin): void {
    const waiting = this.#sources.get(source);
    const at = waiting?.indexOf(begin) ?? -1;
    if (waiting === undefined || at < 0) return;
    waiting.splice(at, 1);
    if (waiting.length === 0) this.#sources.delete(source);
  }

  #turnLater(): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    this.#clock.soon(() => this.#turn());
  }

  #turn(): void {
    this.#isTurning = false;
    this.#begun = 0;
    while (this.#begun < handshakesPerTurn && this.#sources.size > 0) this.#next();
    if (this.#begun > 0) this.#turnLater();
  }

  #next(): void {
    const [first] = this.#sources;
    if (first === undefined) return;
    const [source, waiting] = first;
    const begin = waiting.shift();
    this.#sources.delete(source);
    if (waiting.length > 0) this.#sources.set(source, waiting);
    this.#begun += 1;
    begin?.();
  }
}
