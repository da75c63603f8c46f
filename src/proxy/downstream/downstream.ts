/** One client's HTTP/2 session: joins its wire and its frames, and gives each request to `serve`. */
import type { Clock } from "../../base/clock.ts";
import type { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { faulted } from "../../events/internal-error.ts";
import type { Journal } from "../../events/journal.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import type { FlushScheduler } from "../../h2/core/flush-scheduler.ts";
import type { ProtocolError } from "../../h2/core/protocol-error.ts";
import { Session } from "../../h2/session/session.ts";
import type { Client } from "../context/client.ts";
import type { Wire, WireOwner } from "../net/wire.ts";
import type { RequestHandler } from "../request/handler.ts";

export type DownstreamParts = {
  readonly clock: Clock;
  readonly turn: FlushScheduler;
  readonly journal: Journal;
  readonly handle: RequestHandler;
  readonly buffered: Buffered;
};

export class Downstream implements WireOwner {
  readonly client: Client;
  readonly session: Session;
  readonly #parts: DownstreamParts;
  readonly #wire: Wire;
  idleSince: number;
  #drainingSince: number | undefined;

  /** `connect` gives the wire, whose owner is this. */
  constructor(client: Client, parts: DownstreamParts, connect: (owner: WireOwner) => Wire) {
    this.client = client;
    this.#parts = parts;
    this.idleSince = parts.clock.now();
    this.#wire = connect(this);
    this.session = new Session({
      role: "server",
      clock: parts.clock,
      turn: parts.turn,
      buffered: parts.buffered,
      owner: {
        opened: (stream, request, end) => parts.handle(request, end, stream, client),
        write: (buffers, written) => this.#wire.write(buffers, written),
        changed: () => this.#changed(),
        ponged: () => this.#ponged(),
        fault: (error) => faulted(parts.journal, error),
        ended: (error) => this.#ended(error),
      },
    });
    client.answered = () => this.session.answered();
  }

  /** Has it nothing open, and was not sent away yet? */
  get isIdle(): boolean {
    return this.session.openCount === 0 && this.#drainingSince === undefined && !this.session.isOver;
  }

  receive(chunk: Buffer): void {
    this.session.receive(chunk);
  }

  drained(): void {
    this.session.drained();
  }

  closed(_failure: Failure | undefined): void {
    this.client.connection.isOpen = false;
    this.session.lose();
  }

  /** Sends the client away in two steps: it may finish what it has, and what is under way is still served. */
  drain(): void {
    if (this.#drainingSince !== undefined || this.session.isOver) return;
    this.#drainingSince = this.#parts.clock.now();
    this.session.announceEnd();
    this.session.sendPing();
  }

  /** Ends it whatever is open. */
  cut(): void {
    this.session.goAway();
    this.session.flush();
    this.#wire.end();
    this.session.lose();
  }

  /** About once a second: the wire's deadlines, and the end of a session that has been idle for long (A25). */
  check(): void {
    this.session.check();
    const now = this.#parts.clock.now();
    if (this.session.openCount > 0) this.idleSince = now;
    else if (now - this.idleSince > limits.idleSessionMs) this.drain();
    // A client that does not answer the PING of the first step gets the second one all the same.
    if (this.#drainingSince !== undefined && now - this.#drainingSince > limits.goAwayPongMs)
      this.session.goAway();
  }

  #changed(): void {
    if (this.session.openCount === 0) this.idleSince = this.#parts.clock.now();
  }

  /**
   * The client has read the first GOAWAY, but what it was about to ask may still follow: nghttp2 sends PONG before all
   * that waits, and Node what was asked before it was connected. It would be refused, so there is a moment for it.
   */
  #ponged(): void {
    if (this.#drainingSince === undefined) return;
    this.#parts.clock.after(limits.goAwayGraceMs, () => this.session.goAway());
  }

  #ended(error: ProtocolError | undefined): void {
    if (error !== undefined) {
      const { address } = this.client;
      this.#parts.journal.write({
        kind: "downstream_connection.refused",
        client: address,
        reason: error.message,
      });
    }
    this.session.flush();
    this.#wire.end();
  }
}
