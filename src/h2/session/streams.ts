/**
 * The streams of one session: opening, heads, bodies, ends, and the windows they share. A violation of a stream's rules
 * ends that stream here; a violation of the session's rules is thrown to session.ts.
 */
import { Lru } from "../../base/lru.ts";
import type { Buffered } from "../core/buffered.ts";
import type { Field } from "../core/field.ts";
import { type RequestHead, readRequest } from "../core/fields.ts";
import { h2Limits } from "../core/limits.ts";
import { errorCode, malformed, ProtocolError } from "../core/protocol-error.ts";
import type { StreamListener } from "../core/stream-writer.ts";
import type { StreamFrames } from "../frame/frame.ts";
import type { FrameWriter } from "../frame/writer.ts";
import { HpackDecoder } from "../hpack/hpack-decoder.ts";
import { HpackEncoder } from "../hpack/hpack-encoder.ts";
import type { Floods } from "./floods.ts";
import { Outflow } from "./outflow.ts";
import { defaultSettings } from "./settings.ts";
import { Stream, type StreamHost } from "./stream.ts";
import { StreamTable } from "./stream-table.ts";
import { defaultWindow, ReceiveWindow } from "./window.ts";

export type Role = "server" | "client";

export type StreamsOwner = {
  /** Server role: a request arrived. Returns the listener of its stream; `end`: no body follows. */
  opened(stream: Stream, request: RequestHead, end: boolean): StreamListener;
  /** A stream's owner threw and the stream was reset. This is a bug in the proxy, to be counted. */
  fault?(error: unknown): void;
};

/** The last stream id that a client can open (RFC 9113 §5.1.1): a busy upstream connection reaches it within days. */
const lastStreamId = 0x7fff_ffff;
/** A peer stops within a round trip after RST_STREAM, so no more than this many resets are in flight. */
const rememberedResets = 256;
const ignored: StreamListener = { headers() {}, data() {}, reset() {}, sent() {} };

function sessionError(code: 1 | 3 | 5, what: string): ProtocolError {
  return new ProtocolError(code, "session", what);
}

export class Streams implements StreamHost, StreamFrames {
  readonly writer: FrameWriter;
  readonly encoder = new HpackEncoder();
  readonly outflow: Outflow;
  readonly peer = defaultSettings();
  readonly open = new StreamTable<Stream>();
  readonly #decoder = new HpackDecoder();
  readonly #isServer: boolean;
  readonly #owner: StreamsOwner;
  readonly #onClosed: () => void;
  readonly #floods: Floods;
  readonly #maxStreams: number;
  readonly #receiveWindow: ReceiveWindow;
  /**
   * Streams that we reset recently. Frames that the peer sent before it received the reset are ignored, not punished
   * (RFC 9113 §5.1). An entry is deleted when the peer ends the stream: later frames are errors.
   */
  readonly #resetIds = new Lru<number, true>(rememberedResets);
  #lastId = 0;
  /** The highest stream id that the peer used, accepted or not: higher ones are idle. */
  #seenId = 0;
  #nextId = 1;
  readonly #refusals = new Refusals();
  readonly #strayBytes = new StrayBytes();
  /** Later streams above this id are not served: GOAWAY has named it. */
  #acceptUpTo = Number.POSITIVE_INFINITY;

