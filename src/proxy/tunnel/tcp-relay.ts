/**
 * Two sockets joined, octet for octet: whoever reads slowly is felt by the other side, each half is closed on its own,
 * and a reset is passed on as a reset. No idle timer (D7): a watch may be silent for hours.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { abort } from "../net/abort.ts";
import { closeAfterFlush } from "../net/close-after-flush.ts";

export type TcpRelayParts = { readonly down: Socket; readonly up: Socket; readonly clock: Clock };

export type TcpRelayOwner = {
  /** Over, told once. */
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

  /** Octets that went to the client, and that came from it. */
  get bytes(): { readonly sent: number; readonly received: number } {
    return { sent: this.#up.bytesRead, received: this.#down.bytesRead };
  }

  /**
   * Both attempts break off: TLS' own end is not ours to say, and a plain FIN might pass for the end of an answer. client-go
   * takes a reset for the end of its watch and asks again at once (apimachinery net.IsProbableEOF).
   */
  cut(reason: string): void {
    if (this.#isOver) return;
    abort(this.#up);
    abort(this.#down);
    this.#end(reason);
  }

  /** One socket is gone. In order, when both had said that they end: then the other goes by itself. */
  #closed(gone: Socket, other: Socket, reason: string): void {
    if (this.#isOver) return;
    if (other.closed) this.#end("ended");
    else if (gone.readableEnded && gone.writableFinished) return;
    // All that the backend had to say has come: a client that reads slowly is waited for.
    else if (gone === this.#up && gone.readableEnded) closeAfterFlush(other, this.#clock);
    else this.cut(reason);
  }

  #end(reason: string): void {
    this.#isOver = true;
    this.#owner.ended(reason);
  }
}
