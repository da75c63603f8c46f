/**
 * DATA of a backend for streams that are over. What we reset may have been under way, as much as its window let through;
 * whoever sends more has no end of it (A60).
 */
import { limits } from "../../base/limits.ts";
import { errorCode, ProtocolError } from "../core/protocol-error.ts";

export class StrayBytes {
  #left = 0;

  /** A stream was reset whose window let through so much more. */
  forgive(openBytes: number): void {
    this.#left = Math.min(limits.strayBytes, this.#left + Math.max(0, openBytes));
  }

  /** So much came for a stream that is over. Throws STREAM_CLOSED for the session when none was under way. */
  take(count: number): void {
    this.#left -= count;
    if (this.#left < 0)
      throw new ProtocolError(errorCode.STREAM_CLOSED, "session", "DATA on a closed stream");
  }
}
