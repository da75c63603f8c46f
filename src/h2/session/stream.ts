/**
 * One open stream: its state, its message (RFC 9113 §8.1), its windows, and the DATA that waits to be sent. An exchange
 * (the object that forwards one request and its response) sends through the stream as its StreamWriter, and the stream
 * passes what it receives to the exchange's StreamListener.
 */
import { limits } from "../../base/limits.ts";
import { Field } from "../core/field.ts";
import { readResponse, trailersFault } from "../core/fields.ts";
import { h2Limits } from "../core/limits.ts";
import { errorCode, malformed, ProtocolError } from "../core/protocol-error.ts";
import { type Block, giveBack, largestBlockBytes, roomFor, smallBytes } from "../core/slabs.ts";
import type { StreamListener, StreamWriter } from "../core/stream-writer.ts";
import { frameBytes } from "../frame/frame.ts";
import type { FrameWriter } from "../frame/writer.ts";
import type { HpackEncoder } from "../hpack/hpack-encoder.ts";
import type { Outflow } from "./outflow.ts";
import { next, type StreamInput, type StreamState } from "./stream-state.ts";
import { ReceiveWindow, widened } from "./window.ts";

export type StreamHost = {
  readonly writer: FrameWriter;
  readonly encoder: HpackEncoder;
  readonly outflow: Outflow;
  /**
   * Called after `count` bytes of DATA were sent. `isCrumb`: `count` is small only because the peer's window allowed no
   * more.
   */
  spent(count: number, isCrumb: boolean): void;
  granted(count: number): void;
  /** Called after RST_STREAM was sent. Frames of the peer for this stream may still arrive. */
  resetSent(stream: Stream): void;
  closed(stream: Stream): void;
};

type Piece = {
  readonly bytes: Buffer;
  start: number;
  end: number;
  endStream: boolean;
  readonly trailers: readonly Field[] | undefined;
  /** The block that contains `bytes`; undefined: `bytes` is a separate Buffer. */
  readonly block: Block | undefined;
};

const empty = Buffer.alloc(0);
/** A Kubernetes `Status`, because kubectl prints its message. */
const longHeadStatus = Buffer.from(
  `${JSON.stringify({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: `watchkeeper: more than ${limits.headerListBytes} bytes of header fields, or ${limits.fieldBytes} in one`,
    reason: "RequestHeaderFieldsTooLarge",
    code: 431,
  })}\n`,
);
const longHead = [
  new Field(":status", "431"),
  new Field("content-type", "application/json"),
  new Field("content-length", String(longHeadStatus.length)),
];
/** Maximum number of bytes that a stream sends before the next waiting stream may send. */
const quantumBytes = 4 * frameBytes;

/**
 * The queue of every stream that has no DATA waiting. All these streams share one array, because DATA rarely waits. The
 * array is never modified.
 */
const noPieces: Piece[] = [];

export class Stream implements StreamWriter {
  readonly id: number;
  readonly #host: StreamHost;
  #owner: StreamListener;
  #state: StreamState = "idle";
  #sendWindow: number;
  readonly #receiveBytes: number;
  #receiveWindow: ReceiveWindow | undefined;
  /** Number of body bytes that `content-length` still requires; -1: the message has no such field (A29). */
  #expected = -1;
  #isAnswered = false;
  #fault: string | undefined;
  #hasAnswered = false;
  #interimHeads = 0;
  readonly #isHeadRequest: boolean;
  #queue = noPieces;
  #queuedBytes = 0;
  /**
   * Number of the turn (`Outflow.turn`) in which this stream last wrote DATA directly, without the queue; -1: never.
   */
  #dataTurn = -1;
  /** True if the response's last frame is still queued, and RST_STREAM(NO_ERROR) must follow it to stop the upload. */
  #stopsAtEnd = false;
  /** Number of received bytes for which `#owner` has not returned flow-control credit yet. */
  #owed = 0;

  constructor(
    id: number,
    host: StreamHost,
    owner: StreamListener,
    windows: { readonly send: number; readonly receive: number },
    isHead = false,
  ) {
    this.id = id;
    this.#host = host;
    this.#owner = owner;
    this.#sendWindow = windows.send;
    this.#receiveBytes = windows.receive;
    this.#isHeadRequest = isHead;
  }

