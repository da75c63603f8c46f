/**
 * A network of pairs of wires. Each direction has its own delay, its own chunking and a bounded window, so writers
 * feel slow readers; a connection may be cut, or swallow everything from now on (a black hole).
 */
import { Failure } from "../../src/base/failure.ts";
import { limits } from "../../src/base/limits.ts";
import { frameType } from "../../src/h2/frame/frame.ts";
import type { Wire, WireOwner } from "../../src/proxy/net/wire.ts";
import type { Random } from "./random.ts";
import type { World } from "./world.ts";

/** Above it a socket of Node's says "drain" once it has written everything. */
const highWaterMark = 16_384;
const keepaliveMs = 3_000;
/** Then the kernel gives up what was never acknowledged, be it only a FIN. Linux takes some fifteen minutes. */
const retransmitMs = 20_000;
/** A client begins with "PRI * HTTP/2.0...", which is no frame. */
const firstOfPreface = 0x50;
const prefaceBytes = 24;
/** A frame's header, a PING, a full DATA frame: one byte less, just so, one more. */
const edges = [8, 9, 10, 17, 16_383, 16_384, 16_392, 16_393, 16_394, 32_786] as const;
const unowned: WireOwner = { receive() {}, drained() {}, closed() {} };

/** How one connection behaves; both directions alike. */
export type Weather = {
  readonly leastMs: number;
  readonly mostMs: number;
  readonly chunkBytes: number;
  /** Chunks end at or beside the places where frames do. */
  readonly isEdgy: boolean;
  /** What may be under way in one direction before the writer has to wait. */
  readonly windowBytes: number;
};

export class End implements Wire {
  readonly #network: Network;
  readonly #weather: Weather;
  owner: WireOwner = unowned;
  peer: End | undefined;
  readonly #queue: Buffer[] = [];
  /** Those who want to know when what they wrote has been read, oldest first. */
  readonly #writes: { leftBytes: number; readonly written: () => void }[] = [];
  #queuedBytes = 0;
  /** Of the frame that the last buffer began; negative before anything was written. */
  #frameLeft = -1;
  dataBytes = 0;
  /** What this side gave the other's session window: the first one widens it from 65,535. */
  readonly #increments: number[] = [];
  #isDrainDue = false;
  #underWayBytes = 0;
  /** Nothing overtakes what was sent before it. */
  #arrivesAt = 0;
  #isEnding = false;
  #hasSentEnd = false;
  #hasHeardEnd = false;
  isClosed = false;
  isHole = false;
  #isPaused = false;
  #heldUntil = 0;
  #breaksAfter = Number.POSITIVE_INFINITY;
  readonly #inbox: (Buffer | "end")[] = [];

  constructor(network: Network, weather: Weather) {
    this.#network = network;
    this.#weather = weather;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Of the session's window for this side's DATA: how large it is, and how much of it has not been given back. */
  get window(): { readonly size: number; readonly lent: number } {
    const [first = 0, ...rest] = this.peer?.increments ?? [];
    return { size: 65_535 + first, lent: rest.reduce((left, count) => left - count, this.dataBytes) };
  }

  get increments(): readonly number[] {
    return this.#increments;
  }

  /** Something was written: what a peer says first has its place, so nothing may come before it. */
  get hasBegun(): boolean {
    return this.#frameLeft >= 0;
  }

  write(buffers: readonly Buffer[], written?: () => void): boolean {
    if (this.isClosed || this.#isEnding) return true;
    // Not copied, as a real socket does not: who writes must leave them alone until it is told.
    for (const buffer of buffers) {
      this.#countFrames(buffer);
      this.#push(buffer);
    }
    if (written !== undefined) this.#writes.push({ leftBytes: this.#queuedBytes, written });
    if (this.#queuedBytes > highWaterMark) this.#isDrainDue = true;
    this.#pump();
    return this.#queuedBytes <= limits.socketBacklogBytes;
  }

  end(): void {
    this.#isEnding = true;
    this.#pump();
  }

  destroy(): void {
    this.#close(undefined);
    // Through a hole not even this is heard; the peer's own keepalive finds out much later.
    if (this.isHole) this.#network.world.after(keepaliveMs, () => this.peer?.breakSoon());
    else this.peer?.breakSoon();
  }

  /** The reader looks away; what arrives waits, and soon the writer does too. */
  pause(ms: number): void {
    this.#isPaused = true;
    this.#network.world.after(ms, () => {
      this.#isPaused = false;
      this.#read();
    });
  }

  /** What comes waits for its sender's kernel to send it again, at the latest as long after the hole as that lasted. */
  hold(untilMs: number): void {
    this.#heldUntil = Math.max(this.#heldUntil, untilMs);
    this.#network.world.at(untilMs, () => this.#read());
  }

  /** The other side is gone: this one learns it a little later, with or without what was still under way. */
  breakSoon(): void {
    const { world, random } = this.#network;
    const failure = new Failure("backend-lost", "backend", "Cut");
    world.after(random.next() * this.#weather.mostMs, () => this.#close(failure));
  }

  /** Frames may span buffers, but a header never does: it is written in one go. */
  #countFrames(buffer: Buffer): void {
    let at = this.#frameLeft;
    if (at < 0) at = buffer[0] === firstOfPreface ? prefaceBytes : 0;
    while (at < buffer.length) {
      this.#network.frames += 1;
      const length = buffer.readUIntBE(at, 3);
      if (buffer[at + 3] === frameType.DATA) this.dataBytes += length;
      if (buffer[at + 3] === frameType.WINDOW_UPDATE && buffer.readUInt32BE(at + 5) === 0)
        this.#increments.push(buffer.readUInt32BE(at + 9));
      at += 9 + length;
    }
    this.#frameLeft = at - buffer.length;
  }

  #push(buffer: Buffer): void {
    if (buffer.length === 0) return;
    this.#queue.push(buffer);
    this.#queuedBytes += buffer.length;
  }

