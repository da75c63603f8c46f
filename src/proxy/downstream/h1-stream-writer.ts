/**
 * One HTTP/1.1 request and its answer, with the face of an h2 stream: the rest of the path cannot tell them apart.
 * node:http frames what is written here (length, chunks, or until the end for HTTP/1.0); this file decides when.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Field } from "../../h2/core/field.ts";
import { role } from "../../h2/core/field.ts";
import { errorCode } from "../../h2/core/protocol-error.ts";
import type { StreamListener, StreamWriter } from "../../h2/core/stream-writer.ts";
import { readTrailers } from "../h1/h1-request.ts";
import { sendLocalReply } from "../request/local-reply.ts";

/** The answer's life: nothing final yet, its body, all of it given to node, or torn down. */
type State = "waiting" | "answering" | "ended" | "gone";

/** What the side may do to its socket. */
export type H1End = {
  /** Ends it so that nobody can take what was sent for the whole. */
  destroy(): void;
  /** Answers 400 if nothing was answered yet, and ends it. */
  refuse(message: string): void;
  /** Runs what may fail by our fault, at this client's cost only. */
  contain(run: () => void): void;
};

const nothing = Buffer.alloc(0);

const phrases = new Map([
  [102, "Processing"],
  [103, "Early Hints"],
]);

export class Http1StreamWriter implements StreamWriter {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #socket: H1End;
  #owner: StreamListener | undefined;
  #state: State = "waiting";
  /** Octets of the request's body that the owner has and has not granted yet. */
  #held = 0;
  #isReceived = false;

  constructor(request: IncomingMessage, response: ServerResponse, socket: H1End) {
    this.#request = request;
    this.#response = response;
    this.#socket = socket;
    // The apiserver's own Date travels; node's would be a second opinion.
    response.sendDate = false;
  }

