/**
 * One upstream connection: an HTTP/2 session to a backend, shared by clients of one trust class (D2). The connection
 * knows how many streams it can take, and whether its PING is unanswered (D6). It limits the resets that it sends,
 * because after too many resets the backend would end the session for all clients.
 */

import type { Clock } from "../../base/clock.ts";
import { Failure, timeout } from "../../base/failure.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import type { Field } from "../../h2/core/field.ts";
import type { FlushScheduler } from "../../h2/core/flush-scheduler.ts";
import { h2Limits } from "../../h2/core/limits.ts";
import { errorCode, type ProtocolError } from "../../h2/core/protocol-error.ts";
import type { StreamListener } from "../../h2/core/stream-writer.ts";
import { Session } from "../../h2/session/session.ts";
import type { Stream } from "../../h2/session/stream.ts";
import { withPrefix } from "../context/path-prefix.ts";
import type { Wire, WireOwner } from "../net/wire.ts";
import { upstreamLimits } from "./limits.ts";
import type { ConnectionKind, PoolKey } from "./pool-key.ts";

export type KeepaliveTick = {
  /** True if this connection is to send a PING in this tick. */
  readonly isTurn: boolean;
  /** True if the proxy's event loop was stalled, so the backend's answer may have arrived, but is still unread. */
  readonly isLate: boolean;
  /** Maximum number of ms that a connection may take to open. */
  readonly dialMs: number;
};

export type ConnectionOwner = {
  /** Called when the first SETTINGS have arrived: the dial has succeeded. */
  opened(connection: Connection): void;
  /** Called when a stream has ended, or the backend's limits have changed. */
  changed(connection: Connection): void;
  /** Called when bytes have arrived on a suspect connection. */
  resumed(connection: Connection): void;
  /** Called when the pending PING was answered, `ms` after it was sent. */
  ponged(connection: Connection, ms: number): void;
  /** Called when an internal fault has ended one of the streams. */
  faulted(error: unknown): void;
  /** Called once, when the connection is over. `failure`: undefined if the connection ended normally. */
  closed(connection: Connection, failure: Failure | undefined): void;
};

export type ConnectionOptions = {
  /** The key of the connection's shard. It is part of the connection's name, such as "proven-long-7" for number 7. */
  readonly key: PoolKey;
  /** A number that no other connection to the backend has. */
  readonly number: number;
  readonly clock: Clock;
  readonly turn: FlushScheduler;
  readonly buffered: Buffered;
  readonly owner: ConnectionOwner;
  readonly mostStreams: () => number;
  readonly pathPrefix: () => string;
  readonly connect: (owner: WireOwner) => Wire;
  /** Returns the round-trip time to the backend in ms, measured by the PINGs on all connections to the backend. */
  readonly rttMs: () => number;
};

/** An attempt with a stream on the connection. */
export type ConnectionUser = StreamListener & {
  sinceSent(now: number): number;
  /** Called at every tick. `answeredPingAt`: clock reading at which the latest answered PING was sent; 0: none yet. */
  passed(answeredPingAt: number): void;
  /** Called when the request has taken longer than reads of the backend usually do. */
  slowed(): void;
  /**
   * Shortens the measured wait by `ms`: the time for which the proxy's own event loop was stalled. The backend did not
   * cause this delay.
   */
  discountStall(ms: number): void;
  suspected(): void;
  /** Ends the attempt as lost if its request can go on elsewhere. Returns false if the request can only go on here. */
  leaveBehind(): boolean;
  /** Called when the late PING was answered after all. */
  cleared(): void;
  leaving(): void;
};

function isConnectionUser(owner: StreamListener): owner is ConnectionUser {
  return "sinceSent" in owner;
}

