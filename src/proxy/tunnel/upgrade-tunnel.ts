/**
 * One Upgrade between two sockets. Bytes pass both ways only after a 101 to a requested protocol, and then each half is
 * closed on its own. Any other response is forwarded as the last one on the client's socket, and no byte that the
 * client sent after its request's head reaches the backend (A35, CVE-2018-1002105). A redirect is forwarded like any
 * other response; the proxy never follows it (A36, CVE-2020-8559).
 */
import type { Socket } from "node:net";
import { Failure, wordsOf } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { abort } from "../../upstream/net/socket-end.ts";
import { type BodyEnd, type BodyFault, bodyEnd } from "../h1/h1-body.ts";
import { type AnswerHead, readAnswer, writeLastAnswer } from "../h1/h1-head.ts";
import { Messages } from "../h1/messages.ts";
import { unknownOutcome } from "../request/local-reply.ts";

export type TunnelParts = {
  readonly down: Socket;
  readonly up: Socket;
  readonly head: Buffer;
  /** The protocols in the `Upgrade` field, as the client wrote them. */
  readonly upgrades: readonly string[];
  /** Bytes that the client sent after the request's head. The tunnel keeps them until the backend answers with 101. */
  readonly early: Buffer;
  /** True if the request is a watch. Each websocket message from the backend is then one event. */
  readonly isWatch: boolean;
};

export type TunnelOwner = {
  /** Called when the backend has switched protocols: from now on this is a tunnel. */
  opened(): void;
  /** Called if the backend sent no usable response. Nothing has been written to the client. */
  failed(failure: Failure): void;
  /** Called when an internal fault has ended this tunnel. */
  contained(message: string): void;
  /** Called when the tunnel is over: the client's socket is ending, and the backend's is destroyed. */
  ended(reason: TunnelEnd): void;
};

/**
 * Why a tunnel ended, or why the forwarding of another response than 101 ended. `ended`: the backend closed its half
 * normally, and then a socket closed.
 */
export type TunnelEnd =
  | "ended"
  | "client_left"
  | "backend_lost"
  | "backend_dead"
  | "connection_stuck"
  | "draining"
  | "memory_short"
  | "internal_error"
  | "refused_by_backend"
  | "response_truncated"
  | BodyFault;

const nothing: Buffer = Buffer.alloc(0);

type State = "asking" | "answering" | "open" | "over";

export class Tunnel {
  readonly #down: Socket;
  readonly #up: Socket;
  readonly #isWatch: boolean;
  readonly #owner: TunnelOwner;
  #state: State = "asking";
  /** The protocols that the client requested. Emptied when the tunnel opens. */
  #upgrades: readonly string[];
  #early: Buffer;
  /** The received part of the response's head, while it is incomplete. */
  #received: Buffer = nothing;
  #interimHeads = 0;
  #body: BodyEnd | undefined;
  #messages: Messages | undefined;
  readonly #receive = (chunk: Buffer): void => this.#contain(() => this.#take(chunk));

