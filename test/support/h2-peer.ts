/**
 * A scripted HTTP/2 peer: `peer.sends(headers(1).get("/api"))`, `peer.expects(headers(1).status(200))`. The other end
 * is a session or a fake wire. Like a real peer it checks the frames that it receives: flow-control windows, header
 * blocks, and that no frame follows the end of a stream.
 */
import * as assert from "uvu/assert";
import { HpackDecoder } from "../../src/h2/hpack/hpack-decoder.ts";
import { type Frame, joined, parse, preface, shown, types, wire } from "./h2-frames.ts";

/** The other end: `deliver` passes bytes to it, `turn` runs the loop turn in which it responds. */
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
  /** For each stream the DATA that was received so far. */
  readonly #bodies = new Map<number, Buffer[]>();
  readonly #windows = new Map<number, number>([[0, 65_535]]);
  readonly #ended = new Set<number>();
  /**
   * INITIAL_WINDOW_SIZE: first the value in force, then the values of the SETTINGS that were sent and are not yet
   * acknowledged.
   */
  #initialWindow = 65_535;
  #settingsSent: (number | undefined)[] = [];
  /** For each stream the sum of the WINDOW_UPDATE increments that were received. */
  readonly #granted = new Map<number, number>();

  /** `awaitsPreface` is true if the session under test is a client, which sends the connection preface. */
  constructor(far: Far, awaitsPreface = false) {
    this.#far = far;
    this.#awaitsPreface = awaitsPreface;
  }

  // --- says ---

  /** Sends the frames in one chunk, and runs one loop turn. */
  sends(...frames: readonly (Frame | Frame[])[]): void {
    this.sendsBytes(this.bytesOf(...frames));
  }

  /** Sends the frames in chunks of `size` bytes, all within one loop turn. */
  sendsInPieces(size: number, ...frames: readonly (Frame | Frame[])[]): void {
    const bytes = this.bytesOf(...frames);
    for (let at = 0; at < bytes.length; at += size)
      this.#far.deliver(Buffer.from(bytes.subarray(at, at + size)));
    this.#far.turn();
  }

  /** Sends the client's connection preface and the first SETTINGS. */
  greets(first: Frame): void {
    this.sendsBytes(Buffer.concat([Buffer.from(preface), this.bytesOf(first)]));
  }

  sendsBytes(bytes: Buffer): void {
    this.#far.deliver(bytes);
    this.#far.turn();
  }

  /** Returns the frames as bytes, and records the flow-control windows that they open. */
  bytesOf(...frames: readonly (Frame | Frame[])[]): Buffer {
    const flat = frames.flat();
    for (const frame of flat) this.#note(frame);
    return wire(...flat);
  }

  // --- hears ---

  /** Receives bytes from the other end. */
  hears(buffers: readonly Buffer[]): void {
    const bytes = Buffer.concat([this.#bytes, ...buffers]);
    const { frames, rest } = parse(this.#withoutPreface(bytes));
    this.#bytes = Buffer.from(rest);
    for (const frame of joined(frames)) this.#hear(frame);
  }

  /** Asserts that exactly these frames were received since the previous call, in this order. */
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

  /** Returns the frames that were received since the previous call, one line each. */
  heard(): string[] {
    const heard = this.#heard;
    this.#heard = [];
    return heard;
  }

  /** Returns all DATA that was received on a stream so far. */
  body(id: number): Buffer {
    return Buffer.concat(this.#bodies.get(id) ?? []);
  }

  /** Returns the sum of the WINDOW_UPDATE increments that were received on this stream. */
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
    // The other end may use a larger window at once. A smaller one is enforced only after the acknowledgment.
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
