/**
 * The streams of one session, and the windows that they share. A violation of a stream's rules ends that stream here. A
 * violation of the session's rules is thrown to session.ts. hpack/hpack-decoder.ts cuts a header list above the limit,
 * such as an HPACK bomb; `#tooLong` then answers the request with 431.
 */
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import type { Buffered } from "../core/buffered.ts";
import type { Field } from "../core/field.ts";
import { type RequestHead, RequestReader } from "../core/fields.ts";
import { h2Limits } from "../core/limits.ts";
import { errorCode, lost, malformed, ProtocolError } from "../core/protocol-error.ts";
import type { StreamListener } from "../core/stream-writer.ts";
import type { StreamFrames } from "../frame/frame.ts";
import type { FrameWriter } from "../frame/writer.ts";
import { HpackDecoder } from "../hpack/hpack-decoder.ts";
import { HpackEncoder, rememberedFieldsOfMany } from "../hpack/hpack-encoder.ts";
import type { Floods } from "./floods.ts";
import { Outflow } from "./outflow.ts";
import { defaultSettings } from "./settings.ts";
import { Stream, type StreamHost } from "./stream.ts";
import { StreamTable } from "./stream-table.ts";
import { defaultWindow, ReceiveWindow } from "./window.ts";

export type Role = "server" | "client";

export type StreamsOwner = {
  /**
   * Server role: called for each valid request. Returns the listener for the request's stream. `end`: no body follows.
   */
  opened(stream: Stream, request: RequestHead, end: boolean): StreamListener;
  /**
   * Server role: called for each request that is reset because it breaks a rule. `reason`: the rule, as a fixed text.
   */
  refused?(reason: string): void;
  /** Called when a stream's owner has thrown an exception, which is a bug in the proxy. The stream is then reset. */
  fault?(error: unknown): void;
};

/** `streamClosed` is called after a stream has closed. */
type StreamsSession = { streamClosed(): void };

/** Highest stream id (RFC 9113 §5.1.1). A busy upstream connection reaches it within days. */
const lastStreamId = 0x7fff_ffff;
/** Number of reset stream ids that a session remembers. The peer stops sending within a round trip, so few suffice. */
const rememberedResets = 256;
const ignored: StreamListener = { headers() {}, data() {}, reset() {}, sent() {} };

function sessionError(code: 1 | 3 | 5, what: string): ProtocolError {
  return new ProtocolError(code, "session", what);
}

/** Returns the stream error for a header list above the limits of hpack/hpack-decoder.ts. */
function oversize({ listBytes, listFields }: HpackDecoder): ProtocolError {
  const limit = `${limits.headerListBytes} bytes in fields of up to ${limits.fieldBytes} bytes`;
  const message = `header list of ${listBytes} bytes and ${listFields} fields: at most ${limit} are forwarded`;
  return new ProtocolError(errorCode.ENHANCE_YOUR_CALM, "stream", message);
}

export class Streams implements StreamHost, StreamFrames {
  readonly writer: FrameWriter;
  readonly encoder: HpackEncoder;
  readonly outflow: Outflow;
  readonly peer = defaultSettings();
  readonly open = new StreamTable<Stream>();
  readonly #decoder = new HpackDecoder();
  readonly #requests = new RequestReader();
  readonly #isServer: boolean;
  readonly #owner: StreamsOwner;
  readonly #session: StreamsSession;
  readonly #floods: Floods;
  readonly #maxStreams: number;
  readonly #receiveWindow: ReceiveWindow;
  /**
   * Ids of streams that the proxy reset recently. Frames that the peer sent before it got the reset are ignored (RFC
   * 9113 §5.1). If such a frame ends the stream, its id is removed, because any later frame is an error. Created at the
   * first reset, because most sessions have none.
   */
  #resetIds: Lru<number, true> | undefined;
  #lastId = 0;
  /** Highest stream id that the peer has used, even for a refused stream. Higher ids are idle. */
  #seenId = 0;
  #nextId = 1;
  readonly #refusals = new Refusals();
  readonly #strayBytes = new StrayBytes();
  /**
   * The last stream id in the GOAWAY that the proxy has sent; Infinity: no GOAWAY was sent. Streams with higher ids are
   * not served.
   */
  #acceptUpTo = Number.POSITIVE_INFINITY;
  /**
   * Client role: keeps the HPACK table equal to the backend's, so that a head that is too long ends only its stream.
   */
  readonly skipFields: ((part: Buffer) => number) | undefined;

