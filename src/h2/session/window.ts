/**
 * Flow-control arithmetic (RFC 9113 §6.9). A send window is what the peer believes that it can take; it goes below
 * zero when the peer shrinks INITIAL_WINDOW_SIZE under data in flight: 65535 sent of 65535, then a setting of 16384
 * leaves 16384 - 65535 = -49151, and nothing may go until updates lift it above zero.
 */
import { errorCode, ProtocolError } from "../core/protocol-error.ts";

export const defaultWindow = 65_535;
export const largestWindow = 0x7fff_ffff;

/** What is left of a send window after an update. Throws FLOW_CONTROL_ERROR of that scope past 2^31 - 1 (A20). */
export function widened(window: number, increment: number, scope: "stream" | "session"): number {
  const wider = window + increment;
  if (wider > largestWindow)
    throw new ProtocolError(errorCode.FLOW_CONTROL_ERROR, scope, "Window beyond 2^31 - 1");
  return wider;
}

/**
 * What we let a peer send us. Octets count as used when they arrive and are granted back when they have gone on;
 * grants are saved up and announced in quarters of the window, so that updates are few.
 */
export class ReceiveWindow {
  #open: number;
  /** What we want `open` to return to. */
  #size: number;
  #saved = 0;
  /** How much of what is granted back is kept instead, to make the window smaller. */
  #excess = 0;

  constructor(size: number) {
    this.#open = size;
    this.#size = size;
  }

  get size(): number {
    return this.#size;
  }

  /** What the peer may still send. */
  get open(): number {
    return this.#open;
  }

  /** Octets that arrived and have not been granted back: what this peer has in our hands. */
  get held(): number {
    return this.#size - this.#open - this.#saved;
  }

  /** False when the peer sent more than it was allowed. */
  use(count: number): boolean {
    this.#open -= count;
    return this.#open >= 0;
  }

  /** Returns the increment to announce now, or 0 to save it up. */
  grant(count: number): number {
    const kept = Math.min(count, this.#excess);
    this.#excess -= kept;
    this.#size -= kept;
    this.#saved += count - kept;
    if (this.#saved * 4 < this.#size) return 0;
    return this.#announce();
  }

  /** Makes the window larger; returns the increment to announce. */
  grow(size: number): number {
    this.#saved += size - this.#size;
    this.#size = size;
    this.#excess = 0;
    return this.#announce();
  }

  /** Makes it smaller as octets are granted back: what the peer was promised cannot be taken from it. */
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
