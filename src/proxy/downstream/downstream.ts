/** One client's HTTP/2 connection: joins its socket to an HTTP/2 session, and passes each request to the handler. */
import type { Clock } from "../../base/clock.ts";
import type { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import { journalFault } from "../../events/journal.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import type { FlushScheduler } from "../../h2/core/flush-scheduler.ts";
import type { ProtocolError } from "../../h2/core/protocol-error.ts";
import type { StreamListener } from "../../h2/core/stream-writer.ts";
import { Session, type SessionOwner } from "../../h2/session/session.ts";
import type { Stream } from "../../h2/session/stream.ts";
import type { Client } from "../../upstream/context/client.ts";
import type { Wire, WireOwner } from "../../upstream/net/wire.ts";
import type { RequestHandler } from "../request/handler.ts";

/**
 * Ms between the client's PING ACK and the second GOAWAY, as in Go's server. The proxy sends the PING after the first
 * GOAWAY. A client may acknowledge the PING before it has processed the first GOAWAY. Without this pause, the proxy
 * would refuse the next request of such a client.
 */
export const goAwayGraceMs = 1000;
/** Ms from the first GOAWAY to the second GOAWAY if the client does not answer the PING. */
const goAwayPongWaitMs = 3000;

export type DownstreamParts = {
  readonly clock: Clock;
  readonly turn: FlushScheduler;
  readonly journal: Journal;
  readonly handle: RequestHandler;
  readonly buffered: Buffered;
};

export class Downstream implements WireOwner, SessionOwner {
  readonly client: Client;
  readonly session: Session;
  readonly #parts: DownstreamParts;
  readonly #wire: Wire;
  idleSince: number;
  #drainingSince: number | undefined;

  /**
   * `connect` returns the `Wire` through which this object reads and writes the client's socket. This object is the
   * wire's owner: the wire calls its `receive`, `drained` and `closed`.
   */
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
      owner: this,
    });
    client.attach(this);
  }

  get isIdle(): boolean {
    return this.session.openCount === 0 && this.#drainingSince === undefined && !this.session.isOver;
  }

  opened(stream: Stream, request: RequestHead, end: boolean): StreamListener {
    return this.#parts.handle(request, end, stream, this.client);
  }

  refused(reason: string): void {
    this.#parts.journal.write({ kind: "request.refused", client: this.client.address, reason });
  }

  fault(error: unknown): void {
    journalFault(this.#parts.journal, error);
  }

  write(buffers: Buffer[], written: (() => void) | undefined): boolean {
    return this.#wire.write(buffers, written);
  }

  receive(chunk: Buffer): void {
    this.session.receive(chunk);
  }

  drained(): void {
    this.session.drained();
  }

  answered(): void {
    this.session.answered();
  }

  closed(_failure: Failure | undefined): void {
    this.client.disconnected();
    this.session.lose();
  }

  /** Drains the client in two GOAWAY steps. Requests that are open, or already on their way, are still served. */
  drain(): void {
    if (this.#drainingSince !== undefined || this.session.isOver) return;
    this.#drainingSince = this.#parts.clock.now();
    this.session.announceEnd();
    this.session.sendPing();
  }

  cut(): void {
    this.session.goAway();
    this.session.flush();
    this.#wire.end();
    this.session.lose();
  }

  /** Called about once a second. Checks the session's deadlines, and drains a session that has long been idle (A25). */
  check(): void {
    this.session.check();
    const now = this.#parts.clock.now();
    if (this.session.openCount > 0) this.idleSince = now;
    else if (now - this.idleSince > limits.idleSessionMs) this.drain();
    // The second GOAWAY is also sent if the client does not answer the PING in time.
    if (this.#drainingSince !== undefined && now - this.#drainingSince > goAwayPongWaitMs)
      this.session.goAway();
  }

  changed(): void {
    if (this.session.openCount === 0) this.idleSince = this.#parts.clock.now();
  }

  /**
   * Sends the second GOAWAY `goAwayGraceMs` after the client has answered the PING. If it were sent at once, it would
   * refuse requests that the client has queued, because nghttp2 answers the PING before it sends queued requests.
   */
  ponged(): void {
    if (this.#drainingSince === undefined) return;
    this.#parts.clock.after(goAwayGraceMs, () => this.session.goAway());
  }

  ended(error: ProtocolError | undefined): void {
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
