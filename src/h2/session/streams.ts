/**
 * The streams of one session: opening, heads, bodies, ends, and the windows they share. What breaks a rule of its
 * own stream costs that stream here; what breaks the session is thrown on to session.ts.
 */
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import type { Buffered } from "../core/buffered.ts";
import type { Field } from "../core/field.ts";
import { type RequestHead, readRequest } from "../core/fields.ts";
import { h2Limits } from "../core/limits.ts";
import { errorCode, ProtocolError } from "../core/protocol-error.ts";
import type { StreamListener } from "../core/stream-writer.ts";
import type { FrameWriter } from "../frame/writer.ts";
import { HpackDecoder } from "../hpack/hpack-decoder.ts";
import { HpackEncoder } from "../hpack/hpack-encoder.ts";
import type { Floods } from "./floods.ts";
import { answerLongHead, countBody, malformed, receiveAnswer, receiveTrailers } from "./message.ts";
import { Outflow } from "./outflow.ts";
import { defaultSettings } from "./settings.ts";
import { Stream, type StreamHost } from "./stream.ts";
import { StreamTable } from "./stream-table.ts";
import { defaultWindow, ReceiveWindow, widened } from "./window.ts";

export type Role = "server" | "client";

export type StreamsOwner = {
  opened(stream: Stream, request: RequestHead, end: boolean): StreamListener;
  changed(): void;
  /** A stream's owner threw; the stream is reset. */
  fault(error: unknown): void;
};

/** The last stream that a client can open (RFC 9113 §5.1.1): a busy upstream connection gets there within days. */
const lastStreamId = 0x7fff_ffff;
/** A peer that is told of a reset stops within a round trip: more than this many are not under way at once. */
const rememberedResets = 256;
const nobody: StreamListener = { headers() {}, data() {}, reset() {}, sent() {} };

function sessionError(code: 1 | 3 | 5, what: string): ProtocolError {
  return new ProtocolError(code, "session", what);
}

export class Streams implements StreamHost {
  readonly writer: FrameWriter;
  readonly encoder = new HpackEncoder();
  readonly outflow: Outflow;
  readonly peer = defaultSettings();
  readonly open = new StreamTable<Stream>();
  readonly #decoder = new HpackDecoder();
  readonly #isServer: boolean;
  readonly #owner: StreamsOwner;
  readonly #floods: Floods;
  readonly #maxStreams: number;
  readonly #receiveWindow: ReceiveWindow;
  /**
   * Streams that we reset lately. Their peer cannot know yet, so what it still sends for them is let pass, not punished
   * (RFC 9113 §5.1). Deleted when the peer is done with one: nothing more is forgiven.
   */
  readonly #resetIds = new Lru<number, true>(rememberedResets);
  #lastId = 0;
  /** The highest that the peer used, taken or not: what is above it is idle. */
  #seenId = 0;
  #nextId = 1;
  readonly #refusals = new Refusals();
  readonly #strayBytes = new StrayBytes();
  /** Streams that the peer opens above this id are not served: GOAWAY has said so. */
  acceptUpTo = Number.POSITIVE_INFINITY;

