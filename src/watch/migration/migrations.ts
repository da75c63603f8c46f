/**
 * Decides when watches move, and how fast (D6). A watch that has lost its backend moves as fast as other backends
 * accept watches. A watch whose backend is draining moves at a slow pace. TargetPicker chooses the backend.
 * WatchSession (session/watch-session.ts) then opens the stream and switches the watch to it.
 */
import type { Clock } from "../../base/clock.ts";
import { Histogram, moveBounds } from "../../base/histogram.ts";
import { inSlices } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import type { Backends } from "../../health/backends.ts";
import type { Urgency } from "../../ops/ledger/urgency.ts";
import type { Attempt } from "../../upstream/pool/attempt.ts";
import type { Connection } from "../../upstream/pool/connection.ts";
import type { PoolSet } from "../../upstream/pool/pool-set.ts";
import type { CacheTracker } from "../cache/cache-progress.ts";
import { watchLimits } from "../limits.ts";
import { AnomalyLog } from "../session/anomaly-log.ts";
import type { AskReason, EndReason, LeaveReason, Move } from "../session/end-verdict.ts";
import type { WatchContext } from "../session/watch-context.ts";
import { WatchLives } from "../session/watch-lives.ts";
import type { WatchSession } from "../session/watch-session.ts";
import type { WatchStream } from "../session/watch-stream.ts";
import { MigrationLog } from "./migration-log.ts";
import { MovePace } from "./move-pace.ts";
import { MoveQueue } from "./move-queue.ts";
import { TargetPicker } from "./target-picker.ts";

export type MigrationsParts = {
  readonly clock: Clock;
  readonly stallAwareClock: Clock;
  readonly backends: Backends;
  readonly pools: PoolSet;
  readonly journal: Journal;
  readonly caches: CacheTracker;
  readonly versionOf: (backend: string) => string;
  /** Gets a bookmark for a watch whose resume version is too old for the backend that it should move to. */
  readonly refresher: { refused(watch: WatchSession): void };
  readonly initialEvents: { requestBound(watch: WatchSession, stream: WatchStream): void };
};

const none: readonly string[] = [];

export class Migrations {
  readonly clock: Clock;
  readonly stallAwareClock: Clock;
  /** Records the newest versions that each backend's caches have delivered, and which caches are stalled. */
  readonly caches: CacheTracker;
  readonly anomalies: AnomalyLog;
  readonly lives = new WatchLives();
  readonly targets: TargetPicker;
  readonly watches = new WatchesByResource();
  readonly #parts: MigrationsParts;
  readonly pace: MovePace;
  readonly #log: MigrationLog;
  readonly #urgent = new MoveQueue();
  /** Watches with a suspect stream that wait for a hedge, because the pace allowed none at the last tick. */
  readonly #suspect = new MoveQueue();
  /** Watches that have lost their stream while no backend is available. */
  readonly #parked = new Set<WatchSession>();
  /** Watches that leave a stalled cache. Their present stream still works. */
  readonly #migratingNow = new Set<WatchSession>();
  readonly #leaving = new Map<WatchSession, LeaveReason>();
  /**
   * True while a timer for the parked watches runs, and until the watches that were parked when it fired are queued.
   */
  #isTryingAgain = false;
  #isPumping = false;
  #isLeaving = false;
  #steps = 0;
  readonly moves = new Map<AskReason, number>();
  /**
   * Seconds from the time at which a watch's stream was lost or became suspect until the watch continued, by reason of
   * the move.
   */
  readonly moveDurations = new Map<string, Histogram>();
  readonly ends = new Map<EndReason, number>();
  refreshes = 0;
  sentinels = 0;

  constructor(parts: MigrationsParts) {
    this.#parts = parts;
    this.clock = parts.clock;
    this.stallAwareClock = parts.stallAwareClock;
    this.caches = parts.caches;
    this.targets = new TargetPicker(parts);
    this.anomalies = new AnomalyLog(parts.clock, parts.journal);
    this.pace = new MovePace(parts.clock);
    this.#log = new MigrationLog(parts.clock, parts.journal);
  }