  constructor(
    role: Role,
    parts: {
      writer: FrameWriter;
      owner: StreamsOwner;
      /** A stream is closed. */
      onClosed: () => void;
      floods: Floods;
      maxStreams: number;
      buffered: Buffered;
    },
  ) {
    this.#isServer = role === "server";
    this.writer = parts.writer;
    this.outflow = new Outflow(parts.buffered);
    this.#owner = parts.owner;
    this.#onClosed = parts.onClosed;
    this.#floods = parts.floods;
    this.#maxStreams = parts.maxStreams;
    this.#receiveWindow = new ReceiveWindow(
      this.#isServer ? h2Limits.downstreamWindowBytes : h2Limits.connectionWindowBytes,
    );
  }

  /** The highest stream id that the peer opened and we accepted. */
  get lastId(): number {
    return this.#lastId;
  }

  get hasIds(): boolean {
    return this.#nextId <= lastStreamId;
  }

  /** The initial increment of the session's receive window (§6.9.2 starts it at 65,535). */
  get firstUpdate(): number {
    return this.#receiveWindow.size - defaultWindow;
  }

  /** Client role: opens a stream and sends its head. */
  start(fields: readonly Field[], end: boolean, owner: StreamListener, isHead: boolean): Stream {
    const stream = this.#create(this.#nextId, owner, isHead);
    this.#nextId += 2;
    stream.sendHeaders(fields, end);
    return stream;
  }

  /** Streams that the peer opens from now on are not served. */
  stopAccepting(): void {
    this.#acceptUpTo = this.#lastId;
  }

  /** Ends every stream; each owner gets `code` as the reason. */
  endAll(code: number): void {
    for (const stream of this.open.all()) {
      // Nothing is granted to a peer that must go.
      stream.settle();
      this.#end(stream, code);
    }
  }

  /** The peer's GOAWAY: streams above its last id were not processed and may be retried elsewhere (§6.8). */
  refuseAbove(lastId: number): void {
    for (const stream of this.open.all()) {
      if (stream.id > lastId) this.#end(stream, errorCode.REFUSED_STREAM);
    }
  }

  // --- called by a stream ---

  /** Without this, a peer that opens its windows in tiny steps would earn more updates with each (A19). */
  spent(count: number, isCrumb: boolean): void {
    this.outflow.spend(count);
    if (!isCrumb) this.#floods.earnUpdates();
  }

  granted(count: number): void {
    if (this.#isServer) this.#grantSession(count);
  }

  resetSent(stream: Stream): void {
    if (!this.#isServer) this.#strayBytes.allow(stream.receiveWindow.open);
    // A peer that has ended its half can only have frames in flight that a closed stream ignores anyway.
    else if (stream.state !== "half-closed-remote") this.#resetIds.set(stream.id, true);
  }

  closed(stream: Stream): void {
    this.open.delete(stream.id);
    this.granted(stream.settle());
    this.#onClosed();
  }

  // --- frames of streams, called by the reader ---

  data(id: number, bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.#expectSettings();
    const count = end - start;
    this.#use(count);
    // An upstream connection's window is returned on receipt, a client's when its bytes have been forwarded
    // (limits.ts).
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
   * A reset after the complete response cancels nothing, so it is charged as a control frame only. Go's client sends it
   * for a body that it has not read to the end.
   */
  #lateReset(): void {
    this.#floods.charge("control", 1, h2Limits.framesPerStream * this.open.size);
  }

  #emptyData(): void {
    if (this.#isServer) this.#floods.charge("empty", 1, h2Limits.framesPerStream * this.open.size);
    else this.#floods.charge("connection");
  }

  /** Padding uses the windows as DATA does (§6.9.1), and no owner grants it back, so it is returned here. */
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
    if (dependsOnSelf) throw sessionError(errorCode.PROTOCOL_ERROR, "Stream depends on itself");
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
      // Our reset and the peer's crossed: free, but only once (A15).
      if (!this.#isServer) this.#floods.charge("connection");
      else if (!this.#resetIds.delete(id)) this.#lateReset();
      return;
    }
    // A client normally cancels a long-running stream after its response; before the response a reset costs budget
    // (A1).
    if (this.#isServer && !stream.hasAnswered) this.#floods.charge("reset");
    this.#end(stream, code);
  }

  windowUpdate(id: number, increment: number): void {
    if (increment === 0) throw sessionError(errorCode.PROTOCOL_ERROR, "WINDOW_UPDATE of 0");
    this.#floods.charge("update", 1, h2Limits.framesPerStream * this.open.size);
    if (id === 0) return this.outflow.widen(increment);
    const stream = this.open.get(id);
    if (stream === undefined) {
      if (this.#isIdle(id)) throw sessionError(errorCode.PROTOCOL_ERROR, "WINDOW_UPDATE on an idle stream");
      return;
    }
    try {
      stream.widen(increment, "stream");
    } catch (error) {
      return this.#streamError(stream, error);
    }
    if (stream.queuedBytes > 0) this.outflow.pump();
  }

  /** INITIAL_WINDOW_SIZE changed by `change`. This takes O(open streams), and SETTINGS have a budget (A13). */
  windowsChanged(change: number): void {
    for (const stream of this.open.all()) stream.widen(change, "session");
    this.outflow.pump();
  }

  // --- helpers ---

  /** A peer's first frame must be SETTINGS (RFC 9113 §3.4). */
  #expectSettings(): void {
    if (!this.peer.hasArrived) throw sessionError(errorCode.PROTOCOL_ERROR, "No SETTINGS first");
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
    if (this.#decoder.isOversize) return this.#tooLong(stream, end);
    const request = readRequest(fields);
    if (typeof request === "string") return this.#streamError(stream, malformed(request));
    if (end && request.contentLength > 0)
      return this.#streamError(stream, malformed("content-length without a body"));
    stream.accept(this.#owner.opened(stream, request, end), request.contentLength);
    if (end && !stream.isClosed) stream.step("receive-end");
  }

  /** True if this head opens a stream. False if it must be ignored because it crossed our GOAWAY or our reset. */
  #isNew(id: number): boolean {
    if (id % 2 === 0) throw sessionError(errorCode.PROTOCOL_ERROR, "HEADERS on an even stream");
    const isKnown = id <= this.#seenId;
    this.#seenId = Math.max(this.#seenId, id);
    if (id > this.#acceptUpTo) return false;
    if (!isKnown) {
      this.#lastId = id;
      return true;
    }
    // Trailers that were in flight. They end the stream, so later frames are errors.
    if (this.#resetIds.delete(id)) return false;
    throw sessionError(errorCode.STREAM_CLOSED, "HEADERS on a closed stream");
  }

  #tooLong(stream: Stream, end: boolean): void {
    this.#refusals.longHead();
    if (end) stream.step("receive-end");
    stream.answerLongHead();
  }

  #moreHeaders(stream: Stream, fields: Field[], end: boolean): void {
    try {
      if (this.#decoder.isOversize) throw malformed("header list too long");
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
    if (!this.#isServer) return this.#strayBytes.take(count);
    if (id > this.#acceptUpTo) return;
    const wasReset = endStream ? this.#resetIds.delete(id) : this.#resetIds.has(id);
    if (!wasReset) throw sessionError(errorCode.STREAM_CLOSED, "DATA on a closed stream");
  }

  #isIdle(id: number): boolean {
    if (this.#isServer) return id % 2 === 0 || id > this.#seenId;
    return id % 2 === 0 || id >= this.#nextId;
  }

  /** The peer ended the stream: its owner gets the code, and nothing is sent to the peer. */
  #end(stream: Stream, code: number): void {
    stream.close();
    this.#notifyReset(stream.owner, code);
  }

  /** An exception in one owner must not keep the others from being notified: they would hang. */
  #notifyReset(owner: StreamListener, code: number): void {
    try {
      owner.reset(code);
    } catch (error) {
      this.#owner.fault?.(error);
    }
  }

  /**
   * The owner threw: a bug in the proxy, whatever the peer sent. It ends this stream and its other side (D10). The
   * session, which may be an upstream connection with eighty streams, continues.
   */
  #ownerFault(stream: Stream, error: unknown): void {
    const { owner } = stream;
    this.#owner.fault?.(error);
    stream.reset(errorCode.INTERNAL_ERROR);
    this.#notifyReset(owner, errorCode.INTERNAL_ERROR);
  }

  /** The peer violated a rule of this stream: owner and peer are notified, and it costs budget (A2). */
  #streamError(stream: Stream, error: unknown): void {
    if (!(error instanceof ProtocolError) || error.scope === "session") throw error;
    const { owner } = stream;
    stream.refuse(error.code);
    this.#notifyReset(owner, error.code);
    if (this.#isServer && error.code !== errorCode.REFUSED_STREAM) this.#floods.charge("reset");
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

/** Counts a client's requests that are refused unread, for being too many or too long: beyond a limit its session ends. */
export class Refusals {
  #inRow = 0;
  #longHeads = 0;

  /** Returns the error for one stream too many (A3). The stream was not processed, so the client may retry it. */
  ofOneOf(openCount: number, mostStreams: number): ProtocolError | undefined {
    if (openCount <= mostStreams) {
      this.#inRow = 0;
      return undefined;
    }
    this.#inRow += 1;
    if (this.#inRow > h2Limits.refusedStreams) throw calm("Too many streams refused");
    return new ProtocolError(errorCode.REFUSED_STREAM, "stream", "Too many streams at once");
  }

  /** A header list beyond its limit: the first is answered, the next ends the session (A7). */
  longHead(): void {
    this.#longHeads += 1;
    if (this.#longHeads > 1) throw calm("Header lists too long");
  }
}

/**
 * DATA from a backend for streams that are over. What a reset stream's window allowed may have been in flight; a
 * backend that sends more violates flow control (A60).
 */
export class StrayBytes {
  #left = 0;

  /** A stream was reset whose window allowed this many more bytes. */
  allow(openBytes: number): void {
    this.#left = Math.min(h2Limits.strayBytes, this.#left + Math.max(0, openBytes));
  }

  /**
   * This many bytes arrived for a stream that is over. Throws STREAM_CLOSED for the session if none can have been in
   * flight.
   */
  take(count: number): void {
    this.#left -= count;
    if (this.#left < 0)
      throw new ProtocolError(errorCode.STREAM_CLOSED, "session", "DATA on a closed stream");
  }
}
