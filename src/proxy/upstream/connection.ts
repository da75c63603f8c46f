/**
 * One upstream connection: an upstream session that clients of one trust class share (D2). It knows how many streams it may take,
 * watches its own PING (D6), and keeps the budget of resets that the backend would hold against all of its users.
 */

import type { Clock } from "../../base/clock.ts";
import { Failure, timeout } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import type { Field } from "../../h2/core/field.ts";
import type { FlushScheduler } from "../../h2/core/flush-scheduler.ts";
import { errorCode, type ProtocolError } from "../../h2/core/protocol-error.ts";
import type { StreamListener } from "../../h2/core/stream-writer.ts";
import { Session } from "../../h2/session/session.ts";
import type { Stream } from "../../h2/session/stream.ts";
import type { Wire, WireOwner } from "../net/wire.ts";
import type { KeepaliveTick } from "./keepalive.ts";
import type { ConnectionKind, PoolKey } from "./pool-key.ts";

/** What an upstream connection tells its backend's upstream connections. */
export type ConnectionOwner = {
  /** The first SETTINGS came: it may be used, and the dial is proven. */
  opened(connection: Connection): void;
  /** A stream ended or the peer's limits changed. */
  changed(connection: Connection): void;
  /** Something came on it: whatever was held against its silence is void. */
  heard(connection: Connection): void;
  /** Its PING was answered, after `ms`. */
  ponged(connection: Connection, ms: number): void;
  /** A fault of ours cost one of its streams. */
  faulted(error: unknown): void;
  /** Over; told once. The failure says why, when it is one. */
  closed(connection: Connection, failure: Failure | undefined): void;
};

export type ConnectionOptions = {
  /** With the number, its name: proven, long and 7 are "proven-long-7". */
  readonly key: PoolKey;
  /** One of its own among its backend's upstream connections. */
  readonly number: number;
  readonly clock: Clock;
  readonly turn: FlushScheduler;
  readonly buffered: Buffered;
  readonly owner: ConnectionOwner;
  readonly mostStreams: number;
  readonly connect: (owner: WireOwner) => Wire;
  /** How long PINGs to its backend take, on all of its upstream connections. */
  readonly rttMs: () => number;
};