  /**
   * Called after each chunk of a stream during its initial events. Requests a list whose version is an upper limit for
   * the versions of the initial events.
   */
  boundInitialEvents(watch: WatchSession, stream: WatchStream): void {
    this.#parts.initialEvents.requestBound(watch, stream);
  }

  /**
   * Connects an accepted stream to the records of its backend's cache (`caches`), so that the versions of its events
   * are recorded there.
   */
  follow(stream: WatchStream, asked: WatchContext): void {
    const { origin, resource, isWhole, scope } = asked;
    const { backend } = stream.attempt;
    if (origin.isForeign) return;
    const shown = scope === "" ? undefined : this.caches.ofScope(backend, scope);
    stream.join(this.caches.of(backend, resource), isWhole, shown);
  }

  /**
   * Queues a watch that has lost its stream, so that another backend continues it. If every backend was already asked
   * without success, waits `inMs` first. Returns a function that removes the watch from the queue.
   */
  resume(watch: WatchSession, inMs: number): () => void {
    if (inMs <= 0 || this.targets.elsewhereFor(watch, watch.tried) !== undefined)
      return this.#enqueue(watch, false);
    let undo = this.clock.after(inMs, () => {
      undo = this.#enqueue(watch, true);
    });
    return () => undo();
  }

  #enqueue(watch: WatchSession, hasWaited: boolean): () => void {
    this.#suspect.take(watch);
    this.#urgent.add(watch, hasWaited);
    this.#pumpSoon();
    return () => this.#forget(watch);
  }

  /**
   * Opens a hedge (a second stream beside a suspect first one), or queues the watch if the pace allows no hedge now.
   * Called at every tick of the keepalive while the watch's connection or backend does not answer.
   */
  hedge(watch: WatchSession, attempt: Attempt): void {
    // The cheapest check comes first, because this method is called often for each watch while many watches wait.
    if (!this.pace.isOpen(watch.clientRequest.caller.urgency)) {
      this.#suspect.add(watch, false);
      return this.#pumpSoon();
    }
    if (!watch.mayHedge) return;
    const isDoubtful = this.targets.isDoubtful(attempt.backend);
    const connection = isDoubtful
      ? undefined
      : this.#parts.pools.promptConnection(attempt.backend, watch.poolKey());
    // If there is no other backend, the same backend is asked on a new connection, because the fault may be in the
    // present connection only.
    const last = isDoubtful ? undefined : attempt.backend;
    const backend =
      connection === undefined
        ? (this.targets.elsewhereFor(watch, [attempt.backend]) ?? last)
        : attempt.backend;
    if (backend === undefined || !this.pace.take(watch.clientRequest.caller.urgency)) return;
    this.#send(watch.ask(backend, "suspect"), connection);
  }

  /** Opens a hedge, because the watch cache of the backend lags. `others`: backends whose caches lag as well. */
  hedgeElsewhere(watch: WatchSession, others: readonly string[]): void {
    const { attempt } = watch;
    if (watch.hedgeWithSentinel(others)) return;
    if (!this.pace.isOpen(watch.clientRequest.caller.urgency) || attempt === undefined || !watch.mayHedge)
      return;
    const backend = this.targets.elsewhereFor(watch, [attempt.backend, ...others]);
    if (backend === undefined || !this.pace.take(watch.clientRequest.caller.urgency)) return;
    this.#send(watch.ask(backend, "suspect"), undefined);
  }

  leave(watch: WatchSession, reason: LeaveReason): void {
    // Draining is the strongest reason to leave, so it replaces any other.
    if (reason === "draining" || !this.#leaving.has(watch)) this.#leaving.set(watch, reason);
    this.#leaveSoon();
  }

  /** Called if no other backend accepts the watch of a draining backend. Tries again after `declinedMs`. */
  leaveLater(watch: WatchSession): void {
    this.clock.after(watchLimits.declinedMs, () => this.leave(watch, "draining"));
  }

  /** Moves a watch off a stalled cache, as fast as other backends accept watches. */
  migrateNow(watch: WatchSession): void {
    this.#migratingNow.add(watch);
    this.#pumpSoon();
  }

  /**
   * Opens a second stream on the same backend to get one bookmark; bookmark-refresh.ts decides when. If the watch is a
   * sentinel (D13), its stream for comparison is dropped first. A new bookmark is more important: from an old version,
   * the watch could not move to a backend that has just restarted. Returns false if the watch's state allows no second
   * stream, or if its backend may be failing or takes no new requests.
   */
  refresh(watch: WatchSession): boolean {
    const { attempt } = watch;
    if (attempt === undefined || !watch.mayHedge || watch.state === "refreshing") return false;
    if (this.targets.isDoubtful(attempt.backend) || !watch.mayBeRefreshed) return false;
    if (this.targets.isClosed(watch, attempt)) return false;
    this.refreshes += 1;
    this.#send(watch.ask(attempt.backend, "refreshed"), undefined);
    return true;
  }

  /** Opens the second stream of a sentinel (D13, sentinels.ts). The stream goes to `backend`. */
  post(watch: WatchSession, backend: string): void {
    this.sentinels += 1;
    this.#send(watch.ask(backend, "sentinel"), undefined);
  }

  /** Counts the move of a watch. `auditId`: the audit id of the request that opened the watch. */
  moved({ reason, from, to, ms }: Move, auditId: string): void {
    if (reason === "refreshed") return;
    this.moves.set(reason, (this.moves.get(reason) ?? 0) + 1);
    const durations = this.moveDurations.get(reason) ?? new Histogram(moveBounds);
    this.moveDurations.set(reason, durations);
    durations.observe(ms / 1000, auditId, this.clock.now());
    this.#log.add(reason, from, to, ms);
  }

  /** Counts and journals the end of a watch that the proxy has ended. `from`: the watch's last backend. */
  ended({ resource, progress }: WatchSession, reason: EndReason, from: string): void {
    this.#log.end(reason, from, { resource, version: progress.resumeVersion ?? "" });
    this.ends.set(reason, (this.ends.get(reason) ?? 0) + 1);
  }

  /** Number of watches that have lost their stream and wait for their turn or for a backend. */
  get waiting(): number {
    return this.#urgent.size + this.#parked.size;
  }

  /** Number of stalled caches. Each backend has one cache for each resource. */
  get stalls(): number {
    return this.caches.stalls(this.clock.now());
  }

  #forget(watch: WatchSession): void {
    this.#urgent.take(watch);
    this.#parked.delete(watch);
  }

  /**
   * Requests streams for waiting watches (`#pump`) only at the next tick, because a session must not be called again
   * from its own connection-lost callback.
   */
  #pumpSoon(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    this.clock.soon(() => this.#pump());
  }

  /**
   * Requests streams for the waiting watches, as the pace allows. This includes watches that join the queue during the
   * round.
   */
  #pump(): void {
    const pump = ([watch, urgency]: readonly [WatchSession, Urgency]): void => {
      if (this.#suspect.take(watch) !== undefined) return this.#hedgeIfSuspect(watch);
      if (!this.pace.take(urgency)) return;
      const hasWaited = this.#urgent.take(watch);
      if (hasWaited === undefined) this.#migratingNow.delete(watch);
      this.#contain(watch, () => {
        if (hasWaited === undefined) this.#migrateNow(watch);
        else this.#attempt(watch, hasWaited);
      });
    };
    inSlices(this.clock, this.#urgentFirst(), pump, () => {
      if (this.#urgent.size + this.#suspect.size + this.#migratingNow.size > 0) return this.#pumpLater();
      this.#isPumping = false;
    });
  }

  /** The watches that may move now. The watches of a stalled cache come last, because they still get events. */
  *#urgentFirst(): Iterable<readonly [WatchSession, Urgency]> {
    const isOpen = (urgency: Urgency): boolean => this.pace.isOpen(urgency);
    yield* this.#urgent.movable(isOpen);
    yield* this.#suspect.movable(isOpen);
    for (const watch of this.#migratingNow) {
      if (!this.pace.isOpen(2)) return;
      yield [watch, 2];
    }
  }

  /** Does nothing if the stream answers again, or is lost. A lost stream's watch is in the queue of lost watches. */
  #hedgeIfSuspect(watch: WatchSession): void {
    const { attempt } = watch;
    if (attempt?.isSuspect === true) this.#contain(watch, () => this.hedge(watch, attempt));
  }

  /** Catches an exception of one watch, so that the watches after it are still handled. */
  #contain(watch: WatchSession, run: () => void): void {
    try {
      run();
    } catch (error) {
      watch.attemptFaulted(error);
    }
  }

  #pumpLater(): void {
    this.clock.after(watchLimits.movePauseMs, () => this.#pump());
  }

  #migrateNow(watch: WatchSession): void {
    const { attempt, mayHedge } = watch;
    if (attempt === undefined || watch.stalledMs < 0) return;
    if (watch.mayPromote) return watch.promote("stale");
    const backend = mayHedge ? this.targets.better(watch, attempt.backend) : undefined;
    if (backend !== undefined) this.#send(watch.ask(backend, "stale"), undefined);
  }

  /**
   * A backend that was asked without success is asked again only after a pause. The connections of a killed backend are
   * lost one by one, so without the pause all three attempts could fail before the backend counts as dead.
   */
  #attempt(watch: WatchSession, hasWaited: boolean): void {
    const untried = this.#untriedFor(watch);
    // After the pause, backends that were asked already are candidates again.
    const backend = untried ?? (hasWaited ? this.targets.choose(watch, none) : undefined);
    const isNew = backend !== undefined && !watch.tried.includes(backend);
    if (backend !== undefined && (isNew || hasWaited)) this.#send(watch.ask(backend, "lost"), undefined);
    else if (!watch.isTooLate(this.targets.isForgotten(watch), this.targets.isStranded(watch)))
      this.#park(watch);
  }

  /** Returns a backend for a lost watch, if possible one that still accepts watches (`MovePace.silent`). */
  #untriedFor(watch: WatchSession): string | undefined {
    const { silent } = this.pace;
    if (silent.length > 0) {
      const except = [...watch.tried, ...silent];
      const backend = this.targets.choose(watch, except);
      if (backend !== undefined && !except.includes(backend)) return backend;
    }
    return this.targets.choose(watch, watch.tried);
  }

  #park(watch: WatchSession): void {
    this.#parked.add(watch);
    this.#tryAgainLater();
  }

  #tryAgainLater(): void {
    if (this.#isTryingAgain || this.#parked.size === 0) return;
    this.#isTryingAgain = true;
    this.clock.after(watchLimits.parkedMs, () => this.#tryAgain());
  }

  /**
   * Queues the parked watches, in slices. A queued watch may be parked again between two slices. For such watches, a
   * new timer is set at the end.
   */
  #tryAgain(): void {
    const queue = (watch: WatchSession): void => {
      if (!this.#parked.delete(watch)) return;
      this.#urgent.add(watch, true);
      this.#pumpSoon();
    };
    inSlices(this.clock, Array.from(this.#parked), queue, () => {
      this.#isTryingAgain = false;
      this.#tryAgainLater();
    });
  }

  #leaveSoon(): void {
    if (this.#isLeaving || this.#leaving.size === 0) return;
    this.#isLeaving = true;
    // The pause is 0.5 to 1.5 times `leavePauseMs`. The golden ratio spreads the pauses, so that moves do not coincide
    // with other periodic work again and again.
    this.#steps += 1;
    const pauseMs = watchLimits.leavePauseMs * (0.5 + ((this.#steps * 0.618_034) % 1));
    this.clock.after(pauseMs, () => {
      this.#isLeaving = false;
      this.#leaveNext();
      this.#leaveSoon();
    });
  }

  #leaveNext(): void {
    const [next] = this.#leaving;
    if (next === undefined) return;
    const [watch, reason] = next;
    this.#leaving.delete(watch);
    const { attempt } = watch;
    // Nothing happens if the watch has lost its stream meanwhile, or if it cannot move now.
    if (attempt === undefined || !(watch.mayHedge || watch.isSentinel)) return;
    this.#contain(watch, () => {
      if (!this.#reasonHolds(watch, attempt, reason)) return;
      if (this.#isPostedWell(watch, reason)) watch.promote(reason);
      // Leaves the backend later, because the watch will soon have a newer version, from which more backends can
      // continue it.
      else if (reason === "draining" && watch.state === "refreshing") this.leaveLater(watch);
      else if (watch.mayHedge) this.#leave(watch, attempt.backend, reason);
    });
  }

  #reasonHolds(watch: WatchSession, attempt: Attempt, reason: LeaveReason): boolean {
    const { rebound } = watch.clientRequest.client;
    const isStalled = this.targets.stalled(watch).includes(rebound ?? "");
    if (reason === "rebalance") {
      const target = this.targets.fitFor(watch).find(({ name }) => name === rebound);
      return rebound !== attempt.backend && !isStalled && target?.state === "ready";
    }
    if (reason === "operator") return true;
    return reason === "draining" ? this.targets.isLeaving(attempt) : watch.isHung;
  }

  #leave(watch: WatchSession, from: string, reason: LeaveReason): void {
    const { rebound } = watch.clientRequest.client;
    if (this.targets.refusing(watch).includes(rebound ?? "")) return this.#parts.refresher.refused(watch);
    if (reason === "rebalance" && rebound !== undefined)
      return this.#send(watch.ask(rebound, reason), undefined);
    const mayStay = reason === "draining" && this.targets.stateOf(from) === "ready";
    const backend = mayStay ? this.targets.choose(watch, []) : this.targets.better(watch, from);
    if (backend !== undefined) this.#send(watch.ask(backend, reason), undefined);
    else if (reason === "draining") this.#stayForNow(watch);
  }

  /**
   * True if a sentinel's second stream (D13) is on a backend to which the watch should move. The second stream can then
   * become the first.
   */
  #isPostedWell(
    { second, isSentinel, mayPromote, clientRequest }: WatchSession,
    reason: LeaveReason,
  ): boolean {
    if (!isSentinel || second === undefined || !mayPromote) return false;
    const { backend } = second.attempt;
    if (reason === "rebalance") return backend === clientRequest.client.rebound;
    return this.targets.stateOf(backend) === "ready" && !this.targets.isLeaving(second.attempt);
  }

  #stayForNow(watch: WatchSession): void {
    if (this.targets.refusing(watch).length > 0) this.#parts.refresher.refused(watch);
    this.leaveLater(watch);
  }

  #send(attempt: Attempt | undefined, connection: Connection | undefined): void {
    if (attempt === undefined) return;
    if (connection === undefined) attempt.dial(this.#parts.pools);
    else attempt.ready(connection);
  }
}

