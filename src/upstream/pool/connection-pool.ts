/**
 * The upstream connections to one backend. They are divided into *shards*: requests of one trust class and kind share a
 * shard's connections. When a shard has little room left, another connection is dialled before it is needed. Requests
 * that find no room wait here, unsent, until a connection opens or the dial fails.
 *
 * The state of all connections is evidence about the backend's health. If one connection is silent and another answers,
 * only the silent connection is faulty (D6). The attempts on suspect connections are notified; their owners may hedge.
 */
import type { Clock } from "../../base/clock.ts";
import { Failure, metOf } from "../../base/failure.ts";
import { Histogram, rttBounds } from "../../base/histogram.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import { journalFault } from "../../events/journal.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import type { FlushScheduler } from "../../h2/core/flush-scheduler.ts";
import { type BackendFacts, isSilent } from "../../health/backend.ts";
import type { Evidence } from "../../health/evidence.ts";
import { ReadLatency } from "../../health/read-latency.ts";
import type { PingTimes, Rtt } from "../../health/rtt.ts";
import type { TrustClass } from "../identity/trust.ts";
import type { Wire, WireOwner } from "../net/wire.ts";
import { Connection, type ConnectionOwner } from "./connection.ts";
import { DialBackoff } from "./dial-backoff.ts";
import { Keepalive, type KeepaliveTimes } from "./keepalive.ts";
import { upstreamLimits } from "./limits.ts";
import { type PoolKey, poolKey, warmKeys } from "./pool-key.ts";
import { hasOutdated, idleIn, refuse, retireOutdated, type Shard, type Waiter } from "./shard.ts";

export type ConnectionPoolOptions = PoolSettings & {
  readonly backend: string;
  readonly clock: Clock;
  /** A clock that stands still while the proxy's event loop is stalled. */
  readonly stallAwareClock: Pick<Clock, "now">;
  readonly turn: FlushScheduler;
  readonly buffered: Buffered;
  readonly journal: Journal;
  readonly learn: (evidence: Evidence) => void;
  /**
   * Called when the pool has closed its last connection on its own initiative, not because of the backend. Optional.
   */
  readonly unconnected?: (() => void) | undefined;
  /**
   * Called if one connection is silent while another answers. Starts a probe that shows whether large packets are lost.
   */
  readonly probeLargePackets: () => void;
  /** Returns what the health checks have recorded about the backend. */
  readonly facts: () => BackendFacts;
  /** Returns the clock reading at which the proxy sent the latest answered PING or probe to any other backend. */
  readonly othersAnsweredAt: () => number;
  /** Returns the clock reading at the end of the latest period without an answer from any backend. */
  readonly silenceOverAt: () => number;
  /** Opens a connection, which carries the proxy's own credential for this trust class, if there is one. */
  readonly connect: (owner: WireOwner, trust: TrustClass) => Wire;
  /** True if requests of this trust class may go to the backend (`Assertions`); default: all may. */
  readonly mayCarry?: ((trust: TrustClass) => boolean) | undefined;
  /** Trust classes for which the proxy has a credential of its own. The pool keeps connections warm for them, too. */
  readonly asserted?: readonly TrustClass[];
};

export type PoolSettings = {
  /** Maximum number of streams on one connection. */
  readonly streams: number;
  /**
   * Number of *warm* connections for each trust class and `ConnectionKind`: connections that are kept open without
   * requests.
   */
  readonly warm: number;
  /** The path below which all backends serve the API, such as "/k8s/clusters/c-1"; default: at the root. */
  readonly pathPrefix?: string;
  readonly ping: KeepaliveTimes;
};

/**
 * The key of a connection that is opened only to find out whether a dead backend is back. Needed if the pool keeps no
 * connections warm.
 */
const revivalKey = poolKey("proven", "plain");

/**
 * The failure of a dial that the proxy itself restarts. It shows nothing about the backend, and the requests continue
 * to wait.
 */
const dialledAgain = new Failure("backend-refused", "proxy", "Dial restarted: a newer socket was answered");

