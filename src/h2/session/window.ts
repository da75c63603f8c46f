/**
 * Flow-control arithmetic (RFC 9113 §6.9). A send window is the number of bytes that the peer accepts. It becomes
 * negative if the peer lowers INITIAL_WINDOW_SIZE while data is on its way: if 65535 of 65535 bytes were sent, a
 * setting of 16384 leaves 16384 - 65535 = -49151. Nothing may be sent until WINDOW_UPDATEs raise the window above zero.
 */
import { errorCode, ProtocolError } from "../core/protocol-error.ts";

export const defaultWindow = 65_535;
export const largestWindow = 0x7fff_ffff;

/** Returns the send window after a WINDOW_UPDATE. Above 2^31 - 1, throws FLOW_CONTROL_ERROR for `scope` (A20). */
export function widened(window: number, increment: number, scope: "stream" | "session"): number {
  const wider = window + increment;
  if (wider > largestWindow)
    throw new ProtocolError(errorCode.FLOW_CONTROL_ERROR, scope, "Window beyond 2^31 - 1");
  return wider;
}

/**
 * A receive window: the number of bytes that the peer may send. Credit for received bytes accumulates when they are
 * forwarded, and is returned when it amounts to a quarter of the window, so that there are few WINDOW_UPDATE frames.
 */
export class ReceiveWindow {
  #open: number;
  /** Size of the window in bytes when credit for all received bytes has been returned. */
  #size: number;
  #saved = 0;
  /** Number of bytes of flow-control credit that must still be withheld to make the window smaller. */
  #excess = 0;

  constructor(size: number) {
    this.#open = size;
    this.#size = size;
  }

  get size(): number {
    return this.#size;
  }

  get open(): number {
    return this.#open;
  }

  /** Number of received bytes that were not forwarded yet. The proxy buffers these bytes. */
  get held(): number {
    return this.#size - this.#open - this.#saved;
  }

  /** Counts received bytes. Returns false if the peer has sent more than the window allowed. */
  use(count: number): boolean {
    this.#open -= count;
    return this.#open >= 0;
  }

  /**
   * Called after `count` bytes were forwarded. Returns the increment to announce now; 0: the accumulated credit is
   * still too small.
   */
  grant(count: number): number {
    const kept = Math.min(count, this.#excess);
    this.#excess -= kept;
    this.#size -= kept;
    this.#saved += count - kept;
    if (this.#saved * 4 < this.#size) return 0;
    return this.#announce();
  }

  /** Makes the window larger at once. Returns the increment to announce. */
  grow(size: number): number {
    this.#saved += size - this.#size;
    this.#size = size;
    this.#excess = 0;
    return this.#announce();
  }

  /** Makes the window smaller by withholding credit. There is no other way to reduce an announced window. */
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
