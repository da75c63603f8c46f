/**
 * When watches go, and how fast (D6): one that lost its backend at once, as fast as another takes it; one whose backend is
 * only going at leisure. Where to is destinations.ts's business. Ends of watches that could not be moved are counted here
 * by their reason.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { inSlices, stop } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import type { Backends } from "../../health/backends.ts";
import type { Connection } from "../../proxy/upstream/connection.ts";
import { dial } from "../../proxy/upstream/dial.ts";
import type { Leg } from "../../proxy/upstream/leg.ts";
import type { PoolSet } from "../../proxy/upstream/pool-set.ts";
import type { CacheTracker } from "../progress/cache-progress.ts";
import { Complaints } from "../session/complaints.ts";
import type { WatchLeg } from "../session/watch-leg.ts";
import type { WatchOrder } from "../session/watch-order.ts";
import type { AskReason, EndReason, LeaveReason } from "../session/watch-reasons.ts";
import type { Watching } from "../session/watching.ts";
import { Destinations } from "./destinations.ts";
import { Pace } from "./pace.ts";
import { Watchings } from "./watchings.ts";
import { Waves } from "./waves.ts";

export type MovesParts = {
  readonly clock: Clock;
  /** Stands still while our own loop does. */
  readonly patience: Clock;
  readonly backends: Backends;
  readonly pools: PoolSet;
  readonly journal: Journal;
  readonly caches: CacheTracker;
  /** Renewals, told of a watch whose version the backend that it should go to does not know. */
  readonly renewals: { refused(watching: Watching): void };
};

const nobody: readonly string[] = [];

export class Moves {
  readonly clock: Clock;
  readonly patience: Clock;
  /** How far each backend's caches have come: watches show it, and none is moved to a stalled one. */
  readonly caches: CacheTracker;
  /** What single watches show to be wrong. */
  readonly complaints: Complaints;
  readonly where: Destinations;
  /** The watches that live, by resource. */
  readonly watchings = new Watchings<Watching>();
  readonly #parts: MovesParts;
  readonly #pace: Pace;
  readonly #waves: Waves;
  /** Those without a leg, in the order in which they lost it, and whether they have waited for somebody new; */
  readonly #urgent = new Map<Watching, boolean>();
  /** and those of them who do. */
  readonly #stranded = new Set<Watching>();
  /** Those whose backend stands still, and serves them all the same. */
  readonly #fleeing = new Set<Watching>();
  /** Those who have time, and why they go. */
  readonly #leaving = new Map<Watching, LeaveReason>();
  #isPumping = false;
  #isLeaving = false;
  #steps = 0;
  /** Counts since the start, by reason. */
  readonly moves = new Map<AskReason, number>();
  readonly ends = new Map<EndReason, number>();
  shadows = 0;
  renewals = 0;
  sentinels = 0;

  constructor(parts: MovesParts) {
    this.#parts = parts;
    this.clock = parts.clock;
    this.patience = parts.patience;
    this.caches = parts.caches;
    this.where = new Destinations(parts);
    this.complaints = new Complaints(parts.clock, parts.journal);
    this.#pace = new Pace(parts.clock);
    this.#waves = new Waves(parts.clock, parts.journal);
  }

  /** From now on the leg shows how far its backend has come: not of another server's resource. */
  follow(side: WatchLeg, { origin, resource, isWhole, scope }: WatchOrder): void {
    const { backend } = side.leg;
    if (origin.isForeign) return;
    const shown = scope === "" ? undefined : this.caches.ofScope(backend, scope);
    side.join(this.caches.of(backend, resource), isWhole, shown);
  }

  /**
   * The watch has no leg: it is asked for elsewhere as soon as its turn comes, or after `inMs` if nobody answers who was
   * not asked in vain. Returns the undoing.
   */
  resume(watching: Watching, inMs: number): () => void {
    if (inMs <= 0 || this.where.elsewhereFor(watching, watching.tried) !== undefined)
      return this.#enqueue(watching, false);
    let undo = this.clock.after(inMs, () => {
      undo = this.#enqueue(watching, true);
    });
    return () => undo();
  }

