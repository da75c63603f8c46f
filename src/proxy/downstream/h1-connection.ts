/**
 * The requests of one HTTP/1.1 socket, one at a time and in order, with the socket's deadlines and refusals. node:http
 * only parses them. Each request is handled by a Http1StreamWriter and an exchange, the object that forwards one
 * request and its response.
 */
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../../base/clock.ts";
import { wordsOf } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import type { Client } from "../../upstream/context/client.ts";
import { abort, closeAfterFlush, stopParsing } from "../../upstream/net/socket-end.ts";
import { type RefusalCode, refusal } from "../h1/h1-refusal.ts";
import { excessOf, headOf, isEndless, mayUpgrade, readHead } from "../h1/h1-request.ts";
import type { RequestHandler } from "../request/handler.ts";
import { type H1End, Http1StreamWriter } from "./h1-stream-writer.ts";

/**
 * Maximum number of idle HTTP/1.1 parsers that Node keeps (Node's default: 1,000). Each parser keeps the memory of the
 * longest head that it has parsed.
 */
const h1IdleParsers = 16;
/** Maximum number of parsed requests that wait behind the current one. No Kubernetes client pipelines (A33). */
export const h1Waiting = 16;

/**
 * Milliseconds in which a request of a client that has closed its half of the socket must be answered. Most such clients
 * are gone, and a request of a client that is gone must end at its backend within this time (D17).
 */
const halfClosedMs = 100;

export type H1Parts = {
  readonly handle: RequestHandler;
  readonly upgrade: (request: IncomingMessage, socket: Socket, head: Buffer, client: Client) => void;
  readonly clock: Clock;
  readonly journal: Journal;
};

type PendingExchange = { readonly request: IncomingMessage; readonly response: ServerResponse };

/** Parser errors that are answered with a status other than 400. */
const refusalCodes = new Map<string, RefusalCode>([
  ["HPE_HEADER_OVERFLOW", 431],
  ["HPE_CHUNK_EXTENSIONS_OVERFLOW", 413],
]);

export class Http1Connection implements H1End {
  readonly #parts: H1Parts;
  readonly #socket: Socket;
  readonly client: Client;
  /** Clock reading at the end of the latest response. Before the first response: when the connection was accepted. */
  idleSince: number;
  readonly #waiting: PendingExchange[] = [];
  /** The writer of the present response, or of the previous one while its request's upload continues (A26). */
  #writer: Http1StreamWriter | undefined;
  #hasRequested = false;
  #isBusy = false;
  #isRefused = false;
  #isDraining = false;
  /** True if the open request is a watch or long-running, and ends when its client closes its half of the socket. */
  #isEndless = false;
  #isHalfClosed = false;
  #stopTimer = (): void => {};