  constructor(
    role: Role,
    parts: {
      writer: FrameWriter;
      owner: StreamsOwner;
      floods: Floods;
      maxStreams: number;
      buffered: Buffered;
    },
  ) {
    this.#isServer = role === "server";
    this.writer = parts.writer;
    this.outflow = new Outflow(parts.buffered);
    this.#owner = parts.owner;
    this.#floods = parts.floods;
    this.#maxStreams = parts.maxStreams;
    this.#receiveWindow = new ReceiveWindow(
      this.#isServer ? h2Limits.downstreamWindowBytes : h2Limits.connectionWindowBytes,
    );
  }

  /** The highest stream id that the peer opened and we took. */
  get lastId(): number {
    return this.#lastId;
  }

  get hasIds(): boolean {
    return this.#nextId <= lastStreamId;
  }

  /** What the session's receive window is to be widened by at the start (§6.9.2 starts it at 65,535). */
  get firstUpdate(): number {
    return this.#receiveWindow.size - defaultWindow;
  }

  /** Client role: opens a stream and sends its head. */
  start(fields: readonly Field[], end: boolean, owner: StreamListener): Stream {
    const stream = this.#create(this.#nextId, owner);
    this.#nextId += 2;
    stream.sendHeaders(fields, end);
    return stream;
  }

  /** Every owner hears that its stream is gone; `code` says why. */
  endAll(code: number): void {
    for (const stream of this.open.all()) {
      // Nothing is granted to a peer that is told to go.
      stream.settle();
      this.#end(stream, code);
    }
  }

  /** The peer's GOAWAY: what is above its last id was never processed and may be sent again elsewhere (§6.8). */
  refuseAbove(lastId: number): void {
    for (const stream of this.open.all()) {
      if (stream.id > lastId) this.#end(stream, errorCode.REFUSED_STREAM);
    }
  }

  // --- what a stream needs of its session ---

  /** Whoever opens its windows by crumbs would earn more updates with each (A19). */
  spent(count: number, isCrumb: boolean): void {
    this.outflow.spend(count);
    if (!isCrumb) this.#floods.earnUpdates();
  }

  granted(count: number): void {
    if (this.#isServer) this.#grantSession(count);
  }

  resetSent(stream: Stream): void {
    if (!this.#isServer) this.#strayBytes.forgive(stream.receiveWindow.open);
    // A peer that has ended its half has nothing under way but what a closed stream forgives anyway.
    else if (stream.state !== "half-closed-remote") this.#resetIds.set(stream.id, true);
  }

  closed(stream: Stream): void {
    this.open.delete(stream.id);
    this.granted(stream.settle());
    this.#owner.changed();
  }

  // --- frames ---

  data(id: number, bytes: Buffer, start: number, end: number, endStream: boolean): void {
    const count = end - start;
    this.#use(count);
    // An upstream connection's window is given back at once, a client's when its octets have gone on (limits.ts).
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

  /** Go's client resets a body that it has not read to its end, though we have sent all of it: nothing is cancelled. */
  #lateReset(): void {
    this.#floods.charge("control", 1, h2Limits.framesPerStream * this.open.size);
  }

  #emptyData(): void {
    if (this.#isServer) this.#floods.charge("empty", 1, h2Limits.framesPerStream * this.open.size);
    else this.#floods.charge("connection");
  }

  /** Padding uses the windows as DATA does (§6.9.1), and nobody but us will give it back. */
  padding(id: number, count: number): void {
    this.#use(count);
    this.#grantSession(count);
    this.open.get(id)?.padded(count);
  }

  #receiveBody(stream: Stream, count: number, endStream: boolean): void {
    stream.step("receive-data");
    if (!stream.receiveWindow.use(count))
      throw new ProtocolError(errorCode.FLOW_CONTROL_ERROR, "stream", "DATA beyond the window");
    if (!this.#isServer && !stream.isAnswered) throw malformed("body before its head");
    countBody(stream, count, endStream);
  }

  headers(
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
    dependsOnSelf: boolean,
  ): void {
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
      // Ours and the peer's crossed on the way: free, but once only (A15).
      if (!this.#isServer) this.#floods.charge("connection");
      else if (!this.#resetIds.delete(id)) this.#lateReset();
      return;
    }
    // A long-running stream that has its answer is cancelled as a matter of course; before that it costs (A1).
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
      stream.sendWindow = widened(stream.sendWindow, increment, "stream");
    } catch (error) {
      return this.#streamError(stream, error);
    }
    if (stream.queuedBytes > 0) this.outflow.pump();
  }

  /** INITIAL_WINDOW_SIZE changed by so much; O(open streams), and SETTINGS are budgeted (A13). */
  windowsChanged(change: number): void {
    for (const stream of this.open.all()) stream.sendWindow = widened(stream.sendWindow, change, "session");
    this.outflow.pump();
  }

  // --- steps of the above ---

  #create(id: number, owner: StreamListener): Stream {
    const stream = new Stream(id, this, owner, {
      send: this.peer.initialWindow,
      receive: limits.streamWindowBytes,
    });
    this.open.add(stream);
    return stream;
  }

  #openedByPeer(id: number, fields: Field[], end: boolean): void {
    if (!this.#isNew(id)) return;
    const stream = this.#create(id, nobody);
    stream.step("receive-headers");
    const refusal = this.#refusals.ofOneOf(this.open.size, this.#maxStreams);
    if (refusal !== undefined) return this.#streamError(stream, refusal);
    if (this.#decoder.isOversize) return this.#tooLong(stream, end);
    const request = readRequest(fields);
    if (typeof request === "string") return this.#streamError(stream, malformed(request));
    stream.expected = request.contentLength;
    if (end && request.contentLength > 0)
      return this.#streamError(stream, malformed("content-length without a body"));
    stream.owner = this.#owner.opened(stream, request, end);
    if (end && !stream.isClosed) stream.step("receive-end");
  }

  /** Does this head open a stream? False when it is to be ignored: it crossed our GOAWAY, or our reset. */
  #isNew(id: number): boolean {
    if (id % 2 === 0) throw sessionError(errorCode.PROTOCOL_ERROR, "HEADERS on an even stream");
    const isKnown = id <= this.#seenId;
    this.#seenId = Math.max(this.#seenId, id);
    if (id > this.acceptUpTo) return false;
    if (!isKnown) {
      this.#lastId = id;
      return true;
    }
    // Trailers that were under way, after which there is nothing more to forgive.
    if (this.#resetIds.delete(id)) return false;
    throw sessionError(errorCode.STREAM_CLOSED, "HEADERS on a closed stream");
  }

  #tooLong(stream: Stream, end: boolean): void {
    this.#refusals.longHead();
    if (end) stream.step("receive-end");
    answerLongHead(stream);
  }

  #moreHeaders(stream: Stream, fields: Field[], end: boolean): void {
    try {
      if (this.#decoder.isOversize) throw malformed("header list too long");
      stream.step("receive-headers");
      if (this.#isServer || stream.isAnswered) receiveTrailers(stream, fields, end);
      else receiveAnswer(stream, fields, end);
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
    if (id > this.acceptUpTo) return;
    const wasReset = endStream ? this.#resetIds.delete(id) : this.#resetIds.has(id);
    if (!wasReset) throw sessionError(errorCode.STREAM_CLOSED, "DATA on a closed stream");
  }

  #isIdle(id: number): boolean {
    if (this.#isServer) return id % 2 === 0 || id > this.#seenId;
    return id % 2 === 0 || id >= this.#nextId;
  }

  /** The stream ends by the peer's doing: its owner hears the code, the peer hears nothing. */
  #end(stream: Stream, code: number): void {
    stream.dropQueue();
    stream.state = "closed";
    this.closed(stream);
    this.#tellReset(stream.owner, code);
  }

  /** An owner that throws keeps nobody else from being told: the others would hang for ever. */
  #tellReset(owner: StreamListener, code: number): void {
    try {
      owner.reset(code);
    } catch (error) {
      this.#owner.fault(error);
    }
  }

  /**
   * The owner threw: a fault of ours, whatever the peer sent. It costs this stream and its other side (D10); the
   * session, which may be an upstream connection of eighty streams, goes on.
   */
  #ownerFault(stream: Stream, error: unknown): void {
    const { owner } = stream;
    this.#owner.fault(error);
    stream.reset(errorCode.INTERNAL_ERROR);
    this.#tellReset(owner, errorCode.INTERNAL_ERROR);
  }

  /** The peer broke a rule of this stream: both sides hear of it, and it costs budget (A2). */
  #streamError(stream: Stream, error: unknown): void {
    if (!(error instanceof ProtocolError) || error.scope === "session") throw error;
    const { owner } = stream;
    stream.isMalformed = true;
    stream.reset(error.code);
    this.#tellReset(owner, error.code);
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

