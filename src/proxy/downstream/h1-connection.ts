/**
 * The requests of one HTTP/1.1 socket, one at a time and in order: its deadlines, its refusals, its end. node:http parses
 * heads and never listens: sockets come from listen.ts. Http1StreamWriter and the exchange handle a request after that.
 */
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../../base/clock.ts";
import { wordsOf } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import type { Client } from "../context/client.ts";
import { type RefusalCode, refusal } from "../h1/h1-refusal.ts";
import { headOf, readHead, upgradesOf } from "../h1/h1-request.ts";
import { abort, closeAfterFlush, stopParsing } from "../net/socket-end.ts";
import type { RequestHandler } from "../request/handler.ts";
import { type H1End, Http1StreamWriter } from "./h1-stream-writer.ts";

/** Unused HTTP/1.1 parsers that are kept. Each keeps the longest head that it has read; Node would keep a thousand. */
const h1IdleParsers = 16;
/**
 * Parsed requests behind the current one: no Kubernetes client pipelines (A33). Their heads may have the size of one
 * usual head.
 */
export const h1Waiting = 16;

export type H1Parts = {
  readonly handle: RequestHandler;
  readonly upgrade: (request: IncomingMessage, socket: Socket, head: Buffer, client: Client) => void;
  readonly clock: Clock;
  readonly journal: Journal;
};

type PendingExchange = { readonly request: IncomingMessage; readonly response: ServerResponse };

/** The parser's error codes that get another status than 400. */
const refusalCodes = new Map<string, RefusalCode>([
  ["HPE_HEADER_OVERFLOW", 431],
  ["HPE_CHUNK_EXTENSIONS_OVERFLOW", 413],
]);

export class Http1Connection implements H1End {
  readonly #parts: H1Parts;
  readonly #socket: Socket;
  readonly client: Client;
  /** Since the last response, or the beginning; a clock reading. */
  idleSince: number;
  readonly #waiting: PendingExchange[] = [];
  /** The request whose response is due, or the last one while its upload continues. An idle client keeps no head (A26). */
  #writer: Http1StreamWriter | undefined;
  #hasRequested = false;
  #isBusy = false;
  #isRefused = false;
  #isDraining = false;
  #stopTimer = (): void => {};

