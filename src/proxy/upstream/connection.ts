/**
 * One upstream connection: an HTTP/2 session to a backend that clients of one trust class share (D2). It knows how many
 * streams it can take, watches its own PING (D6), and limits resets, because the backend would punish all of its users
 * for them.
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
import type { Wire, WireOwner } from "../net/wire.ts";
import { upstreamLimits } from "./limits.ts";
import type { ConnectionKind, PoolKey } from "./pool-key.ts";

export type KeepaliveTick = {
  /** True if a PING is due, unless one is pending. */
  readonly isTurn: boolean;
  /** True if the proxy's own event loop stood still: what the backend sent may still be unread. */
  readonly isLate: boolean;
  /** How long a connection may take to open. */
  readonly dialMs: number;
};

/** The connection pool, as its connections call it. */
export type ConnectionOwner = {
  /** The first SETTINGS came: it may be used, and the dial has succeeded. */
  opened(connection: Connection): void;
  /** A stream ended or the peer's limits changed. */
  changed(connection: Connection): void;
  /** Bytes arrived on it: its silence is over. */
  resumed(connection: Connection): void;
  /** Its PING was answered, after `ms`. */
  ponged(connection: Connection, ms: number): void;
  /** An internal fault cost one of its streams. */
  faulted(error: unknown): void;
  /** Over; called once. The failure is the reason, if there is one. */
  closed(connection: Connection, failure: Failure | undefined): void;
};

export type ConnectionOptions = {
  /** With the number, its name: proven, long and 7 are "proven-long-7". */
  readonly key: PoolKey;
  /** Unique among its backend's connections. */
  readonly number: number;
  readonly clock: Clock;
  readonly turn: FlushScheduler;
  readonly buffered: Buffered;
  readonly owner: ConnectionOwner;
  readonly mostStreams: number;
  readonly connect: (owner: WireOwner) => Wire;
  /** How long PINGs to its backend take, on all of its connections. */
  readonly rttMs: () => number;
};