  /** What the request's body and its end are told to. `hasBody` false: the head was all. */
  attach(owner: StreamListener, hasBody: boolean): void {
    if (this.#state === "gone") return;
    this.#owner = owner;
    this.#isReceived = !hasBody;
    if (!hasBody) {
      this.#request.resume();
      return;
    }
    this.#request.on("data", (chunk: Buffer) => this.#socket.contain(() => this.#receive(chunk)));
    this.#request.on("end", () => this.#socket.contain(() => this.#receiveEnd()));
  }

  /** The socket is gone, or about to be. */
  lose(): void {
    const isOver = this.#isReceived && this.#response.writableFinished;
    if (this.#state === "gone" || isOver) return;
    this.#state = "gone";
    this.#owner?.reset(errorCode.CANCEL);
  }

  /** Whether the answer's head is on its way, so that no other answer can be given any more. */
  get isAnswered(): boolean {
    return this.#state !== "waiting";
  }

  /** Whether node has the whole answer. */
  get isEnded(): boolean {
    return this.#state === "ended";
  }

  /** Whether the whole request was read. */
  get isReceived(): boolean {
    return this.#isReceived;
  }

  sendHeaders(fields: readonly Field[], end: boolean): void {
    if (this.#state === "answering") return this.#sendTrailers(fields);
    if (this.#state !== "waiting") return;
    const status = Number(fields.find((field) => field.role === role.status)?.value);
    if (status < 200) return this.#sendInterim(status, fields);
    this.#state = "answering";
    this.#response.writeHead(status, this.#flat(fields, status));
    if (end) this.#end(nothing);
    // Not flushHeaders(): it encodes the head as UTF-8 and so changes obs-text. A watch's head must not wait.
    else this.#response.write(nothing);
  }

  get queuedBytes(): number {
    return this.#response.writableLength;
  }

  sendData(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    if (this.#state !== "answering") return;
    // A copy: node keeps it until the socket has taken it.
    const chunk = Buffer.from(bytes.subarray(start, end));
    if (endStream) return this.#end(chunk);
    if (chunk.length > 0) this.#response.write(chunk, () => this.#owner?.sent(chunk.length));
  }

  reset(code: number): void {
    this.#owner = undefined;
    if (this.#state === "gone") return;
    if (this.#state === "waiting") return this.#answerReset(code);
    // The answer is whole and the rest of the request is not wanted (Go's server resets so): the socket may live on.
    if (this.#state === "ended" && (code === errorCode.NO_ERROR || this.#response.writableFinished)) {
      this.#request.resume();
      return;
    }
    this.#state = "gone";
    this.#socket.destroy();
  }

  closeAfter(): void {
    this.#response.shouldKeepAlive = false;
  }

  /**
   * Answers in place of the reset, which HTTP/1.1 cannot say: some clients (curl) send a request again, a write too, when a
   * connection that was used before ends without an answer.
   */
  #answerReset(code: number): void {
    // Go's h2 server resets what its parser refuses (`%zz` in a path); its h1 server would have said 400.
    if (code === errorCode.PROTOCOL_ERROR)
      return this.#socket.refuse("The backend took the request for malformed");
    const failure =
      code === errorCode.REFUSED_STREAM
        ? new Failure("backend-refused", "proxy", "The request was not processed")
        : new Failure("backend-lost", "backend", "The request was broken off before its answer");
    // What is still to come of its body is thrown away.
    this.#request.resume();
    sendLocalReply(this, this.#request.method ?? "", failure);
  }

  grant(count: number): void {
    // A body that was sent twice, since a backend refused the first, is granted twice.
    this.#held = Math.max(0, this.#held - count);
    if (this.#held < limits.h1HeldBytes) this.#request.resume();
  }

  #receive(chunk: Buffer): void {
    if (this.#owner === undefined || this.#state === "gone") return;
    this.#held += chunk.length;
    if (this.#held >= limits.h1HeldBytes) this.#request.pause();
    this.#owner.data(chunk, 0, chunk.length, false);
  }

  #receiveEnd(): void {
    this.#isReceived = true;
    if (this.#owner === undefined || this.#state === "gone") return;
    const trailers = readTrailers(this.#request.rawTrailers);
    if (typeof trailers === "string") this.#socket.refuse(trailers);
    else if (trailers.length > 0) this.#owner.headers(trailers, true);
    else this.#owner.data(nothing, 0, 0, true);
  }

  #sendInterim(status: number, fields: readonly Field[]): void {
    // HTTP/1.0 has no interim answers (RFC 9110 §15.2), and a 101 that no splice stands behind opens a tunnel to us.
    if (this.#request.httpVersion === "1.0" || status === 101) return;
    // Told to node, which closes after an answer to `Expect` that no 100 came before: the body may still follow.
    if (status === 100) return this.#response.writeContinue();
    const lines = fields
      .filter((field) => field.role !== role.status)
      .map((field) => `${field.name}: ${field.value}\r\n`);
    const head = `HTTP/1.1 ${status} ${phrases.get(status) ?? ""}\r\n${lines.join("")}\r\n`;
    this.#request.socket.write(head, "latin1");
  }

  #sendTrailers(fields: readonly Field[]): void {
    this.#response.addTrailers(fields.map((field): [string, string] => [field.name, field.value]));
    this.#end(nothing);
  }

  #end(last: Buffer): void {
    this.#state = "ended";
    this.#response.end(last, () => {
      if (last.length > 0) this.#owner?.sent(last.length);
    });
  }

  /** As `writeHead` keeps it in order and unmerged; `Trailer` only where trailers can follow, or node throws. */
  #flat(fields: readonly Field[], status: number): string[] {
    const isChunked =
      this.#request.httpVersion !== "1.0" &&
      this.#request.method !== "HEAD" &&
      status !== 204 &&
      status !== 304 &&
      !fields.some((field) => field.role === role.contentLength);
    return fields
      .filter((field) => field.role !== role.status && (isChunked || field.name !== "trailer"))
      .flatMap((field) => [field.name, field.value]);
  }
}