  get receiveWindow(): ReceiveWindow {
    this.#receiveWindow ??= new ReceiveWindow(this.#receiveBytes);
    return this.#receiveWindow;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  get state(): StreamState {
    return this.#state;
  }

  get isClosed(): boolean {
    return this.#state === "closed";
  }

  get owner(): StreamListener {
    return this.#owner;
  }

  get sendWindow(): number {
    return this.#sendWindow;
  }

  /** Client role: true if the final response head has arrived. */
  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  /** Client role: the rule that the response violated, so that the stream was reset; undefined: none. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /** Server role: true if the final response head has been sent. A later reset by the client is normal (A1). */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** Server role: gives the stream of a valid request to its owner. `contentLength` -1: the request has none. */
  accept(owner: StreamListener, contentLength: number): void {
    this.#owner = owner;
    this.#expected = contentLength;
  }

  /** Handles a response head: at most `limits.interimHeads` interim heads, then the final head (A37). */
  receiveAnswer(fields: Field[], end: boolean): void {
    const head = readResponse(fields);
    if (typeof head === "string") throw malformed(head);
    if (head.status < 200) {
      if (end) throw malformed("interim head that ends its stream");
      this.#interimHeads += 1;
      if (this.#interimHeads > limits.interimHeads) throw malformed("too many interim heads");
      return;
    }
    this.#isAnswered = true;
    // A response to HEAD and a 304 may state the length of a body that is not sent (RFC 9110 §8.6).
    const isBodiless = this.#isHeadRequest || head.status === 304 || head.status === 204;
    this.#expected = isBodiless ? 0 : head.contentLength;
    if (end && this.#expected > 0) throw malformed("content-length without a body");
  }

  receiveTrailers(fields: Field[], end: boolean): void {
    if (!end) throw malformed("trailers that do not end their stream");
    const fault = trailersFault(fields);
    if (fault !== undefined) throw malformed(fault);
    this.countBody(0, true);
  }

  /** Enforces `content-length` (A29): if the body has more or fewer bytes, the message is malformed. */
  countBody(count: number, end: boolean): void {
    if (this.#expected < 0) return;
    this.#expected -= count;
    if (this.#expected < 0) throw malformed("body longer than its content-length");
    if (end && this.#expected > 0) throw malformed("body shorter than its content-length");
  }

  /** Answers a request whose header list is too large with 431 (RFC 6585 §5). */
  answerLongHead(isHead: boolean): void {
    this.sendHeaders(longHead, isHead);
    this.sendData(longHeadStatus, 0, isHead ? 0 : longHeadStatus.length, true);
    this.reset(errorCode.NO_ERROR);
  }

  /** Adds `increment` to the send window. If the window exceeds 2^31 - 1, throws FLOW_CONTROL_ERROR for `scope`. */
  widen(increment: number, scope: "stream" | "session"): void {
    this.#sendWindow = widened(this.#sendWindow, increment, scope);
  }

  refuse({ code, message }: ProtocolError): void {
    this.#fault = message;
    this.reset(code);
  }

  close(): void {
    this.#dropQueue();
    this.#state = "closed";
    this.#host.closed(this);
  }

  /** Moves to the next state. Throws a stream error STREAM_CLOSED if RFC 9113 §5.1 forbids the input. */
  step(input: StreamInput): void {
    const after = next(this.#state, input);
    if (after === undefined)
      throw new ProtocolError(errorCode.STREAM_CLOSED, "stream", `Cannot ${input} in state ${this.#state}`);
    this.#state = after;
    if (after === "closed") this.#host.closed(this);
  }

  sendHeaders(fields: readonly Field[], end: boolean): void {
    if (!this.#maySend()) return;
    if (this.#queue.length > 0) {
      this.#push({ bytes: empty, start: 0, end: 0, endStream: end, trailers: fields, block: undefined });
      return;
    }
    this.#writeHeaders(fields, end);
  }

  sendData(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    if (!this.#maySend()) return;
    const length = end - start;
    const fits = this.#queue.length === 0 && length <= frameBytes;
    if (fits && length <= this.#sendWindow && (length <= this.#host.outflow.room || length === 0)) {
      if (length >= h2Limits.crumbBytes || !this.#isScattered) this.#writeData(bytes, start, end, endStream);
      else this.#gather(bytes, start, end, endStream);
      return;
    }
    const isFirst = this.#queue.length === 0;
    this.#keep(bytes, start, end, endStream);
    if (isFirst) this.pump();
  }

  /**
   * True if other frames follow this stream's latest DATA in this turn's output, so that no DATA can be added to the
   * same frame.
   */
  get #isScattered(): boolean {
    const { outflow, writer } = this.#host;
    return this.#dataTurn === outflow.turn && !writer.endsWith(this.id);
  }

  /**
   * Keeps tiny DATA until the end of this turn of the event loop. The pieces of DATA that were kept in this way then
   * share one frame. Called if other frames were sent after this stream's previous DATA.
   */
  #gather(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.#keep(bytes, start, end, endStream);
    this.#host.outflow.gather();
  }

  /**
   * Queues a copy of the bytes. If the last queued piece has room for them, they are added to it, so that many single
   * bytes take little memory (A16).
   */
  #keep(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    const count = end - start;
    const last = this.#queue.at(-1);
    if (last?.trailers === undefined && last !== undefined && last.bytes.length - last.end >= count) {
      bytes.copy(last.bytes, last.end, start, end);
      last.end += count;
      last.endStream = endStream;
      this.#count(count);
      return;
    }
    let from = start;
    // No block has room for more bytes.
    do {
      const to = Math.min(end, from + largestBlockBytes);
      this.#keepPiece(bytes, from, to, endStream && to === end);
      from = to;
    } while (from < end);
  }

  #keepPiece(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    const count = end - start;
    const isSmall = this.#queue.length === 0 && count < smallBytes;
    const block = isSmall ? undefined : roomFor(count);
    const own = block?.bytes ?? Buffer.allocUnsafeSlow(count);
    bytes.copy(own, 0, start, end);
    this.#push({ bytes: own, start: 0, end: count, endStream, trailers: undefined, block });
  }

  reset(code: number): void {
    if (this.#state === "closed") return;
    if (code === errorCode.NO_ERROR && this.#queue.at(-1)?.endStream === true) {
      // RST_STREAM(NO_ERROR) asks the peer to stop its upload. It must follow the whole response (RFC 9113 §8.1).
      this.#stopsAtEnd = true;
      return;
    }
    if (this.#state !== "idle") {
      this.#host.resetSent(this);
      if (code === errorCode.NO_ERROR && this.#state === "half-closed-local")
        this.#host.writer.stopUpload(this.id);
      else this.#host.writer.reset(this.id, code);
    }
    this.close();
  }

  /**
   * Counts bytes that the owner has received. They reduce the session's receive window until the owner returns credit.
   */
  owe(count: number): void {
    this.#owed += count;
  }

  /**
   * Called for a closed stream. Returns the number of received bytes that still lack flow-control credit, and resets
   * this number to 0. The session then grants the credit for these bytes.
   */
  settle(): number {
    const owed = this.#owed;
    this.#owed = 0;
    return owed;
  }

  grant(wanted: number): void {
    const count = Math.min(wanted, this.#owed);
    this.#owed -= count;
    this.#host.granted(count);
    if (this.#state === "closed" || this.#state === "half-closed-remote") return;
    const increment = this.receiveWindow.grant(count);
    if (increment > 0) this.#host.writer.windowUpdate(this.id, increment);
  }

  /**
   * Counts received padding, and returns its credit at once: the owner never receives padding, so it cannot return the
   * credit.
   */
  padded(count: number): void {
    this.receiveWindow.use(count);
    const increment = this.receiveWindow.grant(count);
    if (increment > 0) this.#host.writer.windowUpdate(this.id, increment);
  }

  /**
   * Raises the receive window to `size` bytes at once. This speeds up a transfer whose receiver is fast and whose
   * round-trip time is long.
   */
  growReceiveWindow(size: number): void {
    if (size <= this.receiveWindow.size || this.#state === "closed") return;
    const increment = this.receiveWindow.grow(size);
    if (increment > 0) this.#host.writer.windowUpdate(this.id, increment);
  }

  /** Lowers the receive window to `size` bytes by withholding credit, because memory is short. */
  shrinkReceiveWindow(size: number): void {
    this.receiveWindow.shrink(size);
  }

  /** Sends what the windows allow, at most one quantum. Returns true if the stream can send more immediately. */
  pump(): boolean {
    let left = quantumBytes;
    for (;;) {
      const piece = this.#queue[0];
      if (piece === undefined || (left === 0 && piece.end > piece.start)) break;
      const sent = this.#sendPiece(piece, left);
      if (sent < 0) return false;
      left -= sent;
    }
    return this.#queue.length > 0;
  }

  #dropQueue(): void {
    if (this.#queue.length === 0) return;
    this.#host.outflow.queued(-this.#queuedBytes);
    for (const { block } of this.#queue) if (block !== undefined) giveBack(block);
    this.#queue = noPieces;
    this.#queuedBytes = 0;
    this.#host.outflow.wait(this, false);
  }

  /**
   * Sends at most `most` bytes of a piece. Returns the number of bytes sent; -1: the windows or the socket allow none.
   */
  #sendPiece(piece: Piece, most: number): number {
    const want = piece.end - piece.start;
    const count = Math.min(
      want,
      most,
      frameBytes,
      Math.max(0, this.#sendWindow),
      want === 0 ? 0 : this.#host.outflow.room,
    );
    if (count === 0 && want > 0) return -1;
    if (count === want) this.#shift();
    const { start } = piece;
    piece.start += count;
    this.#queuedBytes -= count;
    this.#host.outflow.queued(-count);
    if (piece.trailers !== undefined) this.#writeHeaders(piece.trailers, piece.endStream);
    else {
      const isWhole = count === want;
      const endStream = piece.endStream && isWhole;
      this.#putData(piece.bytes, start, start + count, endStream, !isWhole && count < h2Limits.crumbBytes);
      if (isWhole && piece.block !== undefined) giveBack(piece.block);
      this.#dataSent(count, endStream);
    }
    return count;
  }

  #shift(): void {
    this.#queue.shift();
    if (this.#queue.length === 0) this.#host.outflow.wait(this, false);
  }

  #push(piece: Piece): void {
    if (this.#queue.length === 0) {
      this.#queue = [];
      this.#host.outflow.wait(this, true);
    }
    this.#queue.push(piece);
    this.#count(piece.end - piece.start);
  }

  #count(count: number): void {
    this.#queuedBytes += count;
    this.#host.outflow.queued(count);
  }

  #maySend(): boolean {
    return (
      this.#state !== "closed" &&
      this.#state !== "half-closed-local" &&
      this.#queue.at(-1)?.endStream !== true
    );
  }

  #sentEnd(): void {
    this.step("send-end");
    if (this.#stopsAtEnd) this.reset(errorCode.NO_ERROR);
  }

  #writeHeaders(fields: readonly Field[], end: boolean): void {
    this.#host.writer.headers(this.id, this.#host.encoder, fields, end);
    this.step("send-headers");
    this.#hasAnswered ||= fields[0]?.value.startsWith("1") !== true;
    if (end) this.#sentEnd();
  }

  #writeData(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.#dataTurn = this.#host.outflow.turn;
    this.#putData(bytes, start, end, endStream, false);
    this.#dataSent(end - start, endStream);
  }

  #putData(bytes: Buffer, start: number, end: number, endStream: boolean, isCrumb: boolean): void {
    const count = end - start;
    this.#sendWindow -= count;
    this.#host.spent(count, isCrumb);
    this.#host.writer.data(this.id, bytes, start, end, endStream);
  }

  /**
   * Tells the owner that `count` bytes were sent. This is the last step, because the owner may call this stream again.
   */
  #dataSent(count: number, endStream: boolean): void {
    if (endStream) this.#sentEnd();
    if (count > 0) this.#owner.sent(count);
  }
}
