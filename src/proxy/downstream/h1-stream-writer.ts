/**
 * One HTTP/1.1 request and its response, with the interface of an HTTP/2 stream, so that an exchange (the object that
 * forwards one request and its response) treats both protocols alike. node:http frames the response: by length, in
 * chunks, or until the connection's end for HTTP/1.0.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Failure } from "../../base/failure.ts";
import type { Field } from "../../h2/core/field.ts";
import { role } from "../../h2/core/field.ts";
import { errorCode } from "../../h2/core/protocol-error.ts";
import type { StreamListener, StreamWriter } from "../../h2/core/stream-writer.ts";
import { isSafeMethod } from "../../upstream/context/request-context.ts";
import { writeHead } from "../h1/h1-head.ts";
import { readTrailers } from "../h1/h1-request.ts";
import { sendLocalReply, unknownOutcome } from "../request/local-reply.ts";

/** Maximum number of buffered upload bytes. With Node's own buffer and one read, the total is below 200 KiB (A19). */
const h1HeldBytes = 32 * 1024;

/**
 * State of the response. waiting: no final head was sent. answering: the body is being sent. ended: the whole response
 * was passed to Node. gone: the socket is gone.
 */
type State = "waiting" | "answering" | "ended" | "gone";

export type H1End = {
  /** Ends the connection so that the client cannot take a truncated response for a complete one. */
  destroy(): void;
  /** Sends 400 if no response has begun, and ends the connection. */
  refuse(message: string): void;
  /** Runs `run`. If `run` throws, only this client's connection ends. */
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
  /** Number of received body bytes for which the owner has not returned flow-control credit yet. */
  #ungranted = 0;
  #isReceived = false;

  constructor(request: IncomingMessage, response: ServerResponse, socket: H1End) {
    this.#request = request;
    this.#response = response;
    this.#socket = socket;
    // Node must not add a Date field: the response already has the apiserver's.
    response.sendDate = false;
  }

  /** Sets the listener for the request's body and its end. `hasBody`: false if the request ends with its head. */
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

  /** Resets an incomplete exchange, because the socket is closing. */
  lose(): void {
    const isOver = this.#isReceived && this.#response.writableFinished;
    if (this.#state === "gone" || isOver) return;
    this.#state = "gone";
    this.#owner?.reset(errorCode.CANCEL);
  }

  /** True if the response's head has been sent, so that no other response is possible. */
  get isAnswered(): boolean {
    return this.#state !== "waiting";
  }

  get isEnded(): boolean {
    return this.#state === "ended";
  }

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
    // flushHeaders() would encode the head as UTF-8 and so change obs-text. An empty write sends it unchanged.
    else this.#response.write(nothing);
  }

  get queuedBytes(): number {
    return this.#response.writableLength;
  }

  sendData(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    if (this.#state !== "answering") return;
    // The bytes are copied, because Node keeps them until the socket has taken them.
    const chunk = Buffer.from(bytes.subarray(start, end));
    if (endStream) return this.#end(chunk);
    if (chunk.length > 0) this.#response.write(chunk, () => this.#owner?.sent(chunk.length));
  }

  reset(code: number): void {
    this.#owner = undefined;
    if (this.#state === "gone") return;
    if (this.#state === "waiting") return this.#answerReset(code);
    // The response is complete, and the rest of the request is not needed. As in Go's server, the socket may stay open.
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
   * Sends a response in place of a reset, which HTTP/1.1 does not have. If a reused connection ended without a
   * response, some clients (curl) would repeat the request, even a write.
   */
  #answerReset(code: number): void {
    // Go's HTTP/2 server resets a request that its parser refuses (`%zz` in a path). Its HTTP/1.1 server sends 400, so
    // the client gets 400 here.
    if (code === errorCode.PROTOCOL_ERROR)
      return this.#socket.refuse("The backend rejected the request as malformed");
    const method = this.#request.method ?? "";
    const aborted = "The request was aborted before its response";
    let failure = new Failure("backend-refused", "proxy", "The request was not processed");
    if (code !== errorCode.REFUSED_STREAM)
      failure = isSafeMethod(method)
        ? new Failure("backend-lost", "backend", aborted)
        : unknownOutcome("backend", aborted);
    // The rest of the request's body is discarded.
    this.#request.resume();
    sendLocalReply(this, method, failure);
  }

  grant(count: number): void {
    // If a backend refused the first attempt, the body is sent upstream twice. Credit for the same bytes then comes
    // twice, too, so the count must not become negative.
    this.#ungranted = Math.max(0, this.#ungranted - count);
    if (this.#ungranted < h1HeldBytes) this.#request.resume();
  }

  #receive(chunk: Buffer): void {
    if (this.#owner === undefined || this.#state === "gone") return;
    this.#ungranted += chunk.length;
    if (this.#ungranted >= h1HeldBytes) this.#request.pause();
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
    // HTTP/1.0 has no interim responses (RFC 9110 §15.2). A 101 is dropped, because this request is no Upgrade: the
    // client would switch protocols, and the proxy would still send HTTP/1.1.
    if (this.#request.httpVersion === "1.0" || status === 101) return;
    // Node must write the 100 itself. Otherwise it would close the connection after a response to `Expect`, although a
    // body may follow.
    if (status === 100) return this.#response.writeContinue();
    this.#request.socket.write(writeHead([`HTTP/1.1 ${status} ${phrases.get(status) ?? ""}`], fields));
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

  /** Returns the fields as a flat list, in order and with duplicates. Drops `Trailer` where Node would throw for it. */
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