/** An attempt whose stream the upstream connection carries: what the upstream connection learns of its backend concerns the attempt as well. */
export type ConnectionUser = StreamListener & {
  /** How long ago its request was sent, in ms. */
  sinceSent(now: number): number;
  /** A PING sent at this clock reading was answered, the latest of all. */
  passed(answeredPingAt: number): void;
  /** Its request waits for longer than such reads usually take. */
  slowed(): void;
  /** Our own loop stood still for `ms`: that time is not the backend's. */
  discountStall(ms: number): void;
  /** A PING is overdue. */
  suspected(): void;
  /** The PING was answered after all. */
  cleared(): void;
  /** The upstream connection takes no more streams. */
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
  /** Do its attempts know that it takes nobody any more? */
  #isLeft = false;
  /** We have sent GOAWAY before the backend did. */
  #hasYielded = false;
  #failure: Failure | undefined;
  /** The PING that waits for its answer, and when it was sent; 0 when none does. */
  #pingNumber = 0;
  #pingedAt = 0;
  /** Was a stream opened on it since the last PING? */
  #isAwaited = false;
  /** When the backend last gave a sign of life on it: octets came, or it took some of what waits. */
  #heardAt = 0;
  /** When the last PING that was answered was sent. */
  #answeredPingAt = 0;
  #waitingBytes = 0;
  /** Is its silence held against it? Then it gets nothing new. Set by its backend's upstream connections. */
  isSuspect = false;
  /** When it was silent last: a clock reading, 0 before the first time. Set with the above. */
  suspectedAt = 0;
  /** True if streams were open on it when it fell silent last. Set with the above. */
  wasInUse = false;
  /** Does it show the backend a certificate that has been replaced? It serves until a new upstream connection is open. */
  isOutdated = false;
  idleSince: number;

  constructor(options: ConnectionOptions) {
    const { clock, key } = options;
    this.name = `${key.trust}-${key.kind}-${options.number}`;
    this.kind = key.kind;
    this.number = options.number;
    this.#options = options;
    this.#resets = new TokenBucket(clock, limits.connectionResetBurst, limits.resetsPerSecond);
    this.#dialledAt = clock.now();
    this.idleSince = this.#dialledAt;
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

  /** It was sent GOAWAY, and not in answer to ours: Go's server answers each with one of its own. */
  get isPeerGoing(): boolean {
    return this.#session.isPeerGoing && !this.#hasYielded;
  }

  get openCount(): number {
    return this.#session.openCount;
  }

  get rttMs(): number {
    return this.#options.rttMs();
  }

  open(fields: readonly Field[], end: boolean, owner: StreamListener): Stream {
    this.#isAwaited = true;
    return this.#session.open(fields, end, owner);
  }

  /**
   * Ends a stream that its client gave up, at once (D17). An upstream connection that has reset many before their answers takes no new ones:
   * the apiserver's server ends a session with ENHANCE_YOUR_CALM when it opens a stream while the handlers of five times as
   * many as it allows still run (x/net http2, scheduleHandler), and it never does so for a reset (A1).
   */
  cancel(stream: Stream, isAnswered: boolean): void {
    if (!isAnswered && !this.#resets.take(this.#resetCost)) this.yield();
    stream.reset(errorCode.CANCEL);
  }

  /** A backend that allows few streams bears few resets as well: twice as many. */
  get #resetCost(): number {
    return Math.max(1, limits.connectionResetBurst / (2 * this.#session.peerMaxStreams));
  }

  /** When its dial began, but for time that was forgiven: a clock reading. */
  get dialledAt(): number {
    return this.#dialledAt;
  }

  /** Once every interval. */
  tick({ isTurn, isLate, dialMs }: KeepaliveTick): void {
    if (this.#isClosed) return;
    if (this.isOpening) {
      if (this.now - this.#dialledAt > dialMs) this.#failDial("No session in time");
      return;
    }
    if (isTurn && !isLate) this.#session.check();
    // What was asked for waits for this upstream connection: that its way is whole is worth a PING out of turn.
    if (isTurn || this.#isAwaited) this.ask();
    if (this.#pingNumber !== 0) this.#seeProgress();
  }

  /** Sends a PING, if none is under way. */
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

  /** A PING stands behind what waits in the socket: as long as that gets less, a slow upload is no silence. */
  #seeProgress(): void {
    const waiting = this.#wire.waitingBytes ?? 0;
    if (waiting < this.#waitingBytes) this.#heardAt = this.now;
    this.#waitingBytes = waiting;
  }

  /** The clock's reading. */
  get now(): number {
    return this.#options.clock.now();
  }

  /** Tells attempts that have waited for so long, and not for so much longer that they know. */
  tellSlow(ms: number): void {
    const now = this.#options.clock.now();
    for (const attempt of this.#attempts) {
      attempt.passed(this.#answeredPingAt);
      const waitedMs = attempt.sinceSent(now);
      if (waitedMs >= ms && waitedMs < ms + limits.slowToldMs) attempt.slowed();
    }
  }

  /** For how long a PING has waited for its answer, whatever else was heard, in ms; 0 when none does. */
  get pingMs(): number {
    return this.#pingNumber === 0 ? 0 : this.#options.clock.now() - this.#pingedAt;
  }

  /** Was a PING answered that was sent later than that? Then what else was sent had a way as well. */
  isAnsweringSince(at: number): boolean {
    return this.#answeredPingAt > at;
  }

  /** When the last PING that was answered was sent: a clock reading, 0 before the first. */
  get answeredPingAt(): number {
    return this.#answeredPingAt;
  }

  /** Since when nothing at all was heard although a PING waits for its answer; undefined when none does. */
  get silentSince(): number | undefined {
    return this.#pingNumber === 0 || this.#isClosed ? undefined : Math.max(this.#pingedAt, this.#heardAt);
  }

  /** Was it suspected of late? */
  get isShaky(): boolean {
    return this.suspectedAt > 0 && this.now - this.suspectedAt < limits.shakyConnectionMs;
  }

  /** Is it answered as fast as may be? Of those that are in a hole together this tells before any deadline. */
  get isPrompt(): boolean {
    return this.pingMs <= limits.promptMs;
  }

  /** For this long our own loop stood still: that counts against nobody. */
  discountStall(ms: number): void {
    const now = this.#options.clock.now();
    this.#pingedAt = Math.min(now, this.#pingedAt + ms);
    this.#heardAt = Math.min(now, this.#heardAt + ms);
    if (this.isOpening) this.#dialledAt = Math.min(now, this.#dialledAt + ms);
    for (const attempt of this.#attempts) attempt.discountStall(ms);
  }

  /** Tells its attempts that it does not answer, or that it answers again (D6). */
  doubt(isSuspect: boolean): void {
    for (const attempt of this.#attempts) {
      if (isSuspect) attempt.suspected();
      else attempt.cleared();
    }
  }

  /** Tells its attempts that they may go elsewhere while there is time. */
  leave(): void {
    for (const attempt of this.#attempts) attempt.leaving();
  }

  get #attempts(): readonly ConnectionUser[] {
    return this.#session.streams.map(({ owner }) => owner).filter(isConnectionUser);
  }

  /** Takes no more streams; is over when those it has are. */
  retire(): void {
    this.yield();
    this.leave();
  }

  /** The same, but those that are on it have no reason to go elsewhere. */
  yield(): void {
    this.#hasYielded ||= !this.#session.isPeerGoing;
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
    if (this.#pingNumber !== 0) {
      this.#heardAt = this.#options.clock.now();
      if (this.isSuspect) this.#options.owner.heard(this);
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
    if (this.#session.openCount === 0) this.idleSince = this.#options.clock.now();
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