  constructor(parts: H1Parts, socket: Socket, client: Client) {
    this.#parts = parts;
    this.#socket = socket;
    this.client = client;
    this.idleSince = parts.clock.now();
    client.attach(this);
    // The listener is added at once, because an "error" event without a listener would end the process (A52).
    socket.on("error", () => {});
    socket.on("close", () => {
      client.disconnected();
      this.#lose();
    });
    // With `allowHalfOpen` false, Node would close the socket before an open request is answered.
    socket.allowHalfOpen = true;
    socket.on("end", () => this.#receiveEnd());
    this.#awaitHead(limits.idleSessionMs, true);
  }

  /**
   * True if the client has sent a request on this connection before, no request is open, and the connection is neither
   * draining nor refused.
   */
  get isIdle(): boolean {
    return !this.#isBusy && this.#hasRequested && !this.#isDraining && !this.#isRefused;
  }

  take(request: IncomingMessage, response: ServerResponse): void {
    for (const each of [request, response]) each.on("error", () => {});
    // The proxy has sent FIN, so no response can follow. The request is not executed, and its client may repeat it.
    if (this.#isRefused || this.#socket.destroyed || this.#socket.writableEnded)
      return stopParsing(this.#socket);
    this.#waiting.push({ request, response });
    if (this.#isBusy && this.#hasTooMany) this.#abandon("Too many pipelined requests");
    else this.#next();
  }

  get #hasTooMany(): boolean {
    let bytes = 0;
    for (const { request } of this.#waiting)
      for (const text of [request.url ?? "", ...request.rawHeaders]) bytes += text.length;
    return this.#waiting.length > h1Waiting || bytes > limits.usualHeadBytes;
  }

  upgrade(request: IncomingMessage, head: Buffer): void {
    request.on("error", () => {});
    if (this.#socket.writableEnded) return this.destroy();
    // An Upgrade during another request is refused. Otherwise the two responses would mix on one socket (A33).
    if (this.#isBusy) return this.#abandon("Upgrade while another request is unanswered");
    const excess = excessOf(request.rawHeaders);
    if (excess !== undefined) return this.refuse(excess, 431);
    this.#isBusy = true;
    this.#stopTimer();
    this.contain(() => this.#parts.upgrade(request, this.#socket, head, this.client));
  }

  fail(reason: Error): void {
    const code = "code" in reason ? String(reason.code) : "";
    if (!code.startsWith("HPE_")) return this.destroy();
    this.refuse(`Malformed HTTP/1.1: ${reason.message}`, refusalCodes.get(code));
  }

  refuse(message: string, code: RefusalCode = 400): void {
    if (this.#isRefused) return;
    const isAnswered = this.#isBusy && this.#writer?.isAnswered === true;
    this.#lose();
    if (isAnswered || !this.#socket.writable) return this.#abandon(message);
    this.#write(message);
    this.#socket.end(refusal(code, message));
    closeAfterFlush(this.#socket, this.#parts.clock);
  }

  /** Ends the open request with a 504, because its outcome is unknown. Returns false if none waits for its response. */
  cut(): boolean {
    if (!this.#isBusy || this.#writer?.isAnswered !== false) return false;
    this.refuse("The proxy ended this request before a response arrived", 504);
    return true;
  }

  destroy(): void {
    this.#lose();
    abort(this.#socket);
  }

  /** Does nothing: HTTP/1.1 has no control frames that would have to be limited. */
  answered(): void {}

  /** Ends an idle connection now. A busy or new connection ends after its next response. */
  drain(): void {
    this.#isDraining = true;
    if (!this.#isBusy && this.#hasRequested) this.#close();
  }

  #close(): void {
    this.#stopTimer();
    this.#socket.end();
    closeAfterFlush(this.#socket, this.#parts.clock);
  }

  /** Runs `run`. If `run` throws, only this client's connection ends. */
  contain(run: () => void): void {
    try {
      run();
    } catch (reason) {
      const message = wordsOf(reason);
      this.#parts.journal.write({ kind: "internal.error", scope: "session", message });
      if (!this.cut()) this.destroy();
    }
  }

  #next(): void {
    if (this.#isBusy) return;
    const turn = this.#waiting.shift();
    if (turn === undefined) return;
    this.#isBusy = true;
    this.#stopTimer();
    turn.response.on("close", () => this.#responseEnded());
    this.contain(() => this.#begin(turn));
  }

  #begin({ request, response }: PendingExchange): void {
    const parsed = readHead(headOf(request, this.client.isTls));
    if (typeof parsed === "string") {
      request.resume();
      this.refuse(parsed, excessOf(request.rawHeaders) === undefined ? 400 : 431);
      return;
    }
    if (this.#isDraining) response.shouldKeepAlive = false;
    this.#isEndless = isEndless(parsed.head);
    const writer = new Http1StreamWriter(request, response, this);
    this.#writer = writer;
    this.#hasRequested = true;
    const owner = this.#parts.handle(parsed.head, !parsed.hasBody, writer, this.client);
    writer.attach(owner, parsed.hasBody);
  }

  #responseEnded(): void {
    if (this.#socket.destroyed || this.#isRefused) return;
    this.#isBusy = false;
    this.idleSince = this.#parts.clock.now();
    if (this.#isDraining) return this.drain();
    if (this.#waiting.length > 0) this.#next();
    else if (this.#isHalfClosed) this.#close();
    else this.#awaitRest();
  }

  /** Reads and discards the rest of a request that was answered before it was complete, within a time limit. */
  #awaitRest(): void {
    if (this.#writer?.isReceived !== false) return this.#awaitNext();
    this.#stopTimer = this.#parts.clock.after(limits.h1HeadMs, () => {
      if (this.#writer?.isReceived === true) this.#awaitNext();
      else this.#abandon("Upload continues long after its response");
    });
  }

  #awaitNext(): void {
    this.#writer = undefined;
    this.#awaitHead(limits.idleSessionMs, false);
  }

  /**
   * Sets the deadline of the next request's head (A22) and the idle limit of the socket (A25). Node does not report
   * that a head has begun, so `bytesRead` is compared every `h1HeadMs`.
   */
  #awaitHead(leftMs: number, hasBegun: boolean): void {
    const { bytesRead } = this.#socket;
    this.#stopTimer = this.#parts.clock.after(limits.h1HeadMs, () => {
      if (hasBegun) this.#abandon("Request head not received in time");
      else if (leftMs <= limits.h1HeadMs) this.drain();
      else this.#awaitHead(leftMs - limits.h1HeadMs, this.#socket.bytesRead !== bytesRead);
    });
  }

  /**
   * Called when the client has closed its half of the socket. A watch or a long-running request ends. A plain request
   * gets a little time to be answered, because Go's server, which cancels it, usually still answers it.
   */
  #receiveEnd(): void {
    this.#isHalfClosed = true;
    if (!this.#isBusy) return this.#socket.destroyed ? undefined : this.#close();
    const isCut = this.#writer?.isReceived === false;
    if (this.#writer?.isEnded === false && (this.#isEndless || isCut)) return this.destroy();
    this.#stopTimer = this.#parts.clock.after(halfClosedMs, () => {
      if (this.#isBusy && this.#writer?.isAnswered === false) this.destroy();
    });
  }

  #abandon(reason: string): void {
    this.#write(reason);
    this.destroy();
  }

  #write(reason: string): void {
    this.#isRefused = true;
    this.#parts.journal.write({ kind: "request.refused", client: this.client.address, reason });
  }

  #lose(): void {
    this.#stopTimer();
    this.#writer?.lose();
  }
}

export type H1Client = Pick<Http1Connection, "client" | "isIdle" | "idleSince" | "drain" | "cut">;

export function createH1(parts: H1Parts): (socket: Socket, client: Client) => H1Client {
  const connections = new WeakMap<Duplex, Http1Connection>();
  // Node has this setting only for the whole process, not for one server.
  http.setMaxIdleHTTPParsers(h1IdleParsers);
  const server = http.createServer({
    maxHeaderSize: limits.headerListBytes,
    // Node's own deadlines work only with a listening server, so Http1Connection has its own. Node's check of `Host`
    // would answer without a Kubernetes `Status`.
    requestTimeout: 0,
    headersTimeout: 0,
    keepAliveTimeout: 0,
    requireHostHeader: false,
    insecureHTTPParser: false,
    shouldUpgradeCallback: (request) => mayUpgrade(headOf(request, true)),
  });
  server.maxHeadersCount = 0;
  // With false, the default, Node ends the socket at the client's FIN, and the open request gets no answer.
  Reflect.set(server, "httpAllowHalfOpen", true);
  const take = (request: http.IncomingMessage, response: http.ServerResponse): void =>
    connections.get(request.socket)?.take(request, response);
  server.on("request", take);
  // Without these listeners, Node itself would answer `Expect` with 100 or 417. Only the backend can decide on the
  // answer (RFC 9110 §10.1.1).
  server.on("checkContinue", take);
  server.on("checkExpectation", take);
  // With a body, Node passes another stream than the request's socket.
  server.on("upgrade", (request, _stream, head) => connections.get(request.socket)?.upgrade(request, head));
  server.on("connect", ({ socket }) => connections.get(socket)?.refuse("CONNECT is not supported", 405));
  server.on("clientError", (reason, socket) => connections.get(socket)?.fail(reason));
  return (socket, client) => {
    const own = new Http1Connection(parts, socket, client);
    connections.set(socket, own);
    server.emit("connection", socket);
    return own;
  };
}
