/**
 * One backend's upstream connections. Requests of one trust class and kind share a row of them; when the last row's room runs low
 * another upstream connection is dialled before it is needed. Requests that find none wait here, unsent, until an upstream connection opens or the
 * dial fails. Tells health what dials and PINGs say.
 */
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { faulted } from "../../events/internal-error.ts";
import type { Journal } from "../../events/journal.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import type { FlushScheduler } from "../../h2/core/flush-scheduler.ts";
import type { BackendFacts } from "../../health/backend.ts";
import type { Evidence } from "../../health/evidence.ts";
import { Reads } from "../../health/read-latency.ts";
import type { PingTimes, Rtt } from "../../health/rtt.ts";
import type { TrustClass } from "../identity/trust.ts";
import type { Wire, WireOwner } from "../net/wire.ts";
import { Connection, type ConnectionOwner } from "./connection.ts";
import { DialBackoff } from "./dial-backoff.ts";
import { Keepalive, type KeepaliveTimes } from "./keepalive.ts";
import { PoolHealth } from "./pool-health.ts";
import { type PoolKey, poolKey, warmKeys } from "./pool-key.ts";
import { hasOutdated, idleIn, outdate, refuse, retireOutdated, type Shard, type Waiter } from "./shard.ts";

export type ConnectionPoolOptions = {
  readonly backend: string;
  readonly clock: Clock;
  /** Stands still while our own loop does. */
  readonly stallAwareClock: Pick<Clock, "now">;
  readonly turn: FlushScheduler;
  readonly buffered: Buffered;
  readonly journal: Journal;
  readonly learn: (evidence: Evidence) => void;
  /** Called when an upstream connection in use falls silent while another is answered: a probe tells whether large packets are lost. */
  readonly doubtLarge: () => void;
  /** Has a fresh socket been answered since its upstream connections fell silent, and is the name on its certificate right? */
  readonly known: () => Pick<BackendFacts, "answersAgainAt" | "isUntrusted"> & {
    readonly isAnswering: boolean;
  };
  /** When the latest PING or probe was sent that another backend has answered: a clock reading. */
  readonly othersAnsweredAt: () => number;
  /** When a backend last answered after all were silent: a clock reading. */
  readonly silenceOverAt: () => number;
  /** Opens a wire that carries the credential of this class, if it has one of ours. */
  readonly connect: (owner: WireOwner, trust: TrustClass) => Wire;
  /** For whom we vouch here, so that upstream connections are kept warm for them as well. */
  readonly vouched?: readonly TrustClass[];
  readonly streams: number;
  readonly warm: number;
  readonly ping: KeepaliveTimes;
};

/** A dead backend without warm upstream connections is dialled for these, to learn that it is back. */
const revivalKey = poolKey("proven", "plain");

/** Ours, not the backend's: what we give up says nothing of it, and those who wait for it wait on. */
const dialledAgain = new Failure("backend-refused", "proxy", "Dialled again: a newer socket was answered");