  #enqueue(watching: Watching, hasWaited: boolean): () => void {
    this.#urgent.set(watching, hasWaited);
    this.#pumpSoon();
    return () => this.#forget(watching);
  }

  /** Its leg is on an upstream connection, or a backend, that does not answer. Told again at every tick. */
  shadow(watching: Watching, leg: Leg): void {
    // Most of a mass wait for their turn, and are told again: to find out where they would go costs more than that.
    if (!this.#pace.isOpen) return;
    if (!watching.mayHaveTwo) return;
    const isDoubtful = this.where.isDoubtful(leg.backend);
    const connection = isDoubtful
      ? undefined
      : this.#parts.pools.promptConnection(leg.backend, watching.poolKey());
    // The hole may be under this upstream connection only: where nobody else answers, a new one to the same backend is dialled.
    const last = isDoubtful ? undefined : leg.backend;
    const backend =
      connection === undefined ? (this.where.elsewhereFor(watching, [leg.backend]) ?? last) : leg.backend;
    if (backend === undefined || !this.#pace.take()) return;
    this.shadows += 1;
    this.#send(watching.ask(backend, "suspect"), connection);
  }

  /** Its leg's upstream connection answers, but its backend's cache is late, as those of `others` are. Told again at every look. */
  shadowElsewhere(watching: Watching, others: readonly string[]): void {
    const { leg } = watching;
    if (watching.heeds(others)) return;
    if (!this.#pace.isOpen || leg === undefined || !watching.mayHaveTwo) return;
    const backend = this.where.elsewhereFor(watching, [leg.backend, ...others]);
    if (backend === undefined || !this.#pace.take()) return;
    this.shadows += 1;
    this.#send(watching.ask(backend, "suspect"), undefined);
  }

  /** Its upstream connection takes nobody any more, its backend is going or full, or it has shown nothing for long: there is time. */
  leave(watching: Watching, reason: LeaveReason): void {
    // Whoever has a better reason already goes for that one.
    if (reason === "draining" || !this.#leaving.has(watching)) this.#leaving.set(watching, reason);
    this.#leaveSoon();
  }

  /** Nobody takes it just now. */
  leaveLater(watching: Watching): void {
    this.clock.after(limits.declinedMs, () => this.leave(watching, "draining"));
  }

  /** Its backend stands still: it is asked for elsewhere as well, as fast as that takes it. */
  flee(watching: Watching): void {
    this.#fleeing.add(watching);
    this.#pumpSoon();
  }

  /** It is asked for once more where it is, for a bookmark; renewals.ts says when. */
  renew(watching: Watching): void {
    const { leg, legs } = watching;
    if (leg === undefined || legs.other !== undefined || !watching.mayHaveTwo) return;
    if (this.where.isDoubtful(leg.backend) || !legs.mayBeRenewed) return;
    this.renewals += 1;
    this.#send(watching.ask(leg.backend, "renewed"), undefined);
  }

  /** The watch is the sentinel of its resource: `backend` is asked for it as well, for as long as it answers (sentinels.ts). */
  post(watching: Watching, backend: string): void {
    this.sentinels += 1;
    this.#send(watching.ask(backend, "sentinel"), undefined);
  }

  /** True if a watch that is in no hurry may be asked for elsewhere now. */
  get hasRoom(): boolean {
    return this.#pace.isOpen;
  }

  /** A backend said that it is too much. */
  slowDown(): void {
    this.#pace.slowDown();
  }

  moved(reason: AskReason, from: string, to: string, ms: number): void {
    this.moves.set(reason, (this.moves.get(reason) ?? 0) + 1);
    this.#waves.add(reason, from, to, ms);
  }

  /** `from` served it last. */
  ended({ legs: { resource }, progress }: Watching, reason: EndReason, from: string): void {
    this.#waves.end(reason, from, { resource, version: progress.resumeVersion ?? "" });
    this.ends.set(reason, (this.ends.get(reason) ?? 0) + 1);
  }

  /** Watches that wait for their turn. */
  get waiting(): number {
    return this.#urgent.size + this.#stranded.size;
  }

  /** How many caches stand still, a backend and a resource each. */
  get stalls(): number {
    return this.caches.stalls(this.clock.now());
  }

  #forget(watching: Watching): void {
    this.#urgent.delete(watching);
    this.#stranded.delete(watching);
  }

  // --- at once ---

  /** In a turn of its own: who is told of a loss is never asked anything meanwhile. */
  #pumpSoon(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    this.clock.soon(() => this.#pump());
  }

  /** One round at a time: who is refused at once, and so comes back meanwhile, is taken in the same. */
  #pump(): void {
    let hasRoom = true;
    const pump = (watching: Watching): unknown => {
      hasRoom = this.#pace.take();
      if (!hasRoom) return stop;
      const hasWaited = this.#urgent.get(watching);
      if (hasWaited === undefined) this.#fleeing.delete(watching);
      else this.#urgent.delete(watching);
      this.#contain(watching, () => {
        if (hasWaited === undefined) this.#flee(watching);
        else this.#attempt(watching, hasWaited);
      });
      return undefined;
    };
    inSlices(this.clock, this.#hurried(), pump, () => {
      if (!hasRoom) return this.#pumpLater();
      this.#isPumping = false;
      if (this.#urgent.size > 0) this.#pumpSoon();
    });
  }

  /** Those without any leg first. */
  *#hurried(): Iterable<Watching> {
    yield* this.#urgent.keys();
    yield* this.#fleeing;
  }

  /** A fault of ours costs this watch, not those behind it. */
  #contain(watching: Watching, run: () => void): void {
    try {
      run();
    } catch (error) {
      watching.legFaulted(error);
    }
  }

  #pumpLater(): void {
    this.clock.after(limits.movePauseMs, () => this.#pump());
  }

  #flee(watching: Watching): void {
    const { leg, mayHaveTwo, legs } = watching;
    if (leg === undefined || legs.stalledMs < 0) return;
    if (legs.hasCompany) return watching.promote("stale");
    const backend = mayHaveTwo ? this.where.better(watching, leg.backend) : undefined;
    if (backend !== undefined) this.#send(watching.ask(backend, "stale"), undefined);
  }

  /**
   * Whoever was asked in vain is asked again after a pause only: the upstream connections of a backend that was killed fall one by one,
   * and three attempts would be over before it is known.
   */
  #attempt(watching: Watching, hasWaited: boolean): void {
    const untried = this.where.choose(watching, watching.tried);
    // Whoever was asked in vain and is suspect is asked again all the same: plain requests are sent there, too.
    const backend = untried ?? (hasWaited ? this.where.choose(watching, nobody) : undefined);
    const isNew = backend !== undefined && !watching.tried.includes(backend);
    if (backend !== undefined && (isNew || hasWaited)) this.#send(watching.ask(backend, "lost"), undefined);
    else if (!watching.isTooLate(this.where.isForgotten(watching))) this.#strand(watching);
  }

  /** No backend can be asked: all who wait for one are tried again together. */
  #strand(watching: Watching): void {
    if (this.#stranded.size === 0) this.clock.after(limits.strandedMs, () => this.#tryAgain());
    this.#stranded.add(watching);
  }

  #tryAgain(): void {
    inSlices(this.clock, Array.from(this.#stranded), (watching) => {
      if (!this.#stranded.delete(watching)) return;
      this.#urgent.set(watching, true);
      this.#pumpSoon();
    });
  }

  // --- at leisure ---

  #leaveSoon(): void {
    if (this.#isLeaving || this.#leaving.size === 0) return;
    this.#isLeaving = true;
    // Never in step with anything: between half and one and a half times the pause, spread by the golden ratio.
    this.#steps += 1;
    const pauseMs = limits.leavePauseMs * (0.5 + ((this.#steps * 0.618_034) % 1));
    this.clock.after(pauseMs, () => {
      this.#isLeaving = false;
      this.#leaveNext();
      this.#leaveSoon();
    });
  }

  #leaveNext(): void {
    const [next] = this.#leaving;
    if (next === undefined) return;
    const [watching, reason] = next;
    this.#leaving.delete(watching);
    const { leg } = watching;
    // One that cannot be moved, or was moved for another reason meanwhile, ends when its backend ends it.
    if (leg === undefined || !(watching.mayHaveTwo || watching.legs.isSentinel)) return;
    this.#contain(watching, () => {
      if (!this.#mayLeave(watching, leg, reason)) return;
      if (this.#isPostedWell(watching, reason)) watching.promote(reason);
      else if (watching.mayHaveTwo) this.#leave(watching, leg.backend, reason);
    });
  }

  /** Is it still so? */
  #mayLeave(watching: Watching, leg: Leg, reason: LeaveReason): boolean {
    const { rebound } = watching.client;
    const isStalled = this.where.stalled(watching).includes(rebound ?? "");
    if (reason === "rebalance")
      return rebound !== leg.backend && !isStalled && this.where.stateOf(rebound ?? "") === "ready";
    if (reason === "operator") return true;
    return reason === "draining" ? this.where.isLeaving(leg) : watching.legs.isHung;
  }

  #leave(watching: Watching, from: string, reason: LeaveReason): void {
    const { rebound } = watching.client;
    if (this.where.refusing(watching).includes(rebound ?? "")) return this.#parts.renewals.refused(watching);
    if (reason === "rebalance" && rebound !== undefined)
      return this.#send(watching.ask(rebound, reason), undefined);
    const mayStay = reason === "draining" && this.where.stateOf(from) === "ready";
    const backend = mayStay ? this.where.choose(watching, []) : this.where.better(watching, from);
    if (backend !== undefined) this.#send(watching.ask(backend, reason), undefined);
    else if (reason === "draining") this.#stayForNow(watching);
  }

  /** Does a sentinel's second leg stand where the watch is to go, so that it is the watch at once? */
  #isPostedWell({ legs, client }: Watching, reason: LeaveReason): boolean {
    const { other, isSentinel, isOtherSettled } = legs;
    if (!isSentinel || !isOtherSettled || other === undefined || !legs.hasCompany) return false;
    const { backend } = other.leg;
    if (reason === "rebalance") return backend === client.rebound;
    return this.where.stateOf(backend) === "ready" && !this.where.isLeaving(other.leg);
  }

  #stayForNow(watching: Watching): void {
    if (this.where.refusing(watching).length > 0) this.#parts.renewals.refused(watching);
    this.leaveLater(watching);
  }

  #send(leg: Leg, connection: Connection | undefined): void {
    if (connection === undefined) dial(this.#parts.pools, leg);
    else leg.ready(connection);
  }
}