  constructor(
    role: Role,
    parts: {
      writer: FrameWriter;
      owner: StreamsOwner;
      session: StreamsSession;
      floods: Floods;
      maxStreams: number;
      buffered: Buffered;
      hasManyRequests: boolean;
    },
  ) {
    this.#isServer = role === "server";
    if (!this.#isServer) this.skipFields = (part) => this.#decoder.skip(part);
    this.encoder = new HpackEncoder(parts.hasManyRequests ? rememberedFieldsOfMany : undefined);
    this.writer = parts.writer;
    this.outflow = new Outflow(parts.buffered);
    this.#owner = parts.owner;
    this.#session = parts.session;
    this.#floods = parts.floods;
    this.#maxStreams = parts.maxStreams;
    this.#receiveWindow = new ReceiveWindow(
      this.#isServer ? h2Limits.downstreamWindowBytes : h2Limits.connectionWindowBytes,
    );
  }

  /** The highest id of a stream that the peer opened and the proxy accepted; 0: none. */
  get lastId(): number {
    return this.#lastId;
  }

  get hasIds(): boolean {
    return this.#nextId <= lastStreamId;
  }

  /** Number of bytes in the first WINDOW_UPDATE, which raises the session's window from 65,535 bytes (§6.9.2). */
  get firstUpdate(): number {
    return this.#receiveWindow.size - defaultWindow;
  }

  start(fields: readonly Field[], end: boolean, owner: StreamListener, isHead: boolean): Stream {
    const stream = this.#create(this.#nextId, owner, isHead);
    this.#nextId += 2;
    stream.sendHeaders(fields, end);
    return stream;
  }

  stopAccepting(): void {
    this.#acceptUpTo = this.#lastId;
  }

  /** Ends every stream after the session has ended. Each stream's owner gets `lost`. */
  endAll(): void {
    for (const stream of this.open.all()) {
      // Drops the flow-control credit that was not returned yet, because an ended session sends no WINDOW_UPDATE.
      stream.settle();
      this.#end(stream, lost);
    }
  }

  /** Ends the streams above a GOAWAY's last stream id. The peer has not processed them, so a retry is safe (§6.8). */
  refuseAbove(lastId: number): void {
    for (const stream of this.open.all()) {
      if (stream.id > lastId) this.#end(stream, errorCode.REFUSED_STREAM);
    }
  }

  /**
   * Each sent DATA frame raises the peer's budget for WINDOW_UPDATE frames. DATA that is short only because the peer's
   * window is tiny (`isCrumb`) does not (A19).
   */
  spent(count: number, isCrumb: boolean): void {
    this.outflow.spend(count);
    if (!isCrumb) this.#floods.earnUpdates();
  }

