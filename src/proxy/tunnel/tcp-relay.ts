/**
 * Two sockets joined byte for byte: backpressure of one side slows the other, each half is closed on its own, and a
 * reset is forwarded as a reset. There is no idle timer, because a watch may be silent for hours (D7).
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { abort, closeAfterFlush } from "../../upstream/net/socket-end.ts";

export type TcpRelayParts = { readonly down: Socket; readonly up: Socket; readonly clock: Clock };

/** Why a relay ended. `ended`: the backend closed its half normally, and then the sockets closed. */
export const relayEnds = [
  "ended",
  "client_left",
  "backend_lost",
  "backend_dead",
  "backend_removed",
  "connection_stuck",
  "draining",
] as const;
export type RelayEnd = (typeof relayEnds)[number];

export class TcpRelay {
  readonly #down: Socket;
  readonly #up: Socket;
  readonly #clock: Clock;
  readonly #onEnd: (reason: RelayEnd) => void;
  #isOver = false;

  /** Both sockets must be open, with allowHalfOpen and a listener for "error". `onEnd` is called once. */
  constructor({ down, up, clock }: TcpRelayParts, onEnd: (reason: RelayEnd) => void) {
    this.#down = down;
    this.#up = up;
    this.#clock = clock;
    this.#onEnd = onEnd;
    down.on("close", () => this.#closed(down, up, "client_left"));
    up.on("close", () => this.#closed(up, down, "backend_lost"));
    up.pipe(down);
    down.pipe(up);
  }

  get bytes(): { readonly sent: number; readonly received: number } {
    return { sent: this.#up.bytesRead, received: this.#down.bytesRead };
  }

  /**
   * Resets both sockets. The proxy cannot send the close_notify of TLS, and after a plain FIN a truncated response
   * could look complete. After a reset, client-go treats its watch as ended and reconnects at once (apimachinery
   * net.IsProbableEOF).
   */
  cut(reason: RelayEnd): void {
    if (this.#isOver) return;
    abort(this.#up);
    abort(this.#down);
    this.#end(reason);
  }

  /**
   * Ends the relay when a socket has closed. If both halves of that socket ended normally, the other socket closes by
   * itself.
   */
  #closed(gone: Socket, other: Socket, reason: RelayEnd): void {
    if (this.#isOver) return;
    if (other.closed) this.#end("ended");
    else if (gone.readableEnded && gone.writableFinished) return;
    // The proxy has received everything that the backend sent, so a client that reads slowly gets time to read it.
    else if (gone === this.#up && gone.readableEnded) closeAfterFlush(other, this.#clock);
    else this.cut(reason);
  }

  #end(reason: RelayEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onEnd(reason);
  }
}
