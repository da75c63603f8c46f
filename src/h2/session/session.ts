/**
 * One HTTP/2 session without its socket. It takes received chunks. Once per turn of the event loop, it gives its owner
 * the buffers that must be written to the socket. As a server it accepts a client's requests. As a client, on an
 * upstream connection, it opens streams. streams.ts handles the streams; this file handles SETTINGS, PING, GOAWAY and
 * deadlines. Only this file ends the session after a ProtocolError.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { Buffered } from "../core/buffered.ts";
import type { Field } from "../core/field.ts";
import type { FlushScheduler } from "../core/flush-scheduler.ts";
import { h2Limits } from "../core/limits.ts";
import { type ErrorCode, errorCode, ProtocolError } from "../core/protocol-error.ts";
import type { StreamListener } from "../core/stream-writer.ts";
import { frameHeaderBytes, type SessionFrames } from "../frame/frame.ts";
import { FrameReader } from "../frame/reader.ts";
import { FrameWriter } from "../frame/writer.ts";
import { Floods } from "./floods.ts";
import { applySettings, setting } from "./settings.ts";
import type { Stream } from "./stream.ts";
import { type Role, Streams, type StreamsOwner } from "./streams.ts";
import { largestWindow } from "./window.ts";

/** Callbacks of a session, which the owner of its socket implements. */
export type SessionOwner = StreamsOwner & {
  /**
   * Writes the buffers in order. Returns false if DATA must wait until `drained` is called. The owner calls `written`
   * after the socket has written the buffers. The session then reuses the buffers.
   */
  write(buffers: Buffer[], written: (() => void) | undefined): boolean;
  /**
   * Called when SETTINGS or GOAWAY arrived, or a stream closed. Requests that wait for a stream must then check whether
   * one can be opened.
   */
  changed(): void;
  /** Called when the peer has answered the PING with this `number`. */
  ponged(number: number): void;
  /**
   * Called when the session is over. The owner must write the queued frames, such as a GOAWAY, and then end the socket.
   */
  ended(error: ProtocolError | undefined): void;
};

type SessionOptions = {
  readonly role: Role;
  readonly clock: Clock;
  readonly turn: FlushScheduler;
  readonly owner: SessionOwner;
  /** Server role: maximum number of streams that the peer may have open; default: `downstreamStreams`. */
  readonly maxStreams?: number;
  /** Counts the DATA that this session buffers; default: a counter without a limit. */
  readonly buffered?: Buffered;
  /** True if the session sends many requests of many clients. Its HPACK encoder then remembers more fields. */
  readonly hasManyRequests?: boolean;
};

export class Session implements SessionFrames {
  readonly #role: Role;
  readonly #clock: Clock;
  readonly #turn: FlushScheduler;
  readonly #owner: SessionOwner;
  readonly #reader: FrameReader;
  readonly #writer: FrameWriter;
  readonly #streams: Streams;
  readonly #floods: Floods;
  #pings = 0;
  /** Clock reading (ms) by which the peer's first SETTINGS must have arrived (A22). */
  readonly #settingsDueAt: number;
  /** Clock reading (ms) since which an incomplete frame or header block has made no progress; 0: none is incomplete. */
  #midFrameSince = 0;
  #isGoing = false;
  #isPeerGoing = false;
  #isOver = false;