/** How often a client's requests are refused unread, before its session goes: for being too many, or too long. */
function calm(what: string): ProtocolError {
  return new ProtocolError(errorCode.ENHANCE_YOUR_CALM, "session", what);
}

export class Refusals {
  #inRow = 0;
  #longHeads = 0;

  /** With so many open, what is wrong with one more (A3); it was not looked at, so the client may send it again. */
  ofOneOf(openCount: number, mostStreams: number): ProtocolError | undefined {
    if (openCount <= mostStreams) {
      this.#inRow = 0;
      return undefined;
    }
    this.#inRow += 1;
    if (this.#inRow > h2Limits.refusedStreams) throw calm("Too many streams refused");
    return new ProtocolError(errorCode.REFUSED_STREAM, "stream", "Too many streams at once");
  }

  /** A header list beyond its bound: one is answered, the next ends the session (A7). */
  longHead(): void {
    this.#longHeads += 1;
    if (this.#longHeads > 1) throw calm("Header lists too long");
  }
}

/**
 * DATA of a backend for streams that are over. What we reset may have been under way, as much as its window let through;
 * whoever sends more has no end of it (A60).
 */
export class StrayBytes {
  #left = 0;

  /** A stream was reset whose window let through so much more. */
  forgive(openBytes: number): void {
    this.#left = Math.min(h2Limits.strayBytes, this.#left + Math.max(0, openBytes));
  }

  /** So much came for a stream that is over. Throws STREAM_CLOSED for the session when none was under way. */
  take(count: number): void {
    this.#left -= count;
    if (this.#left < 0)
      throw new ProtocolError(errorCode.STREAM_CLOSED, "session", "DATA on a closed stream");
  }
}
