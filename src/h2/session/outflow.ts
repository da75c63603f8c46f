/**
 * What a session's streams share when sending: the session's window, the socket's backlog, and the round of waiting
 * streams. Nothing here depends on the content of the bytes.
 */

import { limits } from "../../base/limits.ts";
import type { Buffered } from "../core/buffered.ts";
import { defaultWindow, widened } from "./window.ts";

/** A stream in the round of waiting streams. */
export type Waiting = {
  /** Sends what the windows allow, at most one quantum. Returns true if more can be sent immediately. */
  pump(): boolean;
};

export class Outflow {
  readonly #buffered: Buffered;
  readonly #waiting = new Set<Waiting>();
  #window = defaultWindow;
  #queuedBytes = 0;
  /** DATA written since the last flush. Beyond the backlog limit the rest waits until the socket drains. */
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

  /** Bytes that the session's window and the socket allow now. */
  get room(): number {
    if (this.#isCongested || this.#unflushedBytes >= limits.socketBacklogBytes) return 0;
    return Math.max(0, this.#window);
  }

  /** The peer accepts `increment` more bytes (WINDOW_UPDATE on stream 0). */
  widen(increment: number): void {
    this.#window = widened(this.#window, increment, "session");
    this.pump();
  }

  spend(count: number): void {
    this.#window -= count;
    this.#unflushedBytes += count;
  }

  wait(stream: Waiting, isWaiting: boolean): void {
    if (isWaiting) this.#waiting.add(stream);
    else this.#waiting.delete(stream);
  }

  queued(count: number): void {
    this.#queuedBytes += count;
    this.#buffered.add(count);
  }

  /** A stream keeps tiny DATA until the end of the turn, so that it leaves in one frame. */
  gather(): void {
    this.#isGathering = true;
  }

  /** At the end of the turn, writes the gathered DATA as far as the windows allow. */
  gathered(): void {
    if (!this.#isGathering) return;
    this.#isGathering = false;
    this.pump();
  }

  /**
   * The turn's buffers went to the socket; `isDrained` is what its write returned. Either way they are now its backlog.
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

  /** Gives every waiting stream one quantum in turn, as long as bytes are sent. */
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
   * A stream that had its turn moves to the end: a window that opens in small steps serves all streams, not only the
   * oldest.
   */
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
