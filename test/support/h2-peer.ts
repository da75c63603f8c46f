/**
 * A scripted peer that speaks frames: `peer.sends(headers(1).get("/api"))`, `peer.expects(headers(1).status(200))`.
 * It stands at the other end of a session or of a fake wire, and holds what it hears to the rules that a real peer
 * would: windows, header blocks, and nothing on a stream after its end.
 */
import * as assert from "uvu/assert";
import { HpackDecoder } from "../../src/h2/hpack/hpack-decoder.ts";
import { type Frame, joined, parse, preface, shown, types, wire } from "./h2-frames.ts";

/** Where the peer's bytes go, and what runs the turn in which they are answered. */
export type Far = {
  deliver(chunk: Buffer): void;
  turn(): void;
};

export class H2Peer {
  readonly #far: Far;
  readonly #decoder = new HpackDecoder();
  #bytes = Buffer.alloc(0);
  #awaitsPreface: boolean;
  #heard: string[] = [];
  /** Bytes of DATA per stream, joined: what was heard of its body so far. */
  readonly #bodies = new Map<number, Buffer[]>();
  readonly #windows = new Map<number, number>([[0, 65_535]]);
  readonly #ended = new Set<number>();
  /** INITIAL_WINDOW_SIZE: in force, and what was sent but is not acknowledged. */
  #initialWindow = 65_535;
  #settingsSent: (number | undefined)[] = [];
  /** Sum of WINDOW_UPDATE heard, per stream. */
  readonly #granted = new Map<number, number>();

  /** `awaitsPreface`: the session under test is a client. */
  constructor(far: Far, awaitsPreface = false) {
    this.#far = far;
    this.#awaitsPreface = awaitsPreface;
  }

  // --- says ---

  /** Sends them in one chunk; the turn runs. */
  sends(...frames: readonly (Frame | Frame[])[]): void {
    this.sendsBytes(this.bytesOf(...frames));
  }

  /** Sends them cut into chunks of `size` bytes, in one turn. */
  sendsInPieces(size: number, ...frames: readonly (Frame | Frame[])[]): void {
    const bytes = this.bytesOf(...frames);
    for (let at = 0; at < bytes.length; at += size)
      this.#far.deliver(Buffer.from(bytes.subarray(at, at + size)));
    this.#far.turn();
  }

  /** The client's preface and its first SETTINGS. */
  greets(first: Frame): void {
    this.sendsBytes(Buffer.concat([Buffer.from(preface), this.bytesOf(first)]));
  }

  sendsBytes(bytes: Buffer): void {
    this.#far.deliver(bytes);
    this.#far.turn();
  }

  /** The frames as bytes; windows that they give are noted as given. */
  bytesOf(...frames: readonly (Frame | Frame[])[]): Buffer {
    const flat = frames.flat();
    for (const frame of flat) this.#note(frame);
    return wire(...flat);
  }

  // --- hears ---

  /** What the other side wrote. */
  hears(buffers: readonly Buffer[]): void {
    const bytes = Buffer.concat([this.#bytes, ...buffers]);
    const { frames, rest } = parse(this.#withoutPreface(bytes));
    this.#bytes = Buffer.from(rest);
    for (const frame of joined(frames)) this.#hear(frame);
  }

  /** Exactly these frames were heard since the last look, in this order. */
  expects(...frames: readonly (Frame | string)[]): void {
    const heard = this.heard();
    assert.equal(
      heard,
      frames.map((frame) => (typeof frame === "string" ? frame : shown(frame))),
    );
  }

  expectsNothing(): void {
    this.expects();
  }

  /** What was heard since the last look, a line each. */
  heard(): string[] {
    const heard = this.#heard;
    this.#heard = [];
    return heard;
  }

  /** All DATA heard on a stream so far. */
  body(id: number): Buffer {
    return Buffer.concat(this.#bodies.get(id) ?? []);
  }

  /** Bytes that WINDOW_UPDATE frames on this stream have given us so far. */
  granted(id: number): number {
    return this.#granted.get(id) ?? 0;
  }

  hasEnded(id: number): boolean {
    return this.#ended.has(id);
  }

  // --- the rules ---

  #withoutPreface(bytes: Buffer): Buffer {
    if (!this.#awaitsPreface) return bytes;
    assert.is(bytes.toString("latin1", 0, preface.length), preface);
    this.#awaitsPreface = false;
    return bytes.subarray(preface.length);
  }

  #hear(frame: Frame): void {
    const line = shown(frame, this.#decoder);
    this.#heard.push(line);
    assert.ok(frame.payload.length <= 16_384 || types[frame.type] === "HEADERS", `${line} is too large`);
    const isOnStream = frame.type <= 1;
    if (isOnStream) assert.not(this.#ended.has(frame.id), `${line} after the end of its stream`);
    if (types[frame.type] === "DATA") this.#spend(frame, line);
    if ((isOnStream && (frame.flags & 1) !== 0) || types[frame.type] === "RST_STREAM")
      this.#ended.add(frame.id);
    if (types[frame.type] === "WINDOW_UPDATE") {
      const before = this.#granted.get(frame.id) ?? 0;
      this.#granted.set(frame.id, before + frame.payload.readUInt32BE(0));
    }
    if (line === "SETTINGS ack") this.#settle();
  }

  #spend(frame: Frame, line: string): void {
    const { id, payload } = frame;
    for (const key of [0, id]) {
      const left = (this.#windows.get(key) ?? this.#initialWindow) - payload.length;
      assert.ok(left >= 0 || payload.length === 0, `${line} overdraws window ${key} by ${-left}`);
      this.#windows.set(key, left);
    }
    this.#bodies.set(id, [...(this.#bodies.get(id) ?? []), payload]);
  }

  #note(frame: Frame): void {
    const { type, flags, id, payload } = frame;
    if (types[type] === "WINDOW_UPDATE" && payload.length === 4)
      this.#windows.set(id, (this.#windows.get(id) ?? this.#initialWindow) + payload.readUInt32BE(0));
    if (types[type] !== "SETTINGS" || (flags & 1) !== 0) return;
    let window: number | undefined;
    for (let at = 0; at + 6 <= payload.length; at += 6)
      if (payload.readUInt16BE(at) === 4) window = payload.readUInt32BE(at + 2);
    // A larger window may be used from now on; a smaller one binds when it is acknowledged.
    if (window !== undefined && window > this.#initialWindow) this.#apply(window);
    this.#settingsSent.push(window);
  }

  #settle(): void {
    assert.ok(this.#settingsSent.length > 0, "SETTINGS acknowledged twice");
    const window = this.#settingsSent.shift();
    if (window !== undefined) this.#apply(window);
  }

  #apply(window: number): void {
    const change = window - this.#initialWindow;
    this.#initialWindow = window;
    for (const [id, left] of this.#windows) if (id !== 0) this.#windows.set(id, left + change);
  }
}
