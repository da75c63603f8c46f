/**
 * Two sockets joined octet for octet: backpressure of one side slows the other, each half is closed on its own, and a
 * reset is forwarded as a reset. No idle timer (D7): a watch may be silent for hours.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { abort, closeAfterFlush } from "../net/socket-end.ts";

export type TcpRelayParts = { readonly down: Socket; readonly up: Socket; readonly clock: Clock };

export type TcpRelayOwner = {
  /** Over; called once. */
  ended(reason: string): void;
};

export class TcpRelay {
  readonly #down: Socket;
  readonly #up: Socket;
  readonly #clock: Clock;
  readonly #owner: TcpRelayOwner;
  #isOver = false;

  /** Both sockets are open, with allowHalfOpen and a listener for "error". */
  constructor({ down, up, clock }: TcpRelayParts, owner: TcpRelayOwner) {
    this.#down = down;
    this.#up = up;
    this.#clock = clock;
    this.#owner = owner;
    down.on("close", () => this.#closed(down, up, "client left"));
    up.on("close", () => this.#closed(up, down, "backend lost"));
    up.pipe(down);
    down.pipe(up);
  }

  /** Octets sent to the client, and received from it. */
  get bytes(): { readonly sent: number; readonly received: number } {
    return { sent: this.#up.bytesRead, received: this.#down.bytesRead };
  }

  /**
   * Resets both sockets: the proxy cannot send TLS' own end, and a plain FIN might be taken for the end of a response.
   * client-go takes a reset for the end of its watch and reconnects at once (apimachinery net.IsProbableEOF).
   */
  cut(reason: string): void {
    if (this.#isOver) return;
    abort(this.#up);
    abort(this.#down);
    this.#end(reason);
  }

  /** One socket is gone. If both halves had ended in order, the other one closes by itself. */
  #closed(gone: Socket, other: Socket, reason: string): void {
    if (this.#isOver) return;
    if (other.closed) this.#end("ended");
    else if (gone.readableEnded && gone.writableFinished) return;
    // Everything from the backend has arrived: a client that reads slowly gets the time it needs.
    else if (gone === this.#up && gone.readableEnded) closeAfterFlush(other, this.#clock);
    else this.cut(reason);
  }

  #end(reason: string): void {
    this.#isOver = true;
    this.#owner.ended(reason);
  }
}