  granted(count: number): void {
    if (this.#isServer) this.#grantSession(count);
  }

  resetSent(stream: Stream): void {
    if (!this.#isServer) this.#strayBytes.allow(stream.receiveWindow.open);
    // Remembers the id if the peer may still send DATA or trailers. A peer that has sent END_STREAM may send neither.
    else if (stream.state !== "half-closed-remote")
      (this.#resetIds ??= new Lru(rememberedResets)).set(stream.id, true);
  }

  closed(stream: Stream): void {
    this.open.delete(stream.id);
    this.granted(stream.settle());
    this.#session.streamClosed();
  }

  data(id: number, bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.#expectSettings();
    const count = end - start;
    this.#use(count);
    // On an upstream connection, the session's flow-control credit is returned on receipt. For a client, it is returned
    // after the bytes were forwarded (core/limits.ts).
    if (!this.#isServer) this.#grantSession(count);
    if (count === 0 && !endStream) this.#emptyData();
    const stream = this.open.get(id);
    if (stream === undefined) return this.#strayData(id, count, endStream);
    try {
      this.#receiveBody(stream, count, endStream);
    } catch (error) {
      this.granted(count);
      return this.#streamError(stream, error);
    }
    stream.owe(count);
    try {
      stream.owner.data(bytes, start, end, endStream);
    } catch (error) {
      this.#ownerFault(stream, error);
    }
    if (endStream && !stream.isClosed) stream.step("receive-end");
  }

  /**
   * Charges a client's reset of a closed stream. It counts as a control frame, not as a reset, because it cancels
   * nothing. Go's client sends such a reset if it has not read the body of a response to the end.
   */
  #lateReset(): void {
    this.#floods.charge("control", 1, h2Limits.framesPerStream * this.open.size);
  }

  #emptyData(): void {
    if (this.#isServer) this.#floods.charge("empty", 1, h2Limits.framesPerStream * this.open.size);
    else this.#floods.charge("connection");
  }

  /** Padding counts against the flow-control windows like DATA (§6.9.1), but its credit is returned at once. */
  padding(id: number, count: number): void {
    this.#expectSettings();
    this.#use(count);
    this.#grantSession(count);
    this.open.get(id)?.padded(count);
  }

  #receiveBody(stream: Stream, count: number, endStream: boolean): void {
    stream.step("receive-data");
    if (!stream.receiveWindow.use(count))
      throw new ProtocolError(errorCode.FLOW_CONTROL_ERROR, "stream", "DATA beyond the window");
    if (!this.#isServer && !stream.isAnswered) throw malformed("body before its head");
    stream.countBody(count, endStream);
  }

  headers(
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
    dependsOnSelf: boolean,
  ): void {
    this.#expectSettings();
    const fields = this.#decoder.decode(bytes, start, end);
    if (dependsOnSelf && this.#isServer)
      throw sessionError(errorCode.PROTOCOL_ERROR, "Stream depends on itself");
    const stream = this.open.get(id);
    if (stream !== undefined) this.#moreHeaders(stream, fields, endStream);
    else if (this.#isServer) this.#openedByPeer(id, fields, endStream);
    else if (id >= this.#nextId || id % 2 === 0)
      throw sessionError(errorCode.PROTOCOL_ERROR, "HEADERS on an idle stream");
    else this.#floods.charge("connection");
  }

  reset(id: number, code: number): void {
    const stream = this.open.get(id);
    if (stream === undefined) {
      if (this.#isIdle(id)) throw sessionError(errorCode.PROTOCOL_ERROR, "RST_STREAM on an idle stream");
      // A client's first reset of a stream that the proxy has reset (`#resetIds`) is free. Any other reset of a closed
      // stream takes a token from the budget for control frames (A15).
      if (!this.#isServer) this.#floods.charge("connection");
      else if (this.#resetIds?.delete(id) !== true) this.#lateReset();
      return;
    }
    // A client's reset before the response head takes a token from the budget for resets (A1). A later reset is free,
    // because it normally ends a long-running request.
    if (this.#isServer && !stream.hasAnswered) this.#floods.charge("reset");
    this.#end(stream, code);
  }

  windowUpdate(id: number, increment: number): void {
    // From a client, even a stream's increment of 0 ends the session, because only an attack sends it (A2).
    if (increment === 0 && (this.#isServer || id === 0))
      throw sessionError(errorCode.PROTOCOL_ERROR, "WINDOW_UPDATE of 0");
    this.#floods.charge("update", 1, h2Limits.framesPerStream * this.open.size);
    if (id === 0) return this.outflow.widen(increment);
    const stream = this.open.get(id);
    if (stream === undefined) {
      if (this.#isIdle(id)) throw sessionError(errorCode.PROTOCOL_ERROR, "WINDOW_UPDATE on an idle stream");
      return;
    }
    try {
      if (increment === 0) throw malformed("WINDOW_UPDATE of 0");
      stream.widen(increment, "stream");
    } catch (error) {
      return this.#streamError(stream, error);
    }
    if (stream.queuedBytes > 0) this.outflow.pump();
  }

  /** Applies a changed INITIAL_WINDOW_SIZE to every open stream. The budget for SETTINGS limits this work (A13). */
  windowsChanged(change: number): void {
    for (const stream of this.open.all()) stream.widen(change, "session");
    this.outflow.pump();
  }

  /** Throws if the peer's first frame was not SETTINGS (RFC 9113 §3.4). */
  #expectSettings(): void {
    if (!this.peer.hasArrived) throw sessionError(errorCode.PROTOCOL_ERROR, "First frame is not SETTINGS");
  }

  #create(id: number, owner: StreamListener, isHead: boolean): Stream {
    const windows = { send: this.peer.initialWindow, receive: h2Limits.streamWindowBytes };
    const stream = new Stream(id, this, owner, windows, isHead);
    this.open.add(stream);
    return stream;
  }

  #openedByPeer(id: number, fields: Field[], end: boolean): void {
    if (!this.#isNew(id)) return;
    const stream = this.#create(id, ignored, false);
    stream.step("receive-headers");
    const refusal = this.#refusals.ofOneOf(this.open.size, this.#maxStreams);
    if (refusal !== undefined) return this.#streamError(stream, refusal);
    if (this.#decoder.isOversize) return this.#tooLong(stream, fields, end);
    const request = this.#requests.read(fields);
    if (typeof request === "string") return this.#streamError(stream, malformed(request));
    if (end && request.contentLength > 0)
      return this.#streamError(stream, malformed("content-length without a body"));
    stream.accept(this.#owner.opened(stream, request, end), request.contentLength);
    if (end && !stream.isClosed) stream.step("receive-end");
  }

  /**
   * True if this head opens a stream. False if the peer sent the head before it received the proxy's GOAWAY or
   * RST_STREAM; such a head is ignored. Throws if the head violates the protocol.
   */
  #isNew(id: number): boolean {
    if (id % 2 === 0) throw sessionError(errorCode.PROTOCOL_ERROR, "HEADERS on an even stream");
    const isKnown = id <= this.#seenId;
    this.#seenId = Math.max(this.#seenId, id);
    if (id > this.#acceptUpTo) return false;
    if (!isKnown) {
      this.#lastId = id;
      return true;
    }
    // The peer sent these trailers before it got the reset. They end the stream, so any later frame is an error.
    if (this.#resetIds?.delete(id) === true) return false;
    throw sessionError(errorCode.STREAM_CLOSED, "HEADERS on a closed stream");
  }

  #tooLong(stream: Stream, fields: readonly Field[], end: boolean): void {
    this.#refusals.longHead();
    if (end) stream.step("receive-end");
    stream.answerLongHead(fields.some(({ name, value }) => name === ":method" && value === "HEAD"));
  }

  #moreHeaders(stream: Stream, fields: Field[], end: boolean): void {
    try {
      if (this.#decoder.isOversize) throw oversize(this.#decoder);
      stream.step("receive-headers");
      if (this.#isServer || stream.isAnswered) stream.receiveTrailers(fields, end);
      else stream.receiveAnswer(fields, end);
    } catch (error) {
      return this.#streamError(stream, error);
    }
    try {
      stream.owner.headers(fields, end);
    } catch (error) {
      this.#ownerFault(stream, error);
    }
    if (end && !stream.isClosed) stream.step("receive-end");
  }

  #strayData(id: number, count: number, endStream: boolean): void {
    if (this.#isIdle(id)) throw sessionError(errorCode.PROTOCOL_ERROR, "DATA on an idle stream");
    this.granted(count);
    if (!this.#isServer) return this.#strayFromBackend(id, count);
    if (id > this.#acceptUpTo) return;
    const wasReset = endStream ? this.#resetIds?.delete(id) : this.#resetIds?.has(id);
    if (wasReset !== true) throw sessionError(errorCode.STREAM_CLOSED, "DATA on a closed stream");
  }

  /**
   * Answers DATA for a closed stream with a stream error (RFC 9113 §6.1), unless the backend sent it before it got the
   * proxy's reset. Frames and bytes use up a budget (A60).
   */
  #strayFromBackend(id: number, count: number): void {
    if (this.#strayBytes.take(count)) return;
    this.#floods.charge("connection", 1 + Math.ceil(count / h2Limits.unknownFrameBytes));
    this.writer.reset(id, errorCode.STREAM_CLOSED);
  }

  #isIdle(id: number): boolean {
    if (this.#isServer) return id % 2 === 0 || id > this.#seenId;
    return id % 2 === 0 || id >= this.#nextId;
  }

  #end(stream: Stream, code: number): void {
    stream.close();
    this.#notifyReset(stream.owner, code);
  }

  /**
   * Tells the owner of a stream that the stream was reset. Catches the owner's exceptions, because the owners of other
   * streams must be told as well.
   */
  #notifyReset(owner: StreamListener, code: number): void {
    try {
      owner.reset(code);
    } catch (error) {
      this.#owner.fault?.(error);
    }
  }

  /**
   * Resets a stream whose owner has thrown an exception, which is a bug in the proxy (D10). The session continues,
   * because its end would also end all other streams. An upstream connection has up to eighty streams.
   */
  #ownerFault(stream: Stream, error: unknown): void {
    const { owner } = stream;
    this.#owner.fault?.(error);
    stream.reset(errorCode.INTERNAL_ERROR);
    this.#notifyReset(owner, errorCode.INTERNAL_ERROR);
  }

  /** Resets a stream whose peer has violated the stream's rules. A client's budget is charged for the reset (A2). */
  #streamError(stream: Stream, error: unknown): void {
    if (!(error instanceof ProtocolError) || error.scope === "session") throw error;
    const { owner } = stream;
    stream.refuse(error);
    this.#notifyReset(owner, error.code);
    if (!this.#isServer || error.code === errorCode.REFUSED_STREAM) return;
    this.#owner.refused?.(error.message);
    this.#floods.charge("reset");
  }

  #use(count: number): void {
    if (!this.#receiveWindow.use(count))
      throw sessionError(errorCode.FLOW_CONTROL_ERROR, "DATA beyond the session's window");
  }

  #grantSession(count: number): void {
    const increment = this.#receiveWindow.grant(count);
    if (increment > 0) this.writer.windowUpdate(0, increment);
  }
}

function calm(what: string): ProtocolError {
  return new ProtocolError(errorCode.ENHANCE_YOUR_CALM, "session", what);
}

/**
 * Counts requests that are refused because of too many streams or a large header list. Too many such requests end the
 * session.
 */
export class Refusals {
  #inRow = 0;
  #longHeads = 0;

  /**
   * Returns the error for a stream above the limit (A3), which the client may retry; undefined: the stream is within
   * the limit. Throws if too many streams in a row were above the limit.
   */
  ofOneOf(openCount: number, mostStreams: number): ProtocolError | undefined {
    if (openCount <= mostStreams) {
      this.#inRow = 0;
      return undefined;
    }
    this.#inRow += 1;
    if (this.#inRow > h2Limits.refusedStreams) throw calm("Too many streams refused");
    return new ProtocolError(errorCode.REFUSED_STREAM, "stream", "Too many streams at once");
  }

  /**
   * Counts a request whose header list is too large (A7). The session's first such request is answered with 431. The
   * second one ends the session.
   */
  longHead(): void {
    this.#longHeads += 1;
    if (this.#longHeads > 1) throw calm("Header lists too long");
  }
}

/**
 * Limits DATA from a backend for closed streams. After a reset by the proxy, a backend may still send as many bytes as
 * the stream's window allowed. A backend that sends more violates flow control (A60).
 */
export class StrayBytes {
  #left = 0;

  allow(openBytes: number): void {
    this.#left = Math.min(h2Limits.strayBytes, this.#left + Math.max(0, openBytes));
  }

  /** Counts DATA bytes that arrive for a closed stream. False if the backend has sent more than the windows allowed. */
  take(count: number): boolean {
    this.#left = Math.max(-1, this.#left - count);
    return this.#left >= 0;
  }
}
