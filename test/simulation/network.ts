/**
 * Simulated TCP connections. Each direction has its own delay, its own chunk sizes and a bounded window, so a slow
 * reader makes the writer wait. A connection may be cut, or may lose everything that is sent from then on (a black
 * hole).
 */
import { Failure } from "../../src/base/failure.ts";
import { limits } from "../../src/base/limits.ts";
import { frameType } from "../../src/h2/frame/frame.ts";
import type { Wire, WireOwner } from "../../src/upstream/net/wire.ts";
import type { Random } from "./random.ts";
import type { World } from "./world.ts";

/** A Node socket that has more bytes queued than this emits "drain" once it has written all of them. */
const highWaterMark = 16_384;
const keepaliveMs = 3_000;
/**
 * Time after which the kernel closes a socket whose segments were never acknowledged, even if only a FIN was pending.
 * Linux takes about fifteen minutes.
 */
const retransmitMs = 20_000;
/** A client's first bytes are the connection preface "PRI * HTTP/2.0...", which is not a frame. */
const firstOfPreface = 0x50;
const prefaceBytes = 24;
/** Chunk sizes at and beside the sizes of a frame header, of a PING, and of one and two full DATA frames. */
const edges = [8, 9, 10, 17, 16_383, 16_384, 16_392, 16_393, 16_394, 32_786] as const;
const unowned: WireOwner = { receive() {}, drained() {}, closed() {} };

/** How one connection behaves, in both directions. */
export type Weather = {
  readonly leastMs: number;
  readonly mostMs: number;
  readonly chunkBytes: number;
  /** True if chunks end at frame boundaries or one byte beside them. */
  readonly isEdgy: boolean;
  /** Bytes that may be in flight in one direction before the writer has to wait. */
  readonly windowBytes: number;
};

export class End implements Wire {
  readonly #network: Network;
  readonly #weather: Weather;
  owner: WireOwner = unowned;
  peer: End | undefined;
  readonly #queue: Buffer[] = [];
  /** Callbacks of writes that were not sent completely yet, oldest first. */
  readonly #writes: { leftBytes: number; readonly written: () => void }[] = [];
  #queuedBytes = 0;
  /** Number of bytes still to come of the last frame that was written. Negative before the first write. */
  #frameLeft = -1;
  dataBytes = 0;
  /** The connection-level WINDOW_UPDATEs that this side sent. The first one raises the initial window of 65,535. */
  readonly #increments: number[] = [];
  #isDrainDue = false;
  #underWayBytes = 0;
  /** The arrival time of the last chunk. A later chunk never arrives before it. */
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

  /** The connection-level window for this side's DATA: its size, and how much of it the peer has not given back. */
  get window(): { readonly size: number; readonly lent: number } {
    const [first = 0, ...rest] = this.peer?.increments ?? [];
    return { size: 65_535 + first, lent: rest.reduce((left, count) => left - count, this.dataBytes) };
  }

  get increments(): readonly number[] {
    return this.#increments;
  }

  /**
   * True after the first write. A peer must begin with its preface and SETTINGS, so nothing may be written before them.
   */
  get hasBegun(): boolean {
    return this.#frameLeft >= 0;
  }

  write(buffers: readonly Buffer[], written?: () => void): boolean {
    if (this.isClosed || this.#isEnding) return true;
    // Not copied, as in a real socket: the caller must not reuse the buffers before `written` is called.
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
    // In a black hole the peer does not receive the reset either. Its own keepalive detects the loss later.
    if (this.isHole) this.#network.world.after(keepaliveMs, () => this.peer?.breakSoon());
    else this.peer?.breakSoon();
  }

  /** Stops reading for `ms`. Received bytes wait, and after a while the writer waits as well. */
  pause(ms: number): void {
    this.#isPaused = true;
    this.#network.world.after(ms, () => {
      this.#isPaused = false;
      this.#read();
    });
  }

  /**
   * Holds back what arrives until `untilMs`, when the sender's kernel retransmits it. After an outage of n seconds, the
   * last retransmission comes at most n seconds later.
   */
  hold(untilMs: number): void {
    this.#heldUntil = Math.max(this.#heldUntil, untilMs);
    this.#network.world.at(untilMs, () => this.#read());
  }

  /** The peer is gone. This end notices that a little later, so bytes in flight may or may not arrive. */
  breakSoon(): void {
    const { world, random } = this.#network;
    const failure = new Failure("backend-lost", "backend", "Cut");
    world.after(random.next() * this.#weather.mostMs, () => this.#close(failure));
  }

  /** A frame may span several buffers, but its header is always within one buffer. */
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

  /** Removes the next chunk from the queue. Its bytes are copied, as the kernel does. */
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

  /**
   * The chunk is at least 1/64 of the queue, because sending megabytes byte by byte would take long and show nothing
   * new.
   */
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
      // Bytes in flight are lost too when the connection becomes a black hole.
      if (!this.isHole) what();
    });
  }

  /** Receives bytes, or the peer's FIN. */
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

  /** Breaks the connection after `bytes` more bytes have arrived here, possibly in the middle of a frame. */
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
      // The buffer belongs to the owner only during the call. An owner that kept a part of it would read these bytes.
      what.fill(0xee);
    }
  }

  /** Closes this end after FINs in both directions. */
  #closeIfEnded(): void {
    if (this.#hasSentEnd && this.#hasHeardEnd) this.#close(undefined);
  }

  /** The peer has read `count` bytes. */
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
    // Node emits "close" in a later tick.
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

  /** Creates a connection and returns its two ends. The caller sets their owners. */
  pair(weather: Weather): [End, End] {
    const one = new End(this, weather);
    const two = new End(this, weather);
    one.peer = two;
    two.peer = one;
    this.open.add(one);
    this.open.add(two);
    return [one, two];
  }

  /** Makes the connection a black hole: nothing arrives in either direction, and neither end is notified. */
  makeHole(end: End): void {
    for (const one of [end, end.peer]) {
      if (one === undefined) continue;
      one.isHole = true;
      this.world.after(retransmitMs, () => one.breakSoon());
    }
  }
}