export class ConnectionPool implements ConnectionOwner {
  readonly #options: ConnectionPoolOptions;
  readonly reads = new Reads();
  readonly #shards = new Map<string, Shard>();
  readonly #backoff: DialBackoff;
  readonly #shardOf = new Map<Connection, Shard>();
  readonly #keepalive: Keepalive<Connection>;
  readonly #health: PoolHealth;
  readonly #warmKeys: readonly PoolKey[];
  #names = 0;
  #isStopped = false;
  /** Since the last upstream connection failed no dial has succeeded. */
  #isDead = false;
  /** Why an upstream connection could not be opened, as it was told last; "": one could since. */
  #toldReason = "";

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#warmKeys = warmKeys(options.vouched);
    this.#backoff = new DialBackoff(options.clock, () => this.#redial());
    const connections = (): MapIterator<Connection> => this.#shardOf.keys();
    const deadlines = (): PingTimes => this.#keepalive.deadlines;
    this.#health = new PoolHealth({ ...options, connections, deadlines, reads: this.reads });
    this.#keepalive = new Keepalive<Connection>({
      clock: options.clock,
      times: options.ping,
      connections,
      suspect: (connection, silentMs) => this.#health.silent(connection, silentMs),
      dead: (connection, silentMs) =>
        connection.fail(
          new Failure("backend-lost", "backend", `PING unanswered for ${Math.round(silentMs)} ms`),
        ),
      looked: () => this.#health.tellAttempts(),
      isAnswering: () => options.known().isAnswering || this.#health.hasAnswering,
      answersAgainAt: () => options.known().answersAgainAt,
      othersAnsweredAt: options.othersAnsweredAt,
      silenceOverAt: options.silenceOverAt,
      isRemoved: () => this.#isStopped,
      ticked: () => this.#ticked(),
    });
  }

  start(): void {
    for (const key of this.#warmKeys) this.#keepWarm(this.#shard(key));
    this.#keepalive.start();
  }

  /**
   * Retires every upstream connection; those who wait hear that the backend is gone. Upstream connections that still have streams keep their PING:
   * a backend is often removed because it hangs, and nobody else would ever tell who waits on it.
   */
  stop(): void {
    this.#isStopped = true;
    this.#health.dismiss();
    this.#backoff.stop();
    for (const connection of Array.from(this.#shardOf.keys())) connection.retire();
    if (this.#shardOf.size === 0) this.#keepalive.stop();
    this.#refuseAll(new Failure("backend-refused", "backend", "The backend was removed"));
  }

  /** An upstream connection with room, or undefined: then one may wait for it. */
  take(key: PoolKey): Connection | undefined {
    const shard = this.#shard(key);
    let shaky: Connection | undefined;
    for (const connection of shard.connections) {
      // A silent upstream connection gets nothing new; another one, or a fresh socket, may well answer (D6).
      if (connection.room <= 0 || connection.isSuspect) continue;
      if (!connection.isShaky) return this.#taken(shard, connection);
      // One that was silent a moment ago may be so again: its socket loses what another does not.
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
    if (shard.waiting.size >= limits.waitingExchanges) {
      waiter.refused(
        new Failure("overload", "proxy", `Too many requests wait for backend ${this.#options.backend}`),
      );
      return;
    }
    shard.waiting.set(waiter, this.#options.stallAwareClock.now());
    this.#dial(shard);
    if (this.#options.known().isUntrusted && !shard.connections.some((connection) => connection.isOpening))
      refuse(shard, this.#untrusted(), this.#options.clock);
  }

  /** The waiter has gone: its client hung up. */
  forget(waiter: Waiter): void {
    this.#shards.get(waiter.key.name)?.waiting.delete(waiter);
  }

  /** The backend as a whole was judged: its attempts hear when that makes it suspect, and when it is so no more. */
  judged(isSuspect: boolean): void {
    this.#health.judged(isSuspect);
    if (!isSuspect) return;
    for (const shard of this.#shards.values()) {
      for (const waiter of Array.from(shard.waiting.keys())) waiter.suspected();
    }
  }

  /** True while an upstream connection that was in use is silent and another upstream connection is answered, none of its PINGs late. */
  get mayLoseLarge(): boolean {
    return this.#health.mayLoseLarge;
  }

  /** True if a PING that was sent after this clock reading was answered, and none was late for a while. */
  passesSmall(since: number): boolean {
    return this.#health.passesSmall(since);
  }

  /** When silence becomes suspicious and certain, as far away as the backend is now. */
  get deadlines(): PingTimes {
    return this.#keepalive.deadlines;
  }

  /** How long PINGs take. */
  get rtt(): Rtt {
    return this.#keepalive.rtt;
  }

  /** The backend is dead: nobody waits for it any longer. */
  abandon(): void {
    this.#refuseAll(new Failure("backend-refused", "backend", `Backend ${this.#options.backend} is dead`));
  }

  /**
   * A new socket was answered after `ms`: upstream connections that were dialled into a hole, or would be dialled later, are dialled now.
   * One that takes three times as long as that socket has its SYN in the hole; a slow handshake is given its time.
   */
  probeNow(ms: number): void {
    if (this.#isStopped || this.#health.hasAnswering) return;
    const { clock } = this.#options;
    for (const connection of Array.from(this.#shardOf.keys())) {
      if (
        !connection.isOpening ||
        clock.now() - connection.dialledAt < Math.max(limits.hurriedDialMs, 3 * ms)
      )
        continue;
      connection.fail(dialledAgain);
    }
    this.#redial();
  }

  /**
   * Upstream connections of this class show a certificate that was replaced. Each row gets a new upstream connection first; when that is open the old
   * ones take nobody any more. What is on them lives on: the apiserver looks at a certificate when a request begins (A44).
   */
  renew(trust: TrustClass): void {
    for (const shard of this.#shards.values()) {
      if (shard.key.trust === trust && outdate(shard)) this.#dial(shard);
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

  // --- what upstream connections tell ---

  opened(connection: Connection): void {
    const { backend, journal } = this.#options;
    this.#backoff.succeeded();
    this.#isDead = false;
    this.#toldReason = "";
    this.#health.opened(connection);
    journal.write({ kind: "upstream_connection.opened", backend, lane: connection.name });
    const shard = this.#shardOf.get(connection);
    if (shard !== undefined && !connection.isOutdated) retireOutdated(shard);
  }

  changed(connection: Connection): void {
    if (connection.isPeerGoing) this.#health.seeGoing();
    const shard = this.#shardOf.get(connection);
    if (shard === undefined || shard.waiting.size === 0) return;
    for (const waiter of Array.from(shard.waiting.keys())) {
      if (connection.room <= 0) break;
      shard.waiting.delete(waiter);
      waiter.ready(connection);
    }
    if (shard.waiting.size > 0) this.#dial(shard);
  }

  heard(connection: Connection): void {
    this.#health.heard(connection);
  }

  ponged(connection: Connection, ms: number): void {
    const isLate = ms > limits.latePingMs && ms > limits.latePingMs + 2 * this.rtt.quantile(0.5);
    this.#keepalive.rtt.add(ms);
    this.#health.ponged(connection, isLate);
  }

  faulted(error: unknown): void {
    faulted(this.#options.journal, error);
  }

  closed(connection: Connection, failure: Failure | undefined): void {
    const shard = this.#shardOf.get(connection);
    if (shard === undefined) return;
    this.#shardOf.delete(connection);
    shard.connections.splice(shard.connections.indexOf(connection), 1);
    this.#tellClosed(connection, failure?.message ?? "ended");
    if (this.#isStopped) return this.#shardOf.size === 0 ? this.#keepalive.stop() : undefined;
    this.#health.closed(connection, failure);
    if (failure !== undefined) this.#lost(connection, shard, failure);
    this.#dialOrForget(shard);
    this.#backoff.soon();
  }

  /** A backend that stays down costs eight dials a second with our own certificates: each reason is told once. */
  #tellClosed(connection: Connection, reason: string): void {
    if (!connection.isOpened && reason === this.#toldReason) return;
    if (!connection.isOpened) this.#toldReason = reason;
    const { backend, journal } = this.#options;
    journal.write({ kind: "upstream_connection.closed", backend, lane: connection.name, reason });
  }

  // --- dialling ---

  /** A row without an upstream connection needs one if somebody waits; a client's own that is empty is not kept. */
  #dialOrForget(shard: Shard): void {
    if (shard.waiting.size > 0) this.#dial(shard);
    else if (shard.connections.length === 0 && shard.key.owner !== "") this.#shards.delete(shard.key.name);
  }

  /** Those who waited for this upstream connection go to another backend, unsent; when it was the last, all who wait do. */
  #lost(connection: Connection, shard: Shard, failure: Failure): void {
    const refusal = new Failure("backend-refused", "backend", failure.message, failure);
    this.#isDead ||= this.#shardOf.size === 0;
    if (failure === dialledAgain) return;
    if (this.#shardOf.size === 0) this.#refuseAll(refusal);
    else if (!connection.isOpened && !shard.connections.some((other) => other.isOpening))
      refuse(shard, refusal, this.#options.clock);
  }

  #untrusted(): Failure {
    const message = `The certificate of backend ${this.#options.backend} is not to be trusted`;
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

  /** One dial at a time for a row, unless more wait than one upstream connection takes. */
  #dial(shard: Shard): void {
    const opening = shard.connections.filter((connection) => connection.isOpening).length;
    if (opening * this.#options.streams >= Math.max(1, shard.waiting.size) || this.#isStopped) return;
    // Under another name nothing new is said; fresh-socket probes go on asking (D6).
    if (this.#options.known().isUntrusted) return;
    if (shard.connections.length >= limits.connections) return;
    const { trust } = shard.key;
    // A dial that the budget holds back is made by a later tick: those who wait are still there.
    if (!this.#backoff.take(shard.key)) return;
    this.#names += 1;
    const { clock, turn, buffered, streams: mostStreams } = this.#options;
    const connect = (owner: WireOwner): Wire => this.#options.connect(owner, trust);
    // The distance is what the fastest PINGs take: others stood behind a long answer.
    const rttMs = (): number => this.rtt.quantile(0.1);
    const parts = { clock, turn, buffered, owner: this, mostStreams, connect, rttMs };
    const connection = new Connection({ key: shard.key, number: this.#names, ...parts });
    shard.connections.push(connection);
    this.#shardOf.set(connection, shard);
  }

  #dialAhead(shard: Shard): void {
    const hasSpare =
      shard.connections.filter((connection) => connection.isOpening || connection.room > 1).length > 0;
    if (!hasSpare) this.#dial(shard);
  }

  /** False if an upstream connection is wanting and none was dialled. */
  #keepWarm(shard: Shard): boolean {
    const taking = (): number =>
      shard.connections.filter((connection) => !connection.isRetiring && !connection.isSuspect).length;
    if (taking() < this.#options.warm) this.#dial(shard);
    return taking() >= this.#options.warm;
  }

  /** After a loss the warm upstream connections come back. */
  #redial(): void {
    this.#backoff.stop();
    if (this.#isStopped) return;
    if (this.#options.known().isUntrusted) return this.#backoff.soon();
    const areWarm = this.#warmKeys.map((key) => this.#keepWarm(this.#shard(key))).every(Boolean);
    // The budget of dials was spent, or more than one is wanting: nothing else would bring them back.
    if (!areWarm) this.#backoff.soon();
    // Nobody is sent to a dead backend, so without warm upstream connections nobody would ever find it alive again.
    if (this.#isDead && this.#shardOf.size === 0) this.#dial(this.#shard(revivalKey));
  }

  // --- time ---

  #ticked(): void {
    const now = this.#options.clock.now();
    if (this.#isStopped) return this.#shardOf.size === 0 ? this.#keepalive.stop() : undefined;
    for (const shard of this.#shards.values()) {
      this.#attend(shard, this.#options.stallAwareClock.now());
      this.#dialOrForget(shard);
      this.#retireIdle(shard, now);
      // The dial of a successor may have failed, or its budget was spent.
      if (hasOutdated(shard)) this.#dial(shard);
    }
  }

  /** `now` is a reading of `patience`. Nobody waits for ever: who may use better upstream connections by now goes there, who has waited too long goes elsewhere. */
  #attend(shard: Shard, now: number): void {
    for (const [waiter, since] of shard.waiting) {
      const key = waiter.wanted();
      if (key.name !== shard.key.name) this.#move(waiter, since, key);
      else if (now - since > limits.connectionWaitMs) {
        shard.waiting.delete(waiter);
        const message = `Backend ${this.#options.backend} had no room in ${limits.connectionWaitMs} ms`;
        waiter.refused(new Failure("overload", "proxy", message));
      } else if (now - since > limits.connectionDoubtMs) waiter.suspected();
    }
  }

  #move(waiter: Waiter, since: number, key: PoolKey): void {
    this.forget(waiter);
    waiter.key = key;
    const connection = this.take(key);
    if (connection === undefined) this.#shard(key).waiting.set(waiter, since);
    else waiter.ready(connection);
  }

  #retireIdle(shard: Shard, now: number): void {
    const isWarm = this.#warmKeys.some(({ name }) => name === shard.key.name);
    const { isWanting, going } = idleIn(shard, isWarm ? this.#options.warm : 0, now);
    if (isWanting) this.#dial(shard);
    for (const connection of going) connection.retire();
  }
}