  constructor(options: SessionOptions) {
    const { role, clock, turn, owner } = options;
    this.#role = role;
    this.#clock = clock;
    this.#turn = turn;
    this.#owner = owner;
    this.#floods = new Floods(clock);
    this.#writer = new FrameWriter(this);
    const maxStreams = options.maxStreams ?? h2Limits.downstreamStreams;
    this.#streams = new Streams(role, {
      writer: this.#writer,
      floods: this.#floods,
      maxStreams,
      buffered: options.buffered ?? new Buffered(Number.POSITIVE_INFINITY),
      hasManyRequests: options.hasManyRequests === true,
      owner,
      session: this,
    });
    this.#reader = new FrameReader(this.#streams, this, role === "server");
    this.#settingsDueAt = clock.now() + h2Limits.prefaceMs;
    this.#sendPreface(role, maxStreams);
  }

  #sendPreface(role: Role, maxStreams: number): void {
    if (role === "client") this.#writer.preface();
    this.#writer.settings([
      role === "client" ? [setting.ENABLE_PUSH, 0] : [setting.MAX_CONCURRENT_STREAMS, maxStreams],
      [setting.INITIAL_WINDOW_SIZE, h2Limits.streamWindowBytes],
      [setting.MAX_HEADER_LIST_SIZE, limits.headerListBytes],
    ]);
    this.#writer.windowUpdate(0, this.#streams.firstUpdate);
  }

  /**
   * Client role: true if another stream can be opened, because neither side has sent GOAWAY and unused stream ids are
   * left.
   */
  get isOpen(): boolean {
    return !this.#isOver && !this.#isGoing && !this.#isPeerGoing && this.#streams.hasIds;
  }

  /** True if the peer's SETTINGS have arrived. Until then, the peer's stream limit is unknown. */
  get isSettled(): boolean {
    return this.#streams.peer.hasArrived;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get isPeerGoing(): boolean {
    return this.#isPeerGoing;
  }

  get openCount(): number {
    return this.#streams.open.size;
  }

  get streams(): readonly Stream[] {
    return this.#streams.open.all();
  }

  /** Calls `visit` for each open stream. `visit` must not open or end streams. */
  visitStreams(visit: (stream: Stream) => void): void {
    this.#streams.open.visit(visit);
  }

  get peerMaxStreams(): number {
    return this.#streams.peer.maxStreams;
  }

  get queuedBytes(): number {
    return this.#streams.outflow.queuedBytes;
  }

  receive(chunk: Buffer): void {
    if (this.#isOver) return;
    const { progress } = this.#reader;
    try {
      this.#reader.receive(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#fail(error);
    }
    if (!this.#reader.isMidFrame) this.#midFrameSince = 0;
    else if (this.#midFrameSince === 0 || this.#reader.progress !== progress)
      this.#midFrameSince = this.#clock.now();
  }

  /** Client role: opens a stream and sends its head. The caller must check `isOpen` first. `isHead`: the method is HEAD. */
  open(fields: readonly Field[], end: boolean, owner: StreamListener, isHead = false): Stream {
    return this.#streams.start(fields, end, owner, isHead);
  }

  /** Sends a PING and returns its number. When the peer answers, `ponged` is called with this number. */
  sendPing(): number {
    const payload = Buffer.alloc(8);
    this.#pings += 1;
    payload.writeUInt32BE(this.#pings, 4);
    this.#writer.ping(payload, 0, false);
    return this.#pings;
  }

  /** First step of a graceful end: sends a GOAWAY that announces the end and refuses no stream (RFC 9113 §6.8). */
  announceEnd(): void {
    if (!this.#isOver && !this.#isGoing) this.#writer.goAway(largestWindow, errorCode.NO_ERROR, "");
  }

  /**
   * Second step of a graceful end: sends a GOAWAY that refuses new streams. The session ends after its last open
   * stream.
   */
  goAway(code: ErrorCode = errorCode.NO_ERROR, debug = ""): void {
    if (this.#isOver || this.#isGoing) return;
    this.#isGoing = true;
    this.#streams.stopAccepting();
    this.#writer.goAway(this.#streams.lastId, code, debug);
    this.#endIfDone();
  }

  /** Server role: called when a backend has answered a client's request, which earns credit for control frames. */
  answered(): void {
    this.#floods.answered();
  }

  drained(): void {
    if (!this.#isOver) this.#streams.outflow.drained();
  }

  /** Called when the socket is closed. The owner of every open stream gets `lost`. */
  lose(): void {
    if (!this.#isOver) this.#end(undefined);
  }

  /** Ends the session if the peer has missed a deadline (A6, A18, A22). Called about once a second. */
  check(): void {
    if (this.#isOver) return;
    const now = this.#clock.now();
    const frameLimitMs = this.#reader.isMidBlock ? h2Limits.headerBlockMs : h2Limits.frameMs;
    if (!this.isSettled && now > this.#settingsDueAt) {
      this.#fail(new ProtocolError(errorCode.SETTINGS_TIMEOUT, "session", "SETTINGS did not arrive in time"));
    } else if (this.#midFrameSince !== 0 && now - this.#midFrameSince > frameLimitMs) {
      this.#fail(new ProtocolError(errorCode.PROTOCOL_ERROR, "session", "Frame not completed in time"));
    }
  }

  flush(): void {
    this.#streams.outflow.gathered();
    const buffers = this.#writer.take();
    if (buffers.length === 0) return;
    this.#streams.outflow.flushed(this.#owner.write(buffers, this.#writer.release()));
  }

  priority(_id: number, dependsOnSelf: boolean): void {
    if (dependsOnSelf && this.#role === "server")
      throw new ProtocolError(errorCode.PROTOCOL_ERROR, "session", "Stream depends on itself");
    this.#floods.charge("priority", 1, 10 * this.#streams.open.size);
  }

  settings(bytes: Buffer, start: number, end: number): void {
    if ((end - start) / 6 > h2Limits.settingsEntries) {
      throw new ProtocolError(errorCode.ENHANCE_YOUR_CALM, "session", "SETTINGS with too many entries");
    }
    // The budget does not grow with the number of open streams, because a changed window size costs work for each of
    // them (A13).
    this.#floods.charge("control");
    const { peer, encoder } = this.#streams;
    const before = peer.initialWindow;
    applySettings(peer, bytes, start, end);
    encoder.setPeerTableLimit(peer.headerTableBytes);
    this.#writer.settingsAcknowledgement();
    if (peer.initialWindow !== before) this.#streams.windowsChanged(peer.initialWindow - before);
    this.#owner.changed();
  }

  settingsAcknowledged(): void {
    this.#chargeControl();
  }

  ping(bytes: Buffer, start: number): void {
    this.#chargeControl();
    this.#writer.ping(bytes, start, true);
  }

  /**
   * Handles the answer to a PING. Answers from a client are charged to a budget, because the proxy sends each client
   * only one PING.
   */
  pong(bytes: Buffer, start: number): void {
    if (this.#role === "server") this.#chargeControl();
    this.#owner.ponged(bytes.readUInt32BE(start + 4));
  }

  goAwayReceived(lastId: number): void {
    this.#chargeControl();
    this.#isPeerGoing = true;
    // A client's GOAWAY refers only to streams that a server has opened, so the client's own streams continue (§6.8).
    if (this.#role === "client") this.#streams.refuseAbove(lastId);
    this.#changed();
  }

  unknown(count: number): void {
    this.#floods.charge("unknown", count + frameHeaderBytes);
  }

  #chargeControl(): void {
    this.#floods.charge("control", 1, h2Limits.framesPerStream * this.#streams.open.size);
  }

  /** Called by the writer when the first frame of a turn is written. */
  becameDirty(): void {
    this.#turn.mark(this);
  }

  streamClosed(): void {
    this.#changed();
  }

  #changed(): void {
    this.#owner.changed();
    this.#endIfDone();
  }

  #endIfDone(): void {
    if ((this.#isGoing || this.#isPeerGoing) && this.#streams.open.size === 0 && !this.#isOver)
      this.#end(undefined);
  }

  #fail(error: ProtocolError): void {
    if (this.#isOver) return;
    this.#writer.goAway(this.#streams.lastId, error.code, error.message);
    this.#end(error);
  }

  #end(error: ProtocolError | undefined): void {
    this.#isOver = true;
    this.#reader.stop();
    try {
      this.#streams.endAll();
    } finally {
      this.#owner.ended(error);
    }
  }
}
