/**
 * Flow-control arithmetic (RFC 9113 §6.9). A send window is what the peer accepts. It becomes negative if the peer
 * lowers INITIAL_WINDOW_SIZE while data is in flight: with 65535 of 65535 sent, a setting of 16384 leaves 16384 - 65535
 * = -49151, and nothing may be sent until updates raise it above zero.
 */
import { errorCode, ProtocolError } from "../core/protocol-error.ts";

export const defaultWindow = 65_535;
export const largestWindow = 0x7fff_ffff;

/** Returns a send window after an update. Throws FLOW_CONTROL_ERROR of this scope above 2^31 - 1 (A20). */
export function widened(window: number, increment: number, scope: "stream" | "session"): number {
  const wider = window + increment;
  if (wider > largestWindow)
    throw new ProtocolError(errorCode.FLOW_CONTROL_ERROR, scope, "Window beyond 2^31 - 1");
  return wider;
}

/**
 * A receive window: how many bytes the peer may send. Credit for received bytes is returned when they have been
 * forwarded, and announced in quarters of the window, so that WINDOW_UPDATE frames are few.
 */
export class ReceiveWindow {
  #open: number;
  /** Bytes of the window when flow-control credit for all received bytes has been returned. */
  #size: number;
  #saved = 0;
  /** Credit in bytes that is still to be withheld, to make the window smaller. */
  #excess = 0;

  constructor(size: number) {
    this.#open = size;
    this.#size = size;
  }

  get size(): number {
    return this.#size;
  }

  /** Bytes that the peer may still send. */
  get open(): number {
    return this.#open;
  }

  /** Received bytes whose flow-control credit was not returned yet: the proxy holds them. */
  get held(): number {
    return this.#size - this.#open - this.#saved;
  }

  /** Uses the window for `count` received bytes. Returns false if the peer has sent more than the window allowed. */
  use(count: number): boolean {
    this.#open -= count;
    return this.#open >= 0;
  }

  /** Returns credit for `count` bytes. The result is the increment to announce now; 0 while credit is collected. */
  grant(count: number): number {
    const kept = Math.min(count, this.#excess);
    this.#excess -= kept;
    this.#size -= kept;
    this.#saved += count - kept;
    if (this.#saved * 4 < this.#size) return 0;
    return this.#announce();
  }

  /** Makes the window larger at once and returns the increment to announce. */
  grow(size: number): number {
    this.#saved += size - this.#size;
    this.#size = size;
    this.#excess = 0;
    return this.#announce();
  }

  /** Makes the window smaller by withholding credit, because a window that was announced cannot be taken back. */
  shrink(size: number): void {
    this.#excess = Math.max(0, this.#size - size);
  }

  #announce(): number {
    const increment = this.#saved;
    this.#open += increment;
    this.#saved = 0;
    return increment;
  }
}