  #pump(): void {
    while (!this.isClosed && this.#queuedBytes > 0 && this.#underWayBytes < this.#weather.windowBytes)
      this.#send(this.#takeChunk());
    if (this.isClosed || this.#queuedBytes > 0) return;
    if (this.#isEnding && !this.#hasSentEnd) {
      this.#hasSentEnd = true;
      this.#arrive(() => this.peer?.heard("end"));
      this.#closeIfEnded();
    }
    if (!this.#isDrainDue) return;
    this.#isDrainDue = false;
    this.#network.world.after(0, () => {
      if (!this.isClosed) this.owner.drained();
    });
  }

  /** As much as this moment's chunk holds, copied as the kernel would. */
  #takeChunk(): Buffer {
    const size = this.#chunkSize();
    const chunk = Buffer.allocUnsafeSlow(size);
    let at = 0;
    while (at < size) {
      const [first] = this.#queue;
      if (first === undefined) break;
      const count = first.copy(chunk, at, 0, size - at);
      at += count;
      if (count === first.length) this.#queue.shift();
      else this.#queue[0] = first.subarray(count);
    }
    this.#queuedBytes -= size;
    for (const write of this.#writes) write.leftBytes -= size;
    while ((this.#writes[0]?.leftBytes ?? 1) <= 0) this.#writes.shift()?.written();
    return chunk;
  }

  /** However small the chunks, a backlog shrinks by a part with each: megabytes byte by byte teach nothing new. */
  #chunkSize(): number {
    const { random } = this.#network;
    const { chunkBytes, isEdgy } = this.#weather;
    const drawn = isEdgy ? random.pick(edges) : 1 + random.size(chunkBytes);
    return Math.min(Math.max(drawn, this.#queuedBytes >> 6), this.#queuedBytes);
  }

  #send(chunk: Buffer): void {
    this.#underWayBytes += chunk.length;
    this.#network.bytes += chunk.length;
    this.#arrive(() => this.peer?.heard(chunk));
  }

  #arrive(what: () => void): void {
    if (this.isHole) return;
    const { world, random } = this.#network;
    const { leastMs, mostMs } = this.#weather;
    const at = world.now() + leastMs + random.next() * (mostMs - leastMs);
    this.#arrivesAt = Math.max(this.#arrivesAt, at);
    world.at(this.#arrivesAt, () => {
      // What a hole has not let through before it opened is swallowed too.
      if (!this.isHole) what();
    });
  }

  /** Bytes, or the peer's end. */
  heard(what: Buffer | "end"): void {
    if (this.isClosed || this.#breaksAfter < 0) return;
    const isLast = what !== "end" && what.length > this.#breaksAfter;
    if (what !== "end") this.#breaksAfter -= what.length;
    this.#inbox.push(isLast ? what.subarray(0, what.length + this.#breaksAfter) : what);
    this.#read();
    if (!isLast) return;
    this.breakSoon();
    this.peer?.breakSoon();
  }

  /** The connection breaks when so many more bytes have arrived here, in the middle of whatever they are. */
  breakAfter(bytes: number): void {
    this.#breaksAfter = bytes;
  }

  #read(): void {
    while (!this.#isPaused && !this.isClosed && this.#network.world.now() >= this.#heldUntil) {
      const what = this.#inbox.shift();
      if (what === undefined) return;
      if (what === "end") {
        this.#hasHeardEnd = true;
        this.end();
        this.#closeIfEnded();
        return;
      }
      this.peer?.taken(what.length);
      this.owner.receive(what);
      // The buffer was lent for the call: an owner that kept a part of it reads this now.
      what.fill(0xee);
    }
  }

  /** Both directions are over: each side has said everything that it had to say. */
  #closeIfEnded(): void {
    if (this.#hasSentEnd && this.#hasHeardEnd) this.#close(undefined);
  }

  /** The reader took so much. */
  taken(count: number): void {
    this.#underWayBytes -= count;
    this.#pump();
  }

  #close(failure: Failure | undefined): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#queue.length = 0;
    this.#queuedBytes = 0;
    this.#inbox.length = 0;
    this.#network.open.delete(this);
    // Node tells "close" in a turn of its own.
    this.#network.world.after(0, () => this.owner.closed(failure));
  }
}

export class Network {
  readonly world: World;
  readonly random: Random;
  readonly open = new Set<End>();
  bytes = 0;
  frames = 0;

  constructor(world: World, random: Random) {
    this.world = world;
    this.random = random;
  }

  /** Two connected ends; the caller sets their owners. */
  pair(weather: Weather): [End, End] {
    const one = new End(this, weather);
    const two = new End(this, weather);
    one.peer = two;
    two.peer = one;
    this.open.add(one);
    this.open.add(two);
    return [one, two];
  }

  /** From now on nothing arrives, either way, and neither end is notified. */
  makeHole(end: End): void {
    for (const one of [end, end.peer]) {
      if (one === undefined) continue;
      one.isHole = true;
      this.world.after(retransmitMs, () => one.breakSoon());
    }
  }
}
