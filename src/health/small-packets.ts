/**
 * Shows whether small packets pass between the proxy and a backend that does not answer TLS handshakes. The proxy keeps
 * the socket of the last answered probe open. Only the apiserver process can answer a request on this socket. An answer
 * means that the path loses large packets (path MTU); no answer means that the process hangs.
 */
import type { Clock } from "../base/clock.ts";

/** The socket of an answered probe. */
export type KeptSocket = {
  /** Sends a request that fits in a small packet, as does its response. Calls `answered` when the response arrives. */
  readonly ask: (answered: () => void) => void;
  readonly close: () => void;
};

export class SmallPackets {
  readonly #clock: Pick<Clock, "now">;
  readonly #onPassed: (sentAt: number) => void;
  #socket: KeptSocket | undefined;
  #state: "idle" | "asking" | "ask-again" = "idle";

  /**
   * `onPassed` is called for each request that was answered, with the clock reading (ms) at which the request was sent.
   */
  constructor(clock: Pick<Clock, "now">, onPassed: (sentAt: number) => void) {
    this.#clock = clock;
    this.#onPassed = onPassed;
  }

  /**
   * Keeps `socket` in place of the earlier one. Precondition: large packets have passed on `socket`, and all data sent
   * on it is acknowledged.
   */
  keep(socket: KeptSocket): void {
    this.close();
    this.#socket = socket;
  }

  /** Sends a request. If an earlier request is still unanswered, waits until that one is answered. */
  ask(): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    if (this.#state !== "idle") {
      this.#state = "ask-again";
      return;
    }
    const sentAt = this.#clock.now();
    this.#state = "asking";
    socket.ask(() => {
      if (this.#socket === socket) this.#answered(sentAt);
    });
  }

  #answered(sentAt: number): void {
    const isAgain = this.#state === "ask-again";
    this.#state = "idle";
    this.#onPassed(sentAt);
    if (isAgain) this.ask();
  }

  close(): void {
    this.#socket?.close();
    this.#socket = undefined;
    this.#state = "idle";
  }
}