/** An attempt whose stream the connection carries: what the connection learns of its backend concerns the attempt as well. */
export type ConnectionUser = StreamListener & {
  /** How long ago its request was sent, in ms. */
  sinceSent(now: number): number;
  /** A PING sent at this clock reading was answered, the latest of all. */
  passed(answeredPingAt: number): void;
  /** Its request has waited longer than such reads usually take. */
  slowed(): void;
  /** The proxy's own event loop stood still for `ms`, which is not charged to the backend. */
  discountStall(ms: number): void;
  /** A PING is overdue. */
  suspected(): void;
  /** The PING was answered after all. */
  cleared(): void;
  /** The connection takes no more streams. */
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
  /** True if its attempts know that it takes no new streams. */
  #isLeft = false;
  /** True if the proxy has sent GOAWAY before the backend did. */
  #hasYielded = false;
  #failure: Failure | undefined;
  /** The pending PING, and when it was sent; 0 if none is pending. */
  #pingNumber = 0;
  #pingedAt = 0;
  /** True if a stream was opened on it since the last PING. */
  #isAwaited = false;
  /** When the backend last gave a sign of life on it: bytes arrived, or it took some of what waits. */
  #heardAt = 0;
  /** When the last answered PING was sent. */
  #answeredPingAt = 0;
  #waitingBytes = 0;
  #isSuspect = false;
  /** When it was silent last: a clock reading, 0 before the first time. */
  #suspectedAt = 0;
  #wasInUse = false;
  #isOutdated = false;
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
      owner: {
        opened: (stream) => stream.owner,
        write: (buffers, written) => this.#wire.write(buffers, written),
        changed: () => this.#changed(),
        ponged: (number) => this.#ponged(number),
        fault: (error) => options.owner.faulted(error),
        ended: (error) => this.#ended(error),
      },
    });
  }

  /** The number of streams that it can take now: 0 while it opens, retires or is over. */
  get room(): number {
    if (!this.#isOpened || !this.#session.isOpen) return 0;
    return Math.min(this.#options.mostStreams, this.#session.peerMaxStreams) - this.#session.openCount;
  }

  get isOpening(): boolean {
    return !this.#isOpened && !this.#isClosed;
  }

  /** True if its first SETTINGS came. */
  get isOpened(): boolean {
    return this.#isOpened;
  }

  /** It takes no more streams, for good. */
  get isRetiring(): boolean {
    return !this.#session.isOpen;
  }

  /** True if the backend sent GOAWAY first: Go's server answers each GOAWAY with one of its own. */
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
    this.#isAwaited = true;
    return this.#session.open(fields, end, owner, isHead);
  }

  /**
   * Ends a stream that its client gave up, at once (D17). A connection that has reset many streams before their responses
   * takes no new ones: the apiserver's server ends a session with ENHANCE_YOUR_CALM if it opens a stream while the
   * handlers of five times the allowed number still run (x/net http2, scheduleHandler). A reset alone never makes it do
   * so (A1).
   */
  cancel(stream: Stream, isAnswered: boolean): void {
    if (!isAnswered && !this.#resets.take(this.#resetCost)) this.yield();
    stream.reset(errorCode.CANCEL);
  }

  /** A backend that allows few streams tolerates few resets as well: twice as many. */
  get #resetCost(): number {
    return Math.max(1, upstreamLimits.connectionResetBurst / (2 * this.#session.peerMaxStreams));
  }

  /** When its dial began, without stalls of the event loop: a clock reading. */
  get dialledAt(): number {
    return this.#dialledAt;
  }

  /** Called once every interval. */
  tick({ isTurn, isLate, dialMs }: KeepaliveTick): void {
    if (this.#isClosed) return;
    if (this.isOpening) {
      if (this.now - this.#dialledAt > dialMs) this.#failDial("No session in time");
      return;
    }
    if (isTurn && !isLate) this.#session.check();
    // A request waits for this connection: a PING out of turn checks its path.
    if (isTurn || this.#isAwaited) this.ask();
    if (this.#pingNumber !== 0) this.#seeProgress();
  }

  /** Sends a PING, if none is pending. */
  ask(): void {
    if (this.#pingNumber !== 0 || !this.#isOpened || this.#isClosed) return;
    this.#pingNumber = this.#session.sendPing();
    this.#pingedAt = this.now;
    this.#waitingBytes = this.#wire.waitingBytes ?? 0;
    this.#isAwaited = false;
  }

  #failDial(message: string): void {
    this.fail(new Failure("backend-refused", "backend", message, timeout(message)));
  }

  /** A PING is queued behind the bytes in the socket: as long as those get fewer, a slow upload is no silence. */
  #seeProgress(): void {
    const waiting = this.#wire.waitingBytes ?? 0;
    if (waiting < this.#waitingBytes) this.#heardAt = this.now;
    this.#waitingBytes = waiting;
  }

  /** The clock's reading. */
  get now(): number {
    return this.#options.clock.now();
  }

  /** Notifies attempts that have waited for `ms`, during `upstreamLimits.slowToldMs` only. */
  notifySlow(ms: number): void {
    const now = this.#options.clock.now();
    for (const attempt of this.#attempts) {
      attempt.passed(this.#answeredPingAt);
      const waitedMs = attempt.sinceSent(now);
      if (waitedMs >= ms && waitedMs < ms + upstreamLimits.slowToldMs) attempt.slowed();
    }
  }

  /** How long a PING has been pending, whatever else arrived, in ms; 0 if none is. */
  get pingMs(): number {
    return this.#pingNumber === 0 ? 0 : this.#options.clock.now() - this.#pingedAt;
  }

  /** True if a PING sent after `at` was answered: then other bytes sent since had a path as well. */
  isAnsweringSince(at: number): boolean {
    return this.#answeredPingAt > at;
  }

  /** When the last answered PING was sent: a clock reading, 0 before the first. */
  get answeredPingAt(): number {
    return this.#answeredPingAt;
  }

  /** Since when nothing at all has arrived while a PING is pending; undefined if none is. */
  get silentSince(): number | undefined {
    return this.#pingNumber === 0 || this.#isClosed ? undefined : Math.max(this.#pingedAt, this.#heardAt);
  }

  /** True if its silence is suspicious: then it gets no new streams. */
  get isSuspect(): boolean {
    return this.#isSuspect;
  }

  /** Makes it suspect. Returns true unless it was. */
  suspect(): boolean {
    const isNews = !this.#isSuspect;
    if (isNews) this.#wasInUse = this.openCount > 0;
    this.#isSuspect = true;
    this.#suspectedAt = this.now;
    return isNews;
  }

  /** Its silence is over. */
  clear(): void {
    this.#isSuspect = false;
  }

  /** True if it was suspect recently. */
  get isShaky(): boolean {
    return this.#suspectedAt > 0 && this.now - this.#suspectedAt < upstreamLimits.shakyConnectionMs;
  }

  /** True if streams were open on it when it fell silent last. */
  get wasInUse(): boolean {
    return this.#wasInUse;
  }

  /** True if it presents a certificate that was replaced. It serves until a new connection is open. */
  get isOutdated(): boolean {
    return this.#isOutdated;
  }

  outdate(): void {
    this.#isOutdated = true;
  }

  /** Since when it has no stream: a clock reading. */
  get idleSince(): number {
    return this.#idleSince;
  }

  /** True if its PING is not late. If several connections are silent together, this is known before any deadline. */
  get isPrompt(): boolean {
    return this.pingMs <= upstreamLimits.promptMs;
  }

  /** The proxy's own event loop stood still for `ms`, which is not charged to the backend. */
  discountStall(ms: number): void {
    const now = this.#options.clock.now();
    this.#pingedAt = Math.min(now, this.#pingedAt + ms);
    this.#heardAt = Math.min(now, this.#heardAt + ms);
    if (this.isOpening) this.#dialledAt = Math.min(now, this.#dialledAt + ms);
    for (const attempt of this.#attempts) attempt.discountStall(ms);
  }

  /** Notifies its attempts that it does not answer, or that it answers again (D6). */
  doubt(isSuspect: boolean): void {
    for (const attempt of this.#attempts) {
      if (isSuspect) attempt.suspected();
      else attempt.cleared();
    }
  }

  /** Notifies its attempts that they may move to another backend. */
  leave(): void {
    for (const attempt of this.#attempts) attempt.leaving();
  }

  get #attempts(): readonly ConnectionUser[] {
    return this.#session.streams.map(({ owner }) => owner).filter(isConnectionUser);
  }

  /** Takes no more streams; is over when its open ones are. */
  retire(): void {
    this.yield();
    this.leave();
  }

  /** The same, but its attempts have no reason to move. */
  yield(): void {
    this.#hasYielded ||= !this.#session.isPeerGoing;
    this.#session.goAway();
  }

  /** Destroys it at once: every stream's owner gets `lost`. */
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
    if (this.isPeerGoing && !this.#isLeft) {
      this.#isLeft = true;
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