export class Connection implements WireOwner {
  readonly name: string;
  readonly kind: ConnectionKind;
  readonly number: number;
  readonly #options: ConnectionOptions;
  readonly #session: Session;
  readonly #wire: Wire;
  readonly #resets: TokenBucket;
  #dialledAt: number;
  #isOpened = false;
  #isClosed = false;
  #hasNotifiedLeaving = false;
  /** True if the proxy sent GOAWAY before the backend did. */
  #hasYielded = false;
  #failure: Failure | undefined;
  /** Sequence number of the unanswered PING; 0: no PING is outstanding. */
  #pingNumber = 0;
  #pingedAt = 0;
  #hasOpenedSincePing = false;
  /**
   * Clock reading of the latest sign that the backend works: bytes arrived, or the kernel's full buffer took more bytes.
   */
  #heardAt = 0;
  #answeredPingAt = 0;
  /** Number of bytes written to the wire. */
  #writtenBytes = 0;
  /** Number of bytes that the kernel had taken at the latest tick with an unanswered PING. */
  #takenBytes = 0;
  /** True if the kernel's buffer was full at that tick. */
  #isBufferFull = false;
  #isSuspect = false;
  /** Clock reading at which the connection last became suspect; 0: never. */
  #suspectedAt = 0;
  #wasInUse = false;
  /**
   * True if the proxy's certificate on this connection was replaced. The connection takes streams until a new one is
   * open.
   */
  isOutdated = false;
  #idleSince: number;

