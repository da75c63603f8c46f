/**
 * One lane: an upstream session that clients of one trust class share (D2). It knows how many streams it may take,
 * watches its own PING (D6), and keeps the budget of resets that the backend would hold against all of its users.
 */
import type { Clock } from "../clock.ts";
import { Failure } from "../failure.ts";
import { Budget } from "../h2/budget.ts";
import type { Buffered } from "../h2/buffered.ts";
import type { Field } from "../h2/field.ts";
import { errorCode, type ProtocolError } from "../h2/protocol-error.ts";
import { Session } from "../h2/session.ts";
import type { SideOwner } from "../h2/side.ts";
import type { Stream } from "../h2/stream.ts";
import type { Turn } from "../h2/turn.ts";
import { limits } from "../limits.ts";
import type { Wire, WireOwner } from "./wire.ts";

/** What a lane tells its backend's lanes. */
export type LaneOwner = {
  /** The first SETTINGS came: it may be used, and the dial is proven. */
  opened(lane: Lane): void;
  /** A stream ended or the peer's limits changed. */
  changed(lane: Lane): void;
  /** Its oldest unanswered PING is this old. Told at every tick beyond the first deadline. */
  silent(lane: Lane, ms: number): void;
  /** Its oldest PING was answered. */
  answered(lane: Lane): void;
  /** A fault of ours cost one of its streams. */
  faulted(error: unknown): void;
  /** Over; told once. The failure says why, when it is one. */
  closed(lane: Lane, failure: Failure | undefined): void;
};

export type LaneOptions = {
  readonly name: string;
  readonly clock: Clock;
  readonly turn: Turn;
  readonly buffered: Buffered;
  readonly owner: LaneOwner;
  readonly mostStreams: number;
  readonly connect: (owner: WireOwner) => Wire;
};

/** Reads what is left of an answer that nobody wants any more, and gives its windows back. */
class Drain implements SideOwner {
  stream: Stream | undefined;
  #left: number = limits.drainedBytes;

  headers(): void {}

  data(_bytes: Buffer, start: number, end: number): void {
    this.#left -= end - start;
    if (this.#left < 0) this.stream?.reset(errorCode.CANCEL);
    else this.stream?.grant(end - start);
  }

  reset(): void {}

  sent(): void {}
}

export class Lane implements WireOwner {
  readonly name: string;
  readonly #options: LaneOptions;
  readonly #session: Session;
  readonly #wire: Wire;
  readonly #resets: Budget;
  readonly #openedAt: number;
  /** Given up by their clients, and still open since resets are scarce. At most as many as the lane has streams. */
  readonly #unwanted = new Set<Stream>();
  #isOpened = false;
  #isClosed = false;
  #failure: Failure | undefined;
  /** The oldest PING without an answer. */
  #pingNumber = 0;
  #pingedAt = 0;
  /** Round trip of the last answered PING, in ms; negative before the first. */
  rttMs = -1;
  idleSince: number;

  constructor(options: LaneOptions) {
    const { clock } = options;
    this.name = options.name;
    this.#options = options;
    this.#resets = new Budget(clock, limits.resetBurst, limits.resetsPerSecond);
    this.#openedAt = clock.now();
    this.idleSince = this.#openedAt;
    this.#wire = options.connect(this);
    this.#session = new Session({
      role: "client",
      clock,
      turn: options.turn,
      buffered: options.buffered,
      owner: {
        opened: (stream) => stream.owner,
        write: (buffers) => this.#wire.write(buffers),
        changed: () => this.#changed(),
        ponged: (number) => this.#ponged(number),
        fault: (error) => options.owner.faulted(error),
        ended: (error) => this.#ended(error),
      },
    });
  }

  /** Streams that it can take now: 0 while it opens, retires or is over. */
  get room(): number {
    if (!this.#isOpened || !this.#session.isOpen) return 0;
    return Math.min(this.#options.mostStreams, this.#session.peerMaxStreams) - this.#session.openCount;
  }

  get isOpening(): boolean {
    return !this.#isOpened && !this.#isClosed;
  }

  /** Did its first SETTINGS come? */
  get isOpened(): boolean {
    return this.#isOpened;
  }

  /** It takes no more streams, for good. */
  get isRetiring(): boolean {
    return !this.#session.isOpen;
  }

  get openCount(): number {
    return this.#session.openCount;
  }

  open(fields: readonly Field[], end: boolean, owner: SideOwner): Stream {
    return this.#session.open(fields, end, owner);
  }

  /**
   * Ends a stream that its client gave up. Within the budget it is reset; beyond it the answer is read and thrown
   * away, since a burst of resets earns the whole lane an ENHANCE_YOUR_CALM (A1).
   */
  cancel(stream: Stream, isAnswered: boolean): void {
    if (isAnswered || this.#resets.take()) {
      stream.reset(errorCode.CANCEL);
      return;
    }
    // Nobody is left whom a full budget could cut for what still waits to go up.
    stream.dropQueue();
    const drain = new Drain();
    drain.stream = stream;
    stream.owner = drain;
    this.#unwanted.add(stream);
  }

  /** Resets what nobody wants, as far as the budget has grown again: an answer may be long in coming. */
  #resetUnwanted(): void {
    for (const stream of this.#unwanted) {
      if (!stream.isClosed && !this.#resets.take()) return;
      stream.reset(errorCode.CANCEL);
      this.#unwanted.delete(stream);
    }
  }

  /** Every 250 ms. `stalledMs` is how long our own loop stood still since the last tick: that counts against nobody. */
  tick(stalledMs: number): void {
    if (this.#isClosed) return;
    const now = this.#options.clock.now();
    if (this.isOpening) {
      if (now - this.#openedAt > limits.dialMs)
        this.fail(new Failure("backend-refused", "backend", "No session in time"));
      return;
    }
    // After a stall of our own, what the backend sent in time may still be unread (F11).
    if (stalledMs === 0) this.#session.check();
    this.#resetUnwanted();
    if (this.#pingNumber === 0) {
      this.#pingNumber = this.#session.sendPing();
      this.#pingedAt = now;
      return;
    }
    this.#pingedAt += stalledMs;
    this.#options.owner.silent(this, now - this.#pingedAt);
  }

  /** Takes no more streams; is over when those it has are. */
  retire(): void {
    this.#session.goAway();
  }

  /** Destroys it at once: every stream's owner hears `lost`. */
  fail(failure: Failure): void {
    this.#failure ??= failure;
    this.#wire.destroy();
    this.#session.lose();
    this.#close();
  }

  receive(chunk: Buffer): void {
    this.#session.receive(chunk);
  }

  drained(): void {
    this.#session.drained();
  }

  closed(failure: Failure | undefined): void {
    this.#failure ??= failure;
    this.#session.lose();
    this.#close();
  }

  #changed(): void {
    if (!this.#isOpened && this.#session.isSettled && this.#session.isOpen) {
      this.#isOpened = true;
      this.#options.owner.opened(this);
    }
    if (this.#session.openCount === 0) this.idleSince = this.#options.clock.now();
    this.#options.owner.changed(this);
  }

  #ponged(number: number): void {
    if (number < this.#pingNumber) return;
    this.rttMs = this.#options.clock.now() - this.#pingedAt;
    this.#pingNumber = 0;
    this.#options.owner.answered(this);
  }

  #ended(error: ProtocolError | undefined): void {
    if (error !== undefined) this.#failure ??= new Failure("backend-protocol", "backend", error.message);
    this.#session.flush();
    this.#wire.end();
    this.#close();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#options.owner.closed(this, this.#failure);
  }
}
