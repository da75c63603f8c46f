/**
 * The state that a session's streams share for sending: the session's send window, the socket's backlog, and the order
 * in which the streams send.
 */

import { limits } from "../../base/limits.ts";
import type { Buffered } from "../core/buffered.ts";
import { defaultWindow, widened } from "./window.ts";

export type WaitingStream = {
  /**
   * Sends at most one quantum (64 KiB), and no more than the flow-control windows allow. Returns true if the stream can
   * send more immediately.
   */
  pump(): boolean;
};

export class Outflow {
  readonly #buffered: Buffered;
  /** Undefined until a stream waits for the first time, because in most idle sessions none ever has. */
  #waiting: Set<WaitingStream> | undefined;
  #window = defaultWindow;
  #queuedBytes = 0;
  #unflushedBytes = 0;
  #isCongested = false;
  #isGathering = false;
  turn = 0;
  #isPumping = false;

  constructor(buffered: Buffered) {
    this.#buffered = buffered;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Number of DATA bytes that the session's send window and the socket allow now. */
  get room(): number {
    if (this.#isCongested || this.#unflushedBytes >= limits.socketBacklogBytes) return 0;
    return Math.max(0, this.#window);
  }

  widen(increment: number): void {
    this.#window = widened(this.#window, increment, "session");
    this.pump();
  }

  spend(count: number): void {
    this.#window -= count;
    this.#unflushedBytes += count;
  }

  wait(stream: WaitingStream, isWaiting: boolean): void {
    if (isWaiting) (this.#waiting ??= new Set()).add(stream);
    else this.#waiting?.delete(stream);
  }

  queued(count: number): void {
    this.#queuedBytes += count;
    this.#buffered.add(count);
  }

  /**
   * Called by a stream that collects tiny pieces of DATA. They are sent at the end of this turn of the event loop, as
   * one frame.
   */
  gather(): void {
    this.#isGathering = true;
  }

  /**
   * Called at the end of a turn of the event loop. Sends the DATA that streams have collected, as far as the windows
   * allow.
   */
  gathered(): void {
    if (!this.#isGathering) return;
    this.#isGathering = false;
    this.pump();
  }

  /**
   * Called after the turn's output was written. `isDrained`: the result of the socket's write(). If it is false, DATA
   * waits until the socket has drained.
   */
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

  /**
   * Lets each waiting stream send one quantum in turn, so that streams share a small window fairly. Returns true if a
   * stream can send more immediately.
   */
  #round(): boolean {
    let isMoving = false;
    const waiting = this.#waiting;
    if (waiting === undefined) return false;
    const streams = [...waiting];
    for (const stream of streams) {
      if (this.room === 0) return false;
      if (stream.pump()) isMoving = true;
      if (waiting.delete(stream)) waiting.add(stream);
    }
    return isMoving;
  }
}