  constructor(options: ConnectionOptions) {
    const { clock, key } = options;
    this.name = `${key.trust}-${key.kind}-${options.number}`;
    this.kind = key.kind;
    this.number = options.number;
    this.#options = options;
    this.#resets = new TokenBucket(clock, upstreamLimits.connectionResetBurst, h2Limits.resetsPerSecond);
    this.#dialledAt = clock.now();
    this.#idleSince = this.#dialledAt;
    this.#wire = options.connect(this);
    this.#session = new Session({
      role: "client",
      clock,
      turn: options.turn,
      buffered: options.buffered,
      hasManyRequests: key.kind === "plain",
      owner: {
        opened: (stream) => stream.owner,
        write: (buffers, written) => this.#write(buffers, written),
        changed: () => this.#changed(),
        ponged: (number) => this.#ponged(number),
        fault: (error) => options.owner.faulted(error),
        ended: (error) => this.#ended(error),
      },
    });
  }

  #write(buffers: readonly Buffer[], written: (() => void) | undefined): boolean {
    for (const { length } of buffers) this.#writtenBytes += length;
    return this.#wire.write(buffers, written);
  }

  /** Number of streams that the connection can take now; 0 while it opens, retires or is over. */
  get room(): number {
    if (!this.#isOpened || !this.#session.isOpen) return 0;
    return Math.min(this.#options.mostStreams(), this.#session.peerMaxStreams) - this.#session.openCount;
  }

  /** True if the backend admits no stream on this connection (MAX_CONCURRENT_STREAMS 0). */
  get isBarred(): boolean {
    return this.#isOpened && this.#session.isOpen && this.#session.peerMaxStreams === 0;
  }

  get isOpening(): boolean {
    return !this.#isOpened && !this.#isClosed;
  }

  get isOpened(): boolean {
    return this.#isOpened;
  }

  /** True if the connection takes no streams any more. */
  get isRetiring(): boolean {
    return !this.#session.isOpen;
  }

  /**
   * True if the backend sent GOAWAY before the proxy did. A GOAWAY from the backend after the proxy's says nothing,
   * because Go's server answers every GOAWAY with one of its own.
   */
  get isPeerGoing(): boolean {
    return this.#session.isPeerGoing && !this.#hasYielded;
  }

  get openCount(): number {
    return this.#session.openCount;
  }

  get rttMs(): number {
    return this.#options.rttMs();
  }

  open(fields: readonly Field[], end: boolean, owner: StreamListener, isHead = false): Stream {
    this.#hasOpenedSincePing = true;
    return this.#session.open(withPrefix(fields, this.#options.pathPrefix()), end, owner, isHead);
  }

  /**
   * Immediately resets a stream whose client has given up (D17). A connection that has reset many unanswered streams
   * takes no new ones. Otherwise the apiserver could end the session with ENHANCE_YOUR_CALM: it does so if a stream is
   * opened while the number of running handlers exceeds five times the number of allowed streams (x/net http2,
   * scheduleHandler). Resets alone do not have that effect (A1).
   */
  cancel(stream: Stream, isAnswered: boolean): void {
    if (!isAnswered && !this.#resets.take(this.#resetCost)) this.yield();
    stream.reset(errorCode.CANCEL);
  }

  /**
   * Number of tokens that one reset takes from the bucket. A backend that allows few concurrent streams tolerates few
   * resets, so a burst has at most twice as many resets as the backend allows concurrent streams.
   */
  get #resetCost(): number {
    return Math.max(1, upstreamLimits.connectionResetBurst / (2 * this.#session.peerMaxStreams));
  }

  /** Clock reading at which the dial began, plus the duration of all stalls of the event loop since then. */
  get dialledAt(): number {
    return this.#dialledAt;
  }

  /** Sends a PING if one is due, and ends a dial that takes too long. Called at every tick of the keepalive. */
  tick({ isTurn, isLate, dialMs }: KeepaliveTick): void {
    if (this.#isClosed) return;
    if (this.isOpening) {
      if (this.now - this.#dialledAt > dialMs) this.#failDial("HTTP/2 session did not open in time");
      return;
    }
    if (isTurn && !isLate) this.#session.check();
    if (this.#pingNumber !== 0) this.#seeProgress();
    // A PING is also sent outside the connection's turn if a stream was opened after the latest PING.
    else if (isTurn || this.#hasOpenedSincePing) this.ask();
  }

  ask(): void {
    if (this.#pingNumber !== 0 || !this.#isOpened || this.#isClosed) return;
    this.#pingNumber = this.#session.sendPing();
    this.#pingedAt = this.now;
    this.#hasOpenedSincePing = false;
    this.#seeBacklog();
  }

  #failDial(message: string): void {
    this.fail(new Failure("backend-refused", "backend", message, timeout(message)));
  }

  /**
   * While the PING waits behind an upload, no answer can come. If the kernel's buffer was full at the latest tick and the
   * kernel has taken more bytes since, the backend's kernel has acknowledged others.
   */
  #seeProgress(): void {
    if (this.#isBufferFull && this.#takenNow > this.#takenBytes) this.#heardAt = this.now;
    this.#seeBacklog();
  }

  /**
   * Finds out whether the kernel's buffer is full. Bytes that wait now prove nothing: Node may not have reported yet that
   * the kernel has taken them, and the kernel takes bytes even if the backend is gone, until its buffer is full.
   */
  #seeBacklog(): void {
    const written = this.#writtenBytes;
    this.#takenBytes = this.#takenNow;
    this.#isBufferFull = false;
    if (this.#takenBytes === written) return;
    this.#options.clock.after(upstreamLimits.fullBufferMs, () => {
      this.#isBufferFull = this.#takenNow < written;
    });
  }

  get #takenNow(): number {
    return this.#writtenBytes - (this.#wire.waitingBytes ?? 0);
  }

  get now(): number {
    return this.#options.clock.now();
  }

  /**
   * Called at every tick. Reports the latest answered PING to each attempt. Calls `slowed` on each attempt that has
   * lasted for at least `ms`, but no longer than `ms` + `upstreamLimits.slowToldMs`.
   */
  notifySlow(ms: number): void {
    const now = this.#options.clock.now();
    for (const attempt of this.#attempts) {
      attempt.passed(this.#answeredPingAt);
      const waitedMs = attempt.sinceSent(now);
      if (waitedMs >= ms && waitedMs < ms + upstreamLimits.slowToldMs) attempt.slowed();
    }
  }

  /** Ms since the unanswered PING was sent, even if other bytes have arrived since; 0: no PING is outstanding. */
  get pingMs(): number {
    return this.#pingNumber === 0 ? 0 : this.#options.clock.now() - this.#pingedAt;
  }

  /** True if a PING sent after `at` was answered, so bytes that the backend sent after `at` do arrive. */
  isAnsweringSince(at: number): boolean {
    return this.#answeredPingAt > at;
  }

  /** Clock reading at which the latest answered PING was sent; 0: none yet. */
  get answeredPingAt(): number {
    return this.#answeredPingAt;
  }

  /** Clock reading since which nothing has arrived while a PING is unanswered; undefined: no PING is outstanding. */
  get silentSince(): number | undefined {
    return this.#pingNumber === 0 || this.#isClosed ? undefined : Math.max(this.#pingedAt, this.#heardAt);
  }

  /** True while the connection is silent, so that it gets no new streams. */
  get isSuspect(): boolean {
    return this.#isSuspect;
  }

  /** Makes the connection suspect. Returns true if it was not suspect before. */
  suspect(): boolean {
    const isNews = !this.#isSuspect;
    if (isNews) this.#wasInUse = this.openCount > 0;
    this.#isSuspect = true;
    this.#suspectedAt = this.now;
    return isNews;
  }

  clear(): void {
    this.#isSuspect = false;
  }

  get isShaky(): boolean {
    return this.#suspectedAt > 0 && this.now - this.#suspectedAt < upstreamLimits.shakyConnectionMs;
  }

  /** True if streams were open when the connection last became suspect. */
  get wasInUse(): boolean {
    return this.#wasInUse;
  }

  /** Clock reading since which the connection has had no stream. */
  get idleSince(): number {
    return this.#idleSince;
  }

  /** False while a PING has waited for its answer for more than `promptMs`. Such a connection gets no hedges. */
  get isPrompt(): boolean {
    return this.pingMs <= upstreamLimits.promptMs;
  }

  /**
   * Shortens all measured waits by `ms`: the time for which the proxy's own event loop was stalled. The backend did not
   * cause this delay.
   */
  discountStall(ms: number): void {
    const now = this.#options.clock.now();
    this.#pingedAt = Math.min(now, this.#pingedAt + ms);
    this.#heardAt = Math.min(now, this.#heardAt + ms);
    if (this.isOpening) this.#dialledAt = Math.min(now, this.#dialledAt + ms);
    this.#session.visitStreams(({ owner }) => {
      if (isConnectionUser(owner)) owner.discountStall(ms);
    });
  }

  /** Notifies the attempts that the connection or the backend does not answer, or answers again (D6). */
  doubt(isSuspect: boolean): void {
    for (const attempt of this.#attempts) {
      if (isSuspect) attempt.suspected();
      else attempt.cleared();
    }
  }

  /** The IP address of the backend; "": unknown. */
  get address(): string {
    return this.#wire.remoteAddress ?? "";
  }

  /** Notifies the connection's attempts that they may move to another backend. */
  leave(): void {
    for (const attempt of this.#attempts) attempt.leaving();
  }

  get #attempts(): readonly ConnectionUser[] {
    return this.#session.streams.map(({ owner }) => owner).filter(isConnectionUser);
  }

  /** Ends the attempts whose requests can go on elsewhere. Returns true if there are others. */
  leaveBehind(): boolean {
    return this.#attempts.map((attempt) => attempt.leaveBehind()).includes(false);
  }

  /** Takes no new streams, notifies the attempts, and ends after its last stream. */
  retire(): void {
    this.yield();
    this.leave();
  }

  /** Takes no new streams. The attempts are not notified, because they need not move: their streams continue here. */
  yield(): void {
    this.#hasYielded ||= !this.#session.isPeerGoing;
    this.#session.goAway();
  }

  /** Destroys the connection at once. Every stream ends with the code `lost`. */
  fail(failure: Failure): void {
    this.#failure ??= failure;
    this.#wire.destroy();
    this.#session.lose();
    this.#close();
  }

  receive(chunk: Buffer): void {
    if (this.#pingNumber !== 0) {
      this.#heardAt = this.#options.clock.now();
      if (this.#isSuspect) this.#options.owner.resumed(this);
    }
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
    if (this.#session.openCount === 0) this.#idleSince = this.#options.clock.now();
    this.#options.owner.changed(this);
    if (this.isPeerGoing && !this.#hasNotifiedLeaving) {
      this.#hasNotifiedLeaving = true;
      this.leave();
    }
  }

  #ponged(number: number): void {
    if (number < this.#pingNumber) return;
    this.#pingNumber = 0;
    this.#answeredPingAt = this.#pingedAt;
    this.#options.owner.ponged(this, Math.max(0, this.#options.clock.now() - this.#pingedAt));
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