export class ConnectionPool implements ConnectionOwner {
  readonly #options: ConnectionPoolOptions;
  #settings: PoolSettings;
  readonly reads = new ReadLatency();
  /** Round-trip times of all answered PINGs, in seconds. */
  readonly pings = new Histogram(rttBounds);
  readonly #shards = new Map<string, Shard>();
  readonly #backoff: DialBackoff;
  readonly #shardOf = new Map<Connection, Shard>();
  readonly #keepalive: Keepalive<Connection>;
  readonly #warmKeys: readonly PoolKey[];
  #names = 0;
  #isBackendSuspect = false;
  #hasReportedSilence = false;
  /** Clock reading at which a PING was last answered so late that one of its packets must have been lost. */
  #lossAt = Number.NEGATIVE_INFINITY;
  /** Clock reading of the latest dial. */
  #dialledAt = Number.NEGATIVE_INFINITY;
  #isStopped = false;
  /** True after the pool's last connection was lost, or its first dial failed, until a dial succeeds. */
  #isDead = false;
  /**
   * The latest answer of the backend on a new socket after a silence. `at`: clock reading of the answer. `ms`: time
   * from opening the socket to the answer.
   */
  #answered: { readonly at: number; readonly ms: number } = { at: Number.NEGATIVE_INFINITY, ms: 0 };
  /** The reason that was journaled for the latest failed dial; "" after a successful one. */
  #journaledReason = "";

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#settings = options;
    this.#warmKeys = warmKeys(options.asserted);
    this.#backoff = new DialBackoff(options.clock, () => this.#redial());
    this.#keepalive = new Keepalive<Connection>({
      ...options,
      times: options.ping,
      connections: () => this.#shardOf.keys(),
      health: this,
      dead: (connection, silentMs) =>
        connection.fail(
          new Failure("backend-lost", "backend", `PING unanswered for ${Math.round(silentMs)} ms`),
        ),
      isRemoved: () => this.#isStopped,
      ticked: () => this.#ticked(),
    });
  }

  start(): void {
    for (const key of this.#warmKeys) this.#keepWarm(this.#shard(key));
    this.#keepalive.start();
  }

  /** Applies new settings at once. Open connections take as many streams as the new settings allow. */
  configure(settings: PoolSettings): void {
    this.#settings = settings;
    this.#keepalive.configure(settings.ping);
    this.#redial();
  }

  /**
   * Retires every connection, and refuses waiting requests, because the backend was removed. Connections with open
   * streams still get PINGs: operators often remove a backend because it hangs, and only an unanswered PING shows that
   * its streams hang.
   */
  stop(): void {
    this.#isStopped = true;
    this.#backoff.stop();
    for (const connection of Array.from(this.#shardOf.keys())) connection.retire();
    if (this.#shardOf.size === 0) this.#keepalive.stop();
    this.#refuseAll(new Failure("backend-refused", "backend", "The backend was removed"));
  }

  /** Returns a connection with room for a stream; undefined: none. */
  take(key: PoolKey): Connection | undefined {
    const shard = this.#shard(key);
    if (!this.#mayCarry(shard)) return undefined;
    let shaky: Connection | undefined;
    for (const connection of shard.connections) {
      // A silent connection gets no new streams, because another connection or a new socket may answer (D6).
      if (connection.room <= 0 || connection.isSuspect) continue;
      if (!connection.isShaky) return this.#taken(shard, connection);
      // A connection that was silent recently is the last choice, because its network path may lose packets.
      shaky ??= connection;
    }
    return shaky === undefined ? undefined : this.#taken(shard, shaky);
  }

  #taken(shard: Shard, connection: Connection): Connection {
    if (connection.room === 1) this.#dialAhead(shard);
    return connection;
  }

  wait(waiter: Waiter): void {
    const shard = this.#shard(waiter.key);
    if (!this.#mayCarry(shard)) return waiter.refused(this.#unproven());
    if (shard.waiting.size >= limits.waitingExchanges) {
      waiter.refused(
        new Failure("overload", "proxy", `Too many requests wait for backend ${this.#options.backend}`),
      );
      return;
    }
    shard.waiting.set(waiter, this.#options.stallAwareClock.now());
    this.#dial(shard);
    if (this.#options.facts().isUntrusted && !shard.connections.some((connection) => connection.isOpening))
      refuse(shard, this.#untrusted(), this.#options.clock);
  }

  /** Removes a waiting request that no longer needs a connection. */
  forget(waiter: Waiter): void {
    this.#shards.get(waiter.key.name)?.waiting.delete(waiter);
  }

  /** Notifies the attempts when the backend becomes suspect, and when it no longer is. */
  judged(isSuspect: boolean): void {
    if (isSuspect !== this.#isBackendSuspect) {
      this.#isBackendSuspect = isSuspect;
      for (const connection of Array.from(this.#shardOf.keys()))
        if (!connection.isSuspect) connection.doubt(isSuspect);
    }
    if (!isSuspect) return;
    for (const shard of this.#shards.values()) {
      for (const waiter of Array.from(shard.waiting.keys())) waiter.suspected();
    }
  }

  /**
   * After how many ms of silence a connection is suspect, and after how many it is dead. Both times depend on the
   * backend's present round-trip time.
   */
  get deadlines(): PingTimes {
    return this.#keepalive.deadlines;
  }

  get rtt(): Rtt {
    return this.#keepalive.rtt;
  }

  abandon(): void {
    this.#refuseAll(new Failure("backend-refused", "backend", `Backend ${this.#options.backend} is dead`));
  }

  /**
   * Restarts the dials that began during a silence of the backend and have lasted too long, and makes delayed dials
   * now. Called when the backend answers on a new socket. `ms`: time from opening that socket to the answer.
   */
  redialStuck(ms: number): void {
    if (this.#isStopped || this.hasAnswering) return;
    this.#answered = { at: this.#options.clock.now(), ms };
    this.#failStuck();
    this.#redial();
  }

  /**
   * Fails the dials that have already taken three times as long as the dial of the answered socket, because their SYN
   * was probably lost. A dial that is only a little slower, or that began after the answer, goes on.
   */
  #failStuck(): void {
    const { at, ms } = this.#answered;
    const before = this.#options.clock.now() - Math.max(upstreamLimits.hurriedDialMs, 3 * ms);
    for (const connection of Array.from(this.#shardOf.keys())) {
      const { isOpening, dialledAt } = connection;
      if (isOpening && dialledAt <= Math.min(at, before)) connection.fail(dialledAgain);
    }
  }

  /**
   * Gives each shard of this trust class a new connection, because the class's certificate was replaced. When the new
   * connection is open, the old ones take no new streams; if the old certificate was not proven, they take none from
   * now on. Open streams go on, because the apiserver checks a certificate only when a request begins (A44).
   */
  renew(trust: TrustClass, wasProven: boolean): void {
    for (const shard of this.#shards.values()) {
      if (shard.key.trust !== trust || shard.connections.length === 0) continue;
      for (const connection of shard.connections) connection.isOutdated = true;
      if (!wasProven) retireOutdated(shard);
      this.#dial(shard);
    }
  }

  /**
   * Replaces the connections to addresses that the backend's name has no longer, and that were dialled before the
   * answers in question. The next tick dials. When a new connection is open, the old ones take no new streams; from the
   * next call on, their watches move. Other open streams go on.
   */
  leaveAddresses(isUnnamed: (address: string) => boolean): void {
    const before = this.#options.clock.now() - upstreamLimits.nameLookMs * upstreamLimits.nameAnswers;
    const isGoing = ({ address, isOpened, dialledAt }: Connection): boolean =>
      isOpened && address !== "" && dialledAt < before && isUnnamed(address);
    for (const connection of Array.from(this.#shardOf.keys()).filter(isGoing)) {
      if (connection.isRetiring) connection.leave();
      else connection.isOutdated = true;
    }
  }

  get openStreams(): number {
    let sum = 0;
    for (const connection of this.#shardOf.keys()) sum += connection.openCount;
    return sum;
  }

  get shards(): readonly {
    readonly key: PoolKey;
    readonly connections: readonly Connection[];
    readonly waiting: number;
  }[] {
    return [...this.#shards.values()].map(({ key, connections, waiting }) => ({
      key,
      connections,
      waiting: waiting.size,
    }));
  }

  // --- methods for the connections ---

  opened(connection: Connection): void {
    const { backend, journal } = this.#options;
    this.#backoff.succeeded();
    this.#isDead = false;
    this.#journaledReason = "";
    this.#learn({ kind: "connection-opened", ms: this.#options.clock.now() - connection.dialledAt });
    journal.write({ kind: "upstream_connection.opened", backend, connection: connection.name });
    const shard = this.#shardOf.get(connection);
    if (shard !== undefined && !connection.isOutdated) retireOutdated(shard);
  }

  changed(connection: Connection): void {
    if (connection.isPeerGoing) this.#seeGoing();
    const shard = this.#shardOf.get(connection);
    if (shard === undefined || shard.waiting.size === 0) return;
    if (!this.#mayCarry(shard)) return refuse(shard, this.#unproven(), this.#options.clock);
    for (const waiter of Array.from(shard.waiting.keys())) {
      if (connection.room <= 0) break;
      shard.waiting.delete(waiter);
      waiter.ready(connection);
    }
    if (shard.waiting.size > 0) this.#dial(shard);
  }

  /** Clears the suspicion of a connection on which bytes have arrived again. */
  resumed(connection: Connection): void {
    connection.clear();
    if (!this.#isBackendSuspect) connection.doubt(false);
    this.#reportAnswering();
  }

  /** Records an answered PING. It proves that the backend's process runs, which received bytes alone do not prove. */
  ponged(connection: Connection, ms: number): void {
    const isLate =
      ms > upstreamLimits.latePingMs && ms > upstreamLimits.latePingMs + 2 * this.rtt.quantile(0.5);
    this.#keepalive.rtt.add(ms);
    this.pings.observe(ms / 1000);
    if (isLate) this.#lossAt = this.#options.clock.now();
    if (connection.isSuspect) this.resumed(connection);
    else if (this.#hasReportedSilence) this.#reportAnswering();
  }

  faulted(error: unknown): void {
    journalFault(this.#options.journal, error);
  }

  closed(connection: Connection, failure: Failure | undefined): void {
    const shard = this.#shardOf.get(connection);
    if (shard === undefined) return;
    this.#shardOf.delete(connection);
    shard.connections.splice(shard.connections.indexOf(connection), 1);
    this.#journalClosed(connection, failure?.message ?? "ended");
    if (this.#isStopped) return this.#shardOf.size === 0 ? this.#keepalive.stop() : undefined;
    this.#reportEnd(connection, failure);
    // After a GOAWAY, the last connection ends without a failure. Without a warm connection, only a dial for its own
    // sake shows that the backend is back.
    if (this.#shardOf.size === 0 && isSilent(this.#options.facts())) this.#isDead = true;
    if (failure !== undefined) this.#lost(connection, shard, failure);
    this.#dialOrForget(shard);
    this.#backoff.soon();
  }

  /** Journals each reason only once, because a backend that stays down may cause eight failed dials a second. */
  #journalClosed(connection: Connection, reason: string): void {
    if (!connection.isOpened && reason === this.#journaledReason) return;
    if (!connection.isOpened) this.#journaledReason = reason;
    const { backend, journal } = this.#options;
    journal.write({ kind: "upstream_connection.closed", backend, connection: connection.name, reason });
  }

  // --- evidence about the backend ---

  /**
   * True if some connection certainly works. Received bytes alone do not prove it, because the kernel of a frozen
   * process still sends what is in its buffers. So a PING that is unanswered for too long counts as silence even while
   * bytes arrive.
   */
  get hasAnswering(): boolean {
    const mostMs = upstreamLimits.unansweredShare * this.deadlines.suspectAfterMs;
    return this.#shardOf
      .keys()
      .some((connection) => connection.isOpened && !connection.isSuspect && connection.pingMs < mostMs);
  }

  /**
   * True if a connection that was in use is silent while another one answers without late PINGs. The cause may be a
   * lost packet, a fault of one connection, or the path MTU; a probe with a large response decides.
   */
  get mayLoseLargePackets(): boolean {
    if (this.#isLossy) return false;
    const isStuck = this.#shardOf.keys().some((connection) => connection.isSuspect && connection.wasInUse);
    return isStuck && this.hasAnswering;
  }

  /**
   * True if small packets pass: a PING that was sent after the clock reading `since` was answered, and no recent PING
   * was late.
   */
  passesSmallPackets(since: number): boolean {
    return !this.#isLossy && this.#shardOf.keys().some((connection) => connection.isAnsweringSince(since));
  }

  /** True if small packets were lost recently. A silent connection is then no sign that only large packets are lost. */
  get #isLossy(): boolean {
    return this.#options.clock.now() - this.#lossAt < upstreamLimits.lossyMs;
  }

  /** Makes a connection suspect, because it was silent for `ms`. If no connection answers, reports the silence. */
  silent(connection: Connection, ms: number): void {
    const isNews = connection.suspect();
    if (this.hasAnswering) {
      if (isNews && connection.wasInUse) this.#options.probeLargePackets();
      return;
    }
    this.#hasReportedSilence = true;
    this.#learn({ kind: "connections-silent", ms, limitMs: this.deadlines.suspectAfterMs });
  }

  /**
   * Notifies suspect and slow attempts. Called only when all silent connections are known, because hedges avoid silent
   * connections.
   */
  notifyAttempts(): void {
    this.reads.fade(this.#options.clock.now());
    const slowMs = this.reads.hedgeAfterMs(this.deadlines.suspectAfterMs);
    for (const connection of Array.from(this.#shardOf.keys()))
      if (this.#isBackendSuspect || connection.isSuspect) connection.doubt(true);
      else if (connection.kind === "plain") connection.notifySlow(slowMs);
  }

  /**
   * Reports that the backend drains if all its connections have got a GOAWAY. A GOAWAY on only some connections has
   * another cause, such as a 401 or the apiserver's option --goaway-chance.
   */
  #seeGoing(): void {
    const opened = this.#shardOf
      .keys()
      // A connection that the proxy has retired is no evidence about the backend.
      .filter((connection) => connection.isOpened && (!connection.isRetiring || connection.isPeerGoing))
      .toArray();
    if (opened.length > 0 && opened.every((connection) => connection.isPeerGoing))
      this.#learn({ kind: "connections-going" });
  }

  /** Reports what the end of a connection shows. The connection must have been removed. */
  #reportEnd(connection: Connection, failure: Failure | undefined): void {
    if (!connection.isOpened && failure?.origin === "backend") this.#dialFailed(connection, failure);
    const reason = failure?.message ?? "the connection was closed";
    if (isLetGo(connection, failure)) return this.#letGo(connection);
    if (this.#wasLast(connection)) this.#learn({ kind: "connections-lost", by: endOf(connection), reason });
    else if (connection.isSuspect) this.#reportAnswering();
  }

  #letGo(connection: Connection): void {
    if (connection.isOpened && this.#wasLast(connection)) this.#options.unconnected?.();
  }

  #dialFailed({ dialledAt: begunAt }: Connection, failure: Failure): void {
    const ms = this.#options.clock.now() - begunAt;
    this.#learn({ kind: "fresh", met: metOf(failure), begunAt, ms, reason: failure.message });
  }

  #wasLast(connection: Connection): boolean {
    const others = this.#shardOf.keys().toArray();
    return connection.isOpened ? !others.some((other) => other.isOpened) : others.length === 0;
  }

  #reportAnswering(): void {
    if (!this.hasAnswering) return;
    this.#hasReportedSilence = false;
    this.#learn({ kind: "connections-answer" });
  }

  #learn(evidence: Evidence): void {
    if (!this.#isStopped) this.#options.learn(evidence);
  }

  // --- dialling ---

  /** Dials if requests wait. Otherwise deletes the shard if it has no connections and belongs to a single client. */
  #dialOrForget(shard: Shard): void {
    if (shard.waiting.size > 0) this.#dial(shard);
    else if (shard.connections.length === 0 && shard.key.owner !== "") this.#shards.delete(shard.key.name);
  }

  /**
   * Refuses the requests that waited for the lost connection. If the pool has no connection left, refuses all waiting
   * requests.
   */
  #lost(connection: Connection, shard: Shard, failure: Failure): void {
    const refusal = new Failure("backend-refused", "backend", failure.message, failure);
    this.#isDead ||= this.#shardOf.size === 0;
    if (failure === dialledAgain) return;
    if (this.#shardOf.size === 0) this.#refuseAll(refusal);
    else if (!connection.isOpened && !shard.connections.some((other) => other.isOpening))
      refuse(shard, refusal, this.#options.clock);
  }

  #mayCarry({ key }: Shard): boolean {
    return this.#options.mayCarry?.(key.trust) ?? true;
  }

  #unproven(): Failure {
    const message = `Backend ${this.#options.backend} does not accept this proxy's word for the user of a client certificate`;
    return new Failure("backend-refused", "backend", message);
  }

  #untrusted(): Failure {
    const message = `TLS verification of backend ${this.#options.backend} failed`;
    return new Failure("backend-refused", "backend", message);
  }

  #refuseAll(failure: Failure): void {
    for (const shard of this.#shards.values()) refuse(shard, failure, this.#options.clock);
  }

  #shard(key: PoolKey): Shard {
    let shard = this.#shards.get(key.name);
    if (shard === undefined) {
      shard = { key, connections: [], waiting: new Map() };
      this.#shards.set(key.name, shard);
    }
    return shard;
  }

  /** Dials one connection at a time for a shard; several if more requests wait than one connection can take. */
  #dial(shard: Shard): void {
    const opening = shard.connections.filter((connection) => connection.isOpening).length;
    if (opening * this.#settings.streams >= Math.max(1, shard.waiting.size) || this.#isStopped) return;
    // A new connection would get the same wrong certificate. Probes find out when the certificate is right again (D6).
    if (this.#options.facts().isUntrusted) return;
    if (shard.connections.length >= upstreamLimits.connections) return;
    if (!this.#mayDialBarred(shard)) return;
    const { trust } = shard.key;
    // If the dial budget is used up, nothing happens now. A later tick dials for the requests that still wait.
    if (!this.#backoff.take(shard.key)) return;
    this.#names += 1;
    const { clock, turn, buffered } = this.#options;
    const mostStreams = (): number => this.#settings.streams;
    const pathPrefix = (): string => this.#settings.pathPrefix ?? "";
    const connect = (owner: WireOwner): Wire => this.#options.connect(owner, trust);
    // Uses the fastest tenth of the PINGs, because slower ones may have waited behind a long response.
    const rttMs = (): number => this.rtt.quantile(0.1);
    const parts = { clock, turn, buffered, owner: this, mostStreams, pathPrefix, connect, rttMs };
    const connection = new Connection({ key: shard.key, number: this.#names, ...parts });
    shard.connections.push(connection);
    this.#shardOf.set(connection, shard);
  }

  /**
   * A backend that admits no streams on its latest connection will hardly do so on the next one, so it is dialled less
   * than once a second, and only for requests that wait.
   */
  #mayDialBarred({ connections, waiting }: Shard): boolean {
    const now = this.#options.clock.now();
    const isBarred = connections.at(-1)?.isBarred === true;
    if (isBarred && waiting.size === 0) return false;
    if (isBarred && now - this.#dialledAt < upstreamLimits.barredDialMs) return false;
    this.#dialledAt = now;
    return true;
  }

  #dialAhead(shard: Shard): void {
    const hasSpare =
      shard.connections.filter((connection) => connection.isOpening || connection.room > 1).length > 0;
    if (!hasSpare) this.#dial(shard);
  }

  /**
   * Dials if a warm connection is missing. Returns false if one is still missing afterwards. A connection that is being
   * opened is not missing.
   */
  #keepWarm(shard: Shard): boolean {
    const taking = (): number =>
      shard.connections.filter((connection) => !connection.isRetiring && !connection.isSuspect).length;
    if (taking() < this.#settings.warm) this.#dial(shard);
    return taking() >= this.#settings.warm;
  }

  #redial(): void {
    this.#backoff.stop();
    if (this.#isStopped) return;
    if (this.#options.facts().isUntrusted) return this.#backoff.soon();
    const areWarm = this.#warmKeys.map((key) => this.#keepWarm(this.#shard(key))).every(Boolean);
    // Schedules another dial. One call dials at most one connection, and none if the dial budget is used up.
    if (!areWarm) this.#backoff.soon();
    // A dead backend gets no requests. Without this dial, the proxy would not notice that the backend is back.
    if (this.#isDead && this.#shardOf.size === 0) this.#dial(this.#shard(revivalKey));
  }

  // --- methods for the keepalive ---

  #ticked(): void {
    const now = this.#options.clock.now();
    if (this.#isStopped) return this.#shardOf.size === 0 ? this.#keepalive.stop() : undefined;
    this.#failStuck();
    for (const shard of this.#shards.values()) {
      if (!this.#mayCarry(shard)) refuse(shard, this.#unproven(), this.#options.clock);
      this.#attend(shard, this.#options.stallAwareClock.now());
      this.#dialOrForget(shard);
      this.#retireIdle(shard, now);
      // Dials again: the first dial for the new certificate may have failed, or the budget was used up.
      if (hasOutdated(shard)) this.#dial(shard);
    }
  }

  /**
   * Refuses requests that have waited too long. A request whose key has changed moves to the shard of its new key.
   * `now`: a reading of `stallAwareClock`.
   */
  #attend(shard: Shard, now: number): void {
    for (const [waiter, since] of shard.waiting) {
      const key = waiter.rekey();
      if (key.name !== shard.key.name) {
        shard.waiting.delete(waiter);
        this.#admit(waiter, since);
      } else if (now - since > upstreamLimits.connectionWaitMs) {
        shard.waiting.delete(waiter);
        const message = `Backend ${this.#options.backend} had no free upstream connection for ${upstreamLimits.connectionWaitMs} ms`;
        waiter.refused(new Failure("overload", "proxy", message));
      } else if (now - since > upstreamLimits.connectionDoubtMs) waiter.suspected();
    }
  }

  #admit(waiter: Waiter, since: number): void {
    const connection = this.take(waiter.key);
    if (connection === undefined) this.#shard(waiter.key).waiting.set(waiter, since);
    else waiter.ready(connection);
  }

  #retireIdle(shard: Shard, now: number): void {
    const isWarm = this.#warmKeys.some(({ name }) => name === shard.key.name);
    const { isWanting, going } = idleIn(shard, isWarm ? this.#settings.warm : 0, now);
    if (isWanting) this.#dial(shard);
    for (const connection of going) connection.retire();
  }
}

/** True if the proxy itself gave up the dial or closed the idle connection, which says nothing about the backend. */
function isLetGo(connection: Connection, failure: Failure | undefined): boolean {
  if (!connection.isOpened) return failure?.origin === "proxy";
  return failure === undefined && connection.isRetiring && !connection.isPeerGoing;
}

/** How a connection ended. dial: it never opened. ping: it was silent. socket: the backend closed it. */
function endOf(connection: Connection): "ping" | "dial" | "socket" {
  if (!connection.isOpened) return "dial";
  return connection.isSuspect ? "ping" : "socket";
}