  constructor(parts: H1Parts, socket: Socket, client: Client) {
    this.#parts = parts;
    this.#socket = socket;
    this.client = client;
    this.idleSince = parts.clock.now();
    // Added at once: an 'error' event without a listener ends the process (A52).
    socket.on("error", () => {});
    socket.on("close", () => {
      client.connection.isOpen = false;
      this.#lose();
    });
    socket.on("end", () => this.#receiveEnd());
    this.#awaitHead(limits.idleSessionMs, true);
  }

  /** True if it has sent a request, has none open now, and is neither draining nor refused. */
  get isIdle(): boolean {
    return !this.#isBusy && this.#hasRequested && !this.#isDraining && !this.#isRefused;
  }

  take(request: IncomingMessage, response: ServerResponse): void {
    for (const each of [request, response]) each.on("error", () => {});
    // No response can follow the proxy's FIN: a request that crossed it is not executed, since its client may repeat it.
    if (this.#isRefused || this.#socket.destroyed || this.#socket.writableEnded)
      return stopParsing(this.#socket);
    this.#waiting.push({ request, response });
    if (this.#isBusy && this.#hasTooMany) this.#abandon("More requests at once than anyone needs");
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
    // Its response and that of the open request would mix on one socket (A33).
    if (this.#isBusy) return this.#abandon("Upgrade behind a request that is not answered yet");
    this.#isBusy = true;
    this.#stopTimer();
    this.contain(() => this.#parts.upgrade(request, this.#socket, head, this.client));
  }

  /** The parser failed, or the socket did. */
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

  /** Ends a request without a response: the client gets a 504, since the outcome is unknown. False if there is none. */
  cut(): boolean {
    if (!this.#isBusy || this.#writer?.isAnswered !== false) return false;
    this.refuse("The proxy ended this request before its answer came", 504);
    return true;
  }

  destroy(): void {
    this.#lose();
    abort(this.#socket);
  }

  /** Idle: ends now. Busy, or so new that its first request is on its way: ends with the response that is due. */
  drain(): void {
    this.#isDraining = true;
    if (this.#isBusy || !this.#hasRequested) return;
    this.#stopTimer();
    this.#socket.end();
    closeAfterFlush(this.#socket, this.#parts.clock);
  }

  /** Runs `run`; an internal fault in it costs this client only. */
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
    turn.response.on("close", () => this.#finish());
    this.contain(() => this.#begin(turn));
  }

  #begin({ request, response }: PendingExchange): void {
    const parsed = readHead(headOf(request, this.client.isTls));
    if (typeof parsed === "string") {
      request.resume();
      this.refuse(parsed);
      return;
    }
    if (this.#isDraining) response.shouldKeepAlive = false;
    const writer = new Http1StreamWriter(request, response, this);
    this.#writer = writer;
    this.#hasRequested = true;
    const owner = this.#parts.handle(parsed.head, !parsed.hasBody, writer, this.client);
    writer.attach(owner, parsed.hasBody);
  }

  /** A response has been sent, or its socket is closed. */
  #finish(): void {
    if (this.#socket.destroyed || this.#isRefused) return;
    this.#isBusy = false;
    this.idleSince = this.#parts.clock.now();
    if (this.#isDraining) return this.drain();
    if (this.#waiting.length > 0) this.#next();
    else this.#awaitRest();
  }

  /** The response came before the whole request. The rest is read and discarded, within a time limit. */
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
   * Sets the deadline of the next head (A22), and the idle limit of the socket (A25). node reads below the socket, so an
   * incomplete head is visible only as bytes read without a request: checked every `h1HeadMs`.
   */
  #awaitHead(leftMs: number, hasBegun: boolean): void {
    const { bytesRead } = this.#socket;
    this.#stopTimer = this.#parts.clock.after(limits.h1HeadMs, () => {
      if (hasBegun) this.#abandon("No whole request head in time");
      else if (leftMs <= limits.h1HeadMs) this.drain();
      else this.#awaitHead(leftMs - limits.h1HeadMs, this.#socket.bytesRead !== bytesRead);
    });
  }

  /**
   * As in Go's server, a client that has closed its half is gone. Without this a watch would live on until its next
   * event.
   */
  #receiveEnd(): void {
    if (this.#isBusy && this.#writer?.isEnded === false) this.destroy();
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

/** One socket, as its listener uses it. */
export type H1Client = Pick<Http1Connection, "client" | "isIdle" | "idleSince" | "drain" | "cut">;

export function createH1(parts: H1Parts): (socket: Socket, client: Client) => H1Client {
  const connections = new WeakMap<Duplex, Http1Connection>();
  // Node has this setting for the whole process only.
  http.setMaxIdleHTTPParsers(h1IdleParsers);
  const server = http.createServer({
    maxHeaderSize: limits.headerListBytes,
    // node's own deadlines need a listening server; Http1Connection has them. node's Host check answers without a Status.
    requestTimeout: 0,
    headersTimeout: 0,
    keepAliveTimeout: 0,
    requireHostHeader: false,
    insecureHTTPParser: false,
    shouldUpgradeCallback: (request) => upgradesOf(request.rawHeaders).length > 0,
  });
  server.maxHeadersCount = 0;
  const take = (request: http.IncomingMessage, response: http.ServerResponse): void =>
    connections.get(request.socket)?.take(request, response);
  server.on("request", take);
  // Without these two node itself would answer 100 or 417: only the backend can decide that (RFC 9110 §10.1.1).
  server.on("checkContinue", take);
  server.on("checkExpectation", take);
  server.on("upgrade", (request, socket, head) => connections.get(socket)?.upgrade(request, head));
  server.on("connect", (_request, socket) =>
    connections.get(socket)?.refuse("CONNECT is not supported", 405),
  );
  server.on("clientError", (reason, socket) => connections.get(socket)?.fail(reason));
  return (socket, client) => {
    const own = new Http1Connection(parts, socket, client);
    connections.set(socket, own);
    server.emit("connection", socket);
    return own;
  };
}