  constructor(parts: TunnelParts, owner: TunnelOwner) {
    const { down, up, upgrades, early, isWatch } = parts;
    this.#upgrades = upgrades;
    // Copies the bytes, because a slice would keep the whole chunk, up to 64 KiB, in memory.
    this.#early = Buffer.from(early);
    this.#isWatch = isWatch;
    this.#owner = owner;
    this.#down = down;
    this.#up = up;
    for (const socket of [down, up]) {
      socket.on("error", () => {});
      socket.allowHalfOpen = true;
      socket.setNoDelay(true);
    }
    down.on("close", () => this.#contain(() => this.#downClosed()));
    down.on("end", () => this.#contain(() => this.#downEnded()));
    down.on("drain", () => up.resume());
    up.on("data", this.#receive);
    up.on("end", () => this.#contain(() => this.#upEnded()));
    up.on("close", () => this.#contain(() => this.#upClosed()));
    up.write(parts.head);
  }

  /**
   * Number of events that were sent so far, if the tunnel is a watch over a websocket; undefined for any other tunnel.
   */
  get events(): number | undefined {
    return this.#messages?.count;
  }

  /**
   * Ends the tunnel, because the backend is dead or the proxy stops. An open tunnel ends with a FIN, so that the client
   * notices at once.
   */
  cut(reason: TunnelEnd): void {
    if (this.#state === "asking")
      this.#fail(unknownOutcome("backend", `Upgrade was not answered: ${reason}`));
    else if (this.#state === "answering") this.#breakOff(reason);
    else this.#finish(reason);
  }

  /**
   * Ends the tunnel, because memory is short. If the Upgrade is not answered yet, both sockets are reset without a
   * response, because the backend may already have begun to process the request.
   */
  shed(): void {
    if (this.#state === "open") this.#finish("memory_short");
    else if (this.#state !== "over") this.#breakOff("memory_short");
  }

  #contain(run: () => void): void {
    try {
      run();
    } catch (reason) {
      this.#owner.contained(wordsOf(reason));
      if (this.#state !== "over") this.#breakOff("internal_error");
    }
  }

  #take(chunk: Buffer): void {
    if (this.#state === "answering") return this.#pass(chunk);
    if (this.#state !== "asking") return;
    this.#received = Buffer.concat([this.#received, chunk]);
    this.#readHeads();
  }

  /** Reads all complete response heads among the received bytes. Several interim heads may precede the final head. */
  #readHeads(): void {
    const head = readAnswer(this.#received);
    if (head === undefined) return;
    const before = this.#interimHeads;
    const fault = typeof head === "string" ? head : this.#takeHead(head);
    if (fault !== undefined)
      this.#fail(new Failure("backend-protocol", "backend", `Response to an Upgrade is malformed: ${fault}`));
    else if (this.#interimHeads > before) this.#readHeads();
  }

  /** Processes one response head. Returns a description of what is wrong with the head; undefined: nothing. */
  #takeHead(head: AnswerHead): string | undefined {
    const bytes = this.#received.subarray(0, head.length);
    this.#received = this.#received.subarray(head.length);
    if (head.status === 101) return this.#open(head, bytes);
    if (head.status >= 200) {
      this.#state = "answering";
      this.#body = bodyEnd(head.framing);
      this.#down.write(writeLastAnswer(head));
      this.#pass(this.#received);
      return undefined;
    }
    this.#interimHeads += 1;
    if (this.#interimHeads > limits.interimHeads) return "too many interim heads";
    this.#down.write(bytes);
    return undefined;
  }

  #open(head: AnswerHead, bytes: Buffer): string | undefined {
    const requested = this.#upgrades.map((name) => name.toLowerCase());
    if (!head.upgrades.some((name) => requested.includes(name)))
      return "101 to a protocol that was not asked for";
    const [backend, client, received, early] = [this.#up, this.#down, this.#received, this.#early];
    this.#state = "open";
    this.#upgrades = [];
    this.#received = this.#early = nothing;
    backend.off("data", this.#receive);
    // Forwards the 101 byte for byte, because old clients may depend on its exact spelling. That is safe, because the
    // 101 was parsed strictly.
    client.write(bytes);
    if (received.length > 0) client.write(received);
    if (this.#isWatch && head.upgrades.includes("websocket")) this.#count(backend, received);
    if (early.length > 0) backend.write(early);
    backend.pipe(client);
    client.pipe(backend);
    this.#owner.opened();
    return undefined;
  }

  /** Counts the events of a watch in a tunnel. Such a watch never moves to another backend. */
  #count(backend: Socket, received: Buffer): void {
    const messages = new Messages();
    messages.feed(received, 0, received.length);
    backend.on("data", (chunk: Buffer) => messages.feed(chunk, 0, chunk.length));
    this.#messages = messages;
  }

  /** Forwards the body of a response other than 101, but no bytes that follow the body. */
  #pass(chunk: Buffer): void {
    const taken = this.#body?.take(chunk) ?? 0;
    if (typeof taken === "string") return this.#breakOff(taken);
    if (taken > 0 && !this.#down.write(chunk.subarray(0, taken))) this.#up.pause();
    if (this.#body?.isWhole === true) this.#finish("refused_by_backend");
  }

  #downEnded(): void {
    if (this.#state === "asking" || this.#state === "answering") this.#breakOff("client_left");
  }

  #downClosed(): void {
    if (this.#state !== "over") this.#breakOff(this.#up.readableEnded ? "ended" : "client_left");
  }

  #upEnded(): void {
    if (this.#state === "asking")
      this.#fail(unknownOutcome("backend", "Backend ended before it answered an Upgrade"));
    else if (this.#state === "answering") this.#endAnswer();
  }

  #endAnswer(): void {
    // A body without a length is complete when the backend closes the connection normally, not by a reset (RFC 9112
    // §6.3).
    if (this.#body?.isWhole === undefined) this.#finish("refused_by_backend");
    else this.#breakOff("response_truncated");
  }

  #upClosed(): void {
    if (this.#state === "asking")
      this.#fail(unknownOutcome("backend", "Backend was lost before it answered an Upgrade"));
    else if (this.#state === "open" && this.#up.readableEnded) this.#finish("ended");
    else if (this.#state !== "over") this.#breakOff("backend_lost");
  }

  #fail(failure: Failure): void {
    this.#state = "over";
    this.#up.destroy();
    this.#owner.failed(failure);
  }

  /** Ends the tunnel normally: the client still gets all bytes that were written to its socket. */
  #finish(reason: TunnelEnd): void {
    this.#state = "over";
    this.#up.unpipe(this.#down);
    this.#down.unpipe(this.#up);
    this.#up.destroy();
    this.#down.end();
    this.#owner.ended(reason);
  }

  /** Resets both sockets, so that an incomplete response cannot look complete. */
  #breakOff(reason: TunnelEnd): void {
    this.#state = "over";
    abort(this.#up);
    abort(this.#down);
    this.#owner.ended(reason);
  }
}
