/**
 * What a session's streams share on the way out: the session's window, the socket's patience, and the round of those
 * that wait. Nothing here knows what the octets are.
 */

import { limits } from "../../base/limits.ts";
import type { Buffered } from "../core/buffered.ts";
import { defaultWindow, widened } from "./window.ts";

/** A stream as its round sees it. */
export type Waiting = {
  /** Sends what the windows let through, one quantum at most; true when more could go at once. */
  pump(): boolean;
};

export class Outflow {
  readonly #buffered: Buffered;
  readonly #waiting = new Set<Waiting>();
  #window = defaultWindow;
  #queuedBytes = 0;
  /** DATA written since the last flush: beyond the backlog's bound the rest waits for the socket's answer. */
  #unflushedBytes = 0;
  #isCongested = false;
  #isGathering = false;
  /** Counts the turns in which something was written. */
  turn = 0;
  #isPumping = false;

  constructor(buffered: Buffered) {
    this.#buffered = buffered;
  }

  /** DATA that waits in streams, for windows or for the socket. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** What the session's window and the socket let through now. */
  get room(): number {
    if (this.#isCongested || this.#unflushedBytes >= limits.socketBacklogBytes) return 0;
    return Math.max(0, this.#window);
  }

  /** The peer takes `increment` more (WINDOW_UPDATE on stream 0). */
  widen(increment: number): void {
    this.#window = widened(this.#window, increment, "session");
    this.pump();
  }

  /** `count` octets of DATA were written. */
  spend(count: number): void {
    this.#window -= count;
    this.#unflushedBytes += count;
  }

  /** A stream has something queued, or nothing any more. */
  wait(stream: Waiting, isWaiting: boolean): void {
    if (isWaiting) this.#waiting.add(stream);
    else this.#waiting.delete(stream);
  }

  queued(count: number): void {
    this.#queuedBytes += count;
    this.#buffered.add(count);
  }

  /** A stream keeps tiny DATA until the turn's end, so that it leaves in one frame. */
  gather(): void {
    this.#isGathering = true;
  }

  /** The turn ends: what was gathered is written, as far as the windows let it. */
  gathered(): void {
    if (!this.#isGathering) return;
    this.#isGathering = false;
    this.pump();
  }

  /** The turn's buffers went to the socket; `isDrained` is what it said. Either way they are its backlog now. */
  flushed(isDrained: boolean): void {
    this.#unflushedBytes = 0;
    this.turn += 1;
    if (isDrained) this.pump();
    else this.#isCongested = true;
  }

  drained(): void {
    this.#isCongested = false;
    this.pump();
  }

  /** Gives every waiting stream its turn, a quantum each, as long as something moves. */
  pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      let isMoving = true;
      while (isMoving) isMoving = this.#round();
    } finally {
      this.#isPumping = false;
    }
  }

  /** Whoever had its turn goes to the end: a window that opens bit by bit is for all, not for the oldest. */
  #round(): boolean {
    let isMoving = false;
    const streams = [...this.#waiting];
    for (const stream of streams) {
      if (this.room === 0) return false;
      if (stream.pump()) isMoving = true;
      if (this.#waiting.delete(stream)) this.#waiting.add(stream);
    }
    return isMoving;
  }
}