/**
 * The watches of one resource. `whole`: watches of all its objects. `part`: watches limited to a namespace, a name or a
 * selector.
 */
type Group = { readonly whole: Set<WatchSession>; readonly part: Set<WatchSession> };

const noWatches: ReadonlySet<never> = new Set();

/**
 * The open watches by resource, so that a check of one resource does not have to visit 50,000 watches. Watches of
 * aggregated APIs are not included, because their versions cannot be compared.
 */
class WatchesByResource {
  readonly #groups = new Map<string, Group>();

  add(watch: WatchSession, { resource, isWhole, origin }: WatchContext): void {
    if (origin.isForeign) return;
    const group = this.#groups.get(resource) ?? { whole: new Set(), part: new Set() };
    this.#groups.set(resource, group);
    (isWhole ? group.whole : group.part).add(watch);
  }

  remove(watch: WatchSession, { resource, isWhole }: WatchContext): void {
    const group = this.#groups.get(resource);
    if (group === undefined) return;
    (isWhole ? group.whole : group.part).delete(watch);
    if (group.whole.size + group.part.size === 0) this.#groups.delete(resource);
  }

  get resources(): Iterable<string> {
    return this.#groups.keys();
  }

  wholeOf(resource: string): ReadonlySet<WatchSession> {
    return this.#groups.get(resource)?.whole ?? noWatches;
  }

  partOf(resource: string): ReadonlySet<WatchSession> {
    return this.#groups.get(resource)?.part ?? noWatches;
  }

  *of(resource: string): Iterable<WatchSession> {
    yield* this.wholeOf(resource);
    yield* this.partOf(resource);
  }
}
