/**
 * A watch that outlives its backend: the client keeps the same stream. `watch-state.ts` has the states of a watch and
 * their transitions. Progress decides which events are forwarded. `end-verdict.ts` decides what follows when a stream is over. Migrations decides when and where
 * another stream is opened (watch.md §5).
 */
import type { Clock } from "../../base/clock.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import type { Field } from "../../h2/core/field.ts";
import { lost } from "../../h2/core/protocol-error.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import type { Origin } from "../../kube/api-origin.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import {
  type Acceptance,
  acceptanceOf,
  isInitialising,
  type ResponseHead,
} from "../../kube/resume-request.ts";
import type { RequestContext } from "../../upstream/context/request-context.ts";
import { isCredentialOver } from "../../upstream/identity/credential-expiry.ts";
import { Attempt, type AttemptOwner } from "../../upstream/pool/attempt.ts";
import type { PoolKey } from "../../upstream/pool/pool-key.ts";
import type { CacheProgress } from "../cache/cache-progress.ts";
import type { WatchEvent } from "../codec/event.ts";
import { decodersOf } from "../codec/framing.ts";
import { watchLimits } from "../limits.ts";
import type { AnomalyLog, AnomalySource } from "./anomaly-log.ts";
import { ClientWriter } from "./client-writer.ts";
import {
  type AskReason,
  type Ending,
  type EndReason,
  endOf,
  endReason,
  isDeadline,
  type LeaveReason,
  type Move,
  moveReason,
  type Over,
  verdictOn,
} from "./end-verdict.ts";
import { acceptanceOfError, expired } from "./expired-version.ts";
import { ResumeRetry } from "./resume-retry.ts";
import { type Fate, Progress, Reading } from "./session-progress.ts";
import {
  answerOf,
  listRequestOf,
  mayHaveBookmarks,
  requestAt,
  type Times,
  timesOf,
  type WatchContext,
} from "./watch-context.ts";
import type { WatchLife, WatchLives } from "./watch-lives.ts";
import {
  hasRoom,
  inputOf,
  isMerging,
  next,
  violated,
  type WatchInput,
  type WatchState,
} from "./watch-state.ts";
import { type EventTaker, WatchStream } from "./watch-stream.ts";

/** What a session reports about its requests to backends. `MovePace` implements it. */
type WatchPace = {
  asked(backend: string): void;
  settled(backend: string): void;
  accepted(backend: string, ms: number): void;
  slowDown(): void;
};

/** What a session asks about backends. `TargetPicker` implements it. */
type WatchTargets = {
  isLeaving(attempt: Attempt): boolean;
  isDoubtful(backend: string): boolean;
  isServedNowhere(notServing: readonly string[]): boolean;
  isForgotten(watch: WatchSession): boolean;
  mayEnd(watch: WatchSession): boolean;
  isInVain(watch: WatchSession, attempt: Attempt): boolean;
  isAlone(watch: WatchSession, attempt: Attempt): boolean;
};

type WatchMigrations = {
  readonly clock: Clock;
  readonly stallAwareClock: Clock;
  readonly anomalies: AnomalyLog;
  readonly lives: WatchLives;
  readonly targets: WatchTargets;
  readonly watches: {
    add(watch: WatchSession, asked: WatchContext): void;
    remove(watch: WatchSession, asked: WatchContext): void;
  };
  follow(stream: WatchStream, asked: WatchContext): void;
  boundInitialEvents(watch: WatchSession, stream: WatchStream): void;
  /**
   * Queues the watch for another backend, at the latest after `inMs`. Returns a function that removes the watch from
   * the queue.
   */
  resume(watch: WatchSession, inMs: number): () => void;
  hedge(watch: WatchSession, attempt: Attempt): void;
  leave(watch: WatchSession, reason: LeaveReason): void;
  leaveLater(watch: WatchSession): void;
  migrateNow(watch: WatchSession): void;
  /** Limits the rate of moves. It counts the requests for watches that are not answered yet. */
  readonly pace: WatchPace;
  ended(watch: WatchSession, reason: EndReason, from: string): void;
};

/** The part of the client's exchange (one request and its response) that a watch uses. */
export type WatchHost = {
  readonly context: RequestContext;
  readonly down: StreamWriter;
  poolKey(): PoolKey;
  /**
   * Called with the status of each response to a request with the client's credential. A 401 means that the credential
   * is no longer valid.
   */
  learnt(status: number): void;
  /** Called when the watch continues on another stream, on the backend `move.to`. */
  goesOn(move: Move): void;
  /**
   * Ends the client's stream between two events. `isWhole`: true if the backend or the client's deadline ended the
   * watch.
   */
  endsHere(isWhole: boolean): void;
  /** Resets the client's stream, because its bytes could not be decoded or the client has to list again. */
  breaksOff(): void;
  /** Journals an internal fault of the watch or of one of its attempts. */
  attemptFaulted(error: unknown): void;
};

type WatchParts = {
  readonly host: WatchHost;
  readonly migrations: WatchMigrations;
  readonly buffered: Buffered;
  readonly asked: WatchContext;
  readonly contentType: string;
};

/**
 * A session reads one or two upstream streams as one stream of events. The first stream serves the client. The second
 * stream is one of four: a hedge, the stream that will replace the first one, a stream for comparison (D13,
 * sentinels.ts), or a stream for a single bookmark. After the loss of the first stream, the second stream is the
 * attempt to continue on the next backend.
 */
export class WatchSession implements AttemptOwner, EventTaker {
  readonly #parts: WatchParts;
  readonly progress: Progress;
  readonly life: WatchLife;
  readonly writer: ClientWriter;
  /** Undefined until `#search` is used, because most watches never look for another backend. */
  #retry: ResumeRetry | undefined;
  first: WatchStream | undefined;
  /**
   * The second stream, whatever its purpose. If there is no first stream, the attempt to continue on the next backend.
   */
  second: WatchStream | undefined;
  /** True if the second stream was requested for comparison (D13), even while it serves as a hedge. */
  isPosted = false;
  /** Number of times that the watch has continued on another backend. */
  moves = 0;
  /** Written by `#become` only. watch-state.ts has the invariants. */
  #state: WatchState = "streaming";

  constructor(parts: WatchParts, attempt: Attempt) {
    const { host, migrations, buffered, asked } = parts;
    this.#parts = parts;
    this.life = migrations.lives.begin(migrations.clock);
    this.progress = new Progress(asked);
    this.writer = new ClientWriter(host.down, migrations.clock);
    const first = new WatchStream(attempt, this, buffered);
    first.open(new Reading(asked.version, false, attempt.backend));
    this.#accept(first);
    this.first = first;
    attempt.handOver(this);
    migrations.watches.add(this, asked);
    // The backend may have started to drain before it answered the watch.
    if (migrations.targets.isLeaving(attempt)) migrations.leave(this, "draining");
  }

  // --- the state of the session ---

  get state(): WatchState {
    return this.#state;
  }

  /** Returns the text for logs, errors and the admin API: `hedged at cp-1 and cp-2 (suspect), live at 4711`. */
  toString(): string {
    const { first, second } = this;
    const backends = [first, second].flatMap((stream) =>
      stream === undefined ? [] : [stream.attempt.backend],
    );
    const { reason, from } = this.#search;
    const at = backends.length > 0 ? ` at ${backends.join(" and ")}` : "";
    const isAsked = this.#state === "hedged" || this.#state === "migrating";
    const lostAt = first === undefined ? ` (${reason} at ${from})` : "";
    const why = isAsked ? ` (${reason})` : lostAt;
    return `${this.#state}${at}${why}, ${this.progress.phase} at ${this.progress.cursor || "no version"}`;
  }

  /** Returns the first invariant that does not hold; undefined: all hold. The simulation calls it after every step. */
  check(): string | undefined {
    const { first, second, isPosted, heldBytes } = this;
    const broken = violated({
      state: this.#state,
      first: first?.answer ?? "none",
      second: second?.answer ?? "none",
      isPosted,
      isWaiting: this.#retry?.isWaiting === true,
      heldBytes,
    });
    return broken && `${String(this)}: ${broken}`;
  }

  /**
   * Applies an input to the state (watch-state.ts). An impossible input is an internal fault: it is journaled, this
   * watch ends between two events, and the result is false.
   */
  #become(input: WatchInput): boolean {
    const state = next(this.#state, input);
    if (state !== undefined) {
      this.#state = state;
      const stream = input === "promote" ? this.second : this.first;
      const backend = stream?.attempt.backend ?? this.#retry?.from ?? "";
      this.life.changed(input, state, backend, this.progress.cursor);
      return true;
    }
    const fault = new Error(`A watch took "${input}", which is impossible: ${String(this)}`);
    if (this.#state !== "ended") this.#state = "ending";
    this.#retry?.stop();
    this.#cancelSecond();
    this.#parts.host.attemptFaulted(fault);
    return false;
  }

  get migrations(): WatchMigrations {
    return this.#parts.migrations;
  }

  /** The search for another backend, created at its first use. */
  get #search(): ResumeRetry {
    this.#retry ??= new ResumeRetry(this.migrations.clock, this.migrations.stallAwareClock);
    return this.#retry;
  }

  get #isOver(): boolean {
    return this.#state === "ending" || this.#state === "ended";
  }

  dropSecond(): void {
    if (this.second !== undefined && this.#become("drop")) this.#cancelSecond();
  }

  // --- methods for the watch's exchange ---

  get attempt(): Attempt | undefined {
    return this.first?.attempt;
  }

  creditFor(count: number): number {
    return this.writer.creditFor(count);
  }

  /** Ends the watch, because the proxy itself is draining. The client then watches again, through another proxy. */
  finish(): void {
    this.#end("drained");
  }

  /** Called every few seconds. Finds what no event shows: a missed deadline, missing bookmarks, a stalled cache. */
  look(): void {
    const { migrations } = this;
    if ((this.#times.leftMs ?? 0) < -watchLimits.overdueMs) {
      migrations.ended(this, "deadline_missed", this.attempt?.backend ?? this.#search.from);
      this.#endAtDeadline();
    } else if (this.stalledMs >= 0) this.#leaveStalled();
    else if (this.#isRewound) this.#end("version_rollback");
    else if (this.isHung && this.mayHedge) {
      // The watch may merely be quiet. A second stream on another backend does no harm in this case. If the second
      // stream delivers more events than the first, the first stream has hung.
      const { first } = this;
      const silentMs = this.#now - this.progress.lastEventAt;
      if (first !== undefined) migrations.anomalies.hung(this.#sourceOf(first), silentMs);
      migrations.leave(this, "hung");
    }
  }

  /**
   * Moves the watch off a stalled cache. If no move succeeds, ends the watch, so that the client sends a new watch,
   * which goes to another backend.
   */
  #leaveStalled(): void {
    const isLate = this.stalledMs > watchLimits.caughtUpMs;
    if (this.mayPromote) this.promote("stale");
    else if (this.mayHedge) this.migrations.migrateNow(this);
    else if (isLate && this.progress.isReadable && this.migrations.targets.mayEnd(this)) this.#end("stale");
  }

  /** Called when the client's stream is over. */
  cancel(): void {
    this.migrations.watches.remove(this, this.asked);
    if (!this.#become("cancel")) return;
    this.#retry?.stop();
    this.#cancelFirst();
    this.#cancelSecond();
  }

  /**
   * Leaves a backend whose etcd has a history that differs from the one that clients have seen. `version`: the newest
   * version of the backend's history. If the client has received events of the backend's history, resets the client's
   * stream, so that client-go lists again. Otherwise moves the watch.
   */
  leaveHistory(backend: string, version: string): void {
    const { first, second } = this;
    if (second?.attempt.backend === backend) this.#giveUp(second);
    if (first?.attempt.backend !== backend) return;
    if (first.isOfHistory(version)) this.#parts.host.breaksOff();
    else this.#giveUp(first);
  }

  /** Makes the client list again, because the events that it has received are in no backend's history. */
  forgetHistory(): void {
    this.#parts.host.breaksOff();
  }

  // --- methods for Migrations ---

  get clientRequest(): RequestContext {
    return this.#parts.host.context;
  }

  get tried(): readonly string[] {
    return this.#search.tried;
  }

  /**
   * True if a second stream may be opened. False for a slow client, because backends end the watches of slow clients
   * (watch.md §5.5).
   */
  get mayHedge(): boolean {
    const mayJoin = this.progress.resumeVersion !== undefined && !this.writer.isBlocked;
    return mayJoin && hasRoom(this.#state) && this.#retry?.isDeclined !== true && !this.isExpired;
  }

  /** True if the client's credential has expired. Only the client can present a new one (watch.md §8). */
  get isExpired(): boolean {
    return isCredentialOver(this.#parts.host.context, this.migrations.clock.wall());
  }

  listed(least?: string): RequestContext | undefined {
    return listRequestOf(this.clientRequest, this.asked, least);
  }

  /** Called if the proxy learns that a CRD defines the API. From now on, the proxy compares event versions. */
  isOwnAfterAll(origin: Origin): void {
    const { asked, migrations } = this.#parts;
    if (asked.origin !== origin || this.#isOver) return;
    migrations.watches.add(this, asked);
    if (this.first !== undefined) migrations.follow(this.first, asked);
  }

  /**
   * Called when the proxy has sent a request of its own with this client's identity. Passes on the status of the
   * response, which shows whether backends accept the identity.
   */
  learnt(status: number): void {
    this.#parts.host.learnt(status);
  }

  /**
   * Requests another stream. Returns the attempt, which the caller must dial; undefined if the watch's state allows no
   * other stream.
   */
  ask(backend: string, reason: AskReason): Attempt | undefined {
    if (this.#state === "refreshing" || this.#state === "sentinel") this.dropSecond();
    if (!this.#become(this.#state === "parked" ? "ask" : inputOf(reason))) return undefined;
    const attempt = new Attempt(backend, this);
    const second = new WatchStream(attempt, this, this.#parts.buffered);
    const { first } = this;
    this.second = second;
    this.isPosted = reason === "sentinel";
    this.migrations.pace.asked(backend);
    if (first === undefined) this.#await(second);
    else this.#search.begin(reason, first.attempt.backend);
    return attempt;
  }

  /**
   * Called if no backend can be asked. If it is too late to try again, ends the watch and returns true. Otherwise
   * returns false. `isForgotten`: true if no backend has the watch's version. `isStranded`: true if all backends that
   * would send the same events are dead.
   */
  isTooLate(isForgotten: boolean, isStranded: boolean): boolean {
    if (this.#isPastDeadline) this.#endDue();
    else if (isForgotten || isStranded || this.#search.isOver)
      this.#end(isForgotten ? "expired" : this.#search.endReason);
    else return false;
    return true;
  }

  // --- methods for the detectors, Migrations, and the admin API ---

  get asked(): WatchContext {
    return this.#parts.asked;
  }

  get resource(): string {
    return this.#parts.asked.resource;
  }

  get isRepeating(): boolean {
    return this.#parts.asked.isRepeating;
  }

  get isBlocked(): boolean {
    return this.writer.isBlocked;
  }

  get isSentinel(): boolean {
    return this.#state === "sentinel";
  }

  /** The progress of the watch cache from which the first stream's events come. */
  get cache(): CacheProgress | undefined {
    return this.first?.cache;
  }

  /** Ms since the cache of the first stream was found stalled; -1: it is not stalled. */
  get stalledMs(): number {
    return this.cache?.stalledMs(this.#now) ?? -1;
  }

  /** True if the watch may continue on its second stream at once, because the cache of its first stream is stalled. */
  get mayPromote(): boolean {
    const { second, isSentinel } = this;
    // The acceptance counts only after `settledMs`, because a backend that accepts a watch may send an ERROR at once.
    const isSettled = second?.isAccepted === true && this.#now - second.acceptedAt > watchLimits.settledMs;
    if (!isSettled || (isSentinel && second.cache?.isStalled(this.#now) === true)) return false;
    return this.#search.reason === "stale" || this.#state === "hedged" || isSentinel;
  }

  /**
   * True if two bookmarks in a row are overdue although the client reads. False for a watch that has never got a
   * bookmark (watch.md §6.2).
   */
  get isHung(): boolean {
    const { lastEventAt, lastBookmarkAt } = this.progress;
    return lastBookmarkAt >= 0 && this.#now - lastEventAt >= watchLimits.hungMs && !this.writer.isBlocked;
  }

  get #isRewound(): boolean {
    return this.progress.isReadable && this.first?.isRewound(this.#now) === true;
  }

  /** True if a short stream on the same backend would get a bookmark, and the client's deadline leaves time for it. */
  get mayBeRefreshed(): boolean {
    const isShort = (this.#times.leftMs ?? watchLimits.bookmarkRefreshMs) < watchLimits.bookmarkRefreshMs;
    return !isShort && mayHaveBookmarks(this.#parts.asked);
  }

  /** The streams that show how far the caches of their backends have come: the first, and a sentinel's second (D13). */
  get compared(): readonly WatchStream[] {
    const { first, second } = this;
    return [first, this.isSentinel ? second : undefined].filter((stream) => stream !== undefined);
  }

  get #now(): number {
    return this.migrations.clock.now();
  }

  get #times(): Times {
    return timesOf(this.asked, this.clientRequest.at, this.progress.markerAt, this.#now);
  }

  get #timesOfNext(): Times {
    const isShort = this.#state === "refreshing";
    return isShort ? { ...this.#times, leftMs: watchLimits.bookmarkRefreshMs } : this.#times;
  }

  get #isPastDeadline(): boolean {
    return (this.#times.leftMs ?? 1) <= 0;
  }

  // --- methods for the watch's attempts ---

  /**
   * The request for another stream. It is created only when it is sent, because until then events change the version
   * from which the watch resumes.
   */
  get context(): RequestContext {
    return requestAt(this.clientRequest, this.asked, this.progress.resumeVersion, this.#timesOfNext);
  }

  poolKey(): PoolKey {
    return this.#parts.host.poolKey();
  }

  attemptOpened(attempt: Attempt): void {
    this.#streamOf(attempt)?.open(new Reading(this.progress.resumeVersion ?? "", true, attempt.backend));
  }

  attemptRefused(attempt: Attempt): void {
    this.#over(attempt, "unanswered");
  }

  attemptHeaders(attempt: Attempt, fields: Field[], end: boolean): void {
    const stream = this.#streamOf(attempt);
    if (stream?.isAccepted === true) this.#over(attempt, "ended");
    else if (stream !== undefined && Number(fields[0]?.value) >= 200) this.#judge(stream, fields, end);
  }

  attemptData(attempt: Attempt, bytes: Buffer, start: number, end: number, endStream: boolean): void {
    const stream = this.#streamOf(attempt);
    if (stream === undefined) return;
    const passed = end > start ? stream.pass(bytes, start, end) : "all";
    if (passed === "all") this.#advanced(stream);
    else if (passed === "refused") this.#refused(stream, stream.errorCode);
    else if (passed === "opaque" && stream === this.first) this.#lose();
    else this.#broken(stream);
    if (endStream) this.#over(attempt, "ended");
  }

  attemptGone(attempt: Attempt, code: number): void {
    if (code === lost) this.#lostUnanswered(this.#streamOf(attempt));
    this.#over(attempt, "broken");
  }

  attemptSuspected(attempt: Attempt): void {
    const stream = this.#streamOf(attempt);
    if (stream === undefined || this.#endIfPastDeadline(stream)) return;
    if (stream === this.second && !this.migrations.targets.isInVain(this, attempt)) return;
    if (stream === this.second) {
      this.#lostUnanswered(stream);
      this.#giveUp(stream);
    } else if (this.hedgeWithSentinel([])) return;
    else if (this.#isMerged && this.#search.ms >= watchLimits.hedgedMs) this.promote();
    else this.migrations.hedge(this, attempt);
  }

  attemptCleared(attempt: Attempt): void {
    if (attempt !== this.attempt) return;
    this.#retry?.declined(0);
    if (this.#state !== "hedged") return;
    if (!this.isPosted) return this.dropSecond();
    if (this.#become("compare")) this.#search.begin("sentinel", attempt.backend);
  }

  attemptLeaving(attempt: Attempt): void {
    if (attempt === this.attempt) this.migrations.leave(this, "draining");
  }

  attemptFaulted(error: unknown): void {
    this.#parts.host.attemptFaulted(error);
  }

  // --- after the response to a request for another stream ---

  #judge(stream: WatchStream, fields: readonly Field[], end: boolean): void {
    const { host, contentType } = this.#parts;
    const answer = answerOf(fields);
    host.learnt(answer.status);
    if (answer.status === 429) this.#busy(answer);
    if (answer.status === 404 && this.first === undefined && this.#isGone(stream.attempt.backend))
      return this.#turnDown(stream, { kind: "end" }, "not_found");
    const acceptance = acceptanceOf(answer, contentType);
    if (acceptance.kind !== "go") return this.#turnDown(stream, acceptance, "refused");
    if (end) return this.#turnDown(stream, { kind: "elsewhere", inMs: 0 }, "refused");
    const { attempt } = stream;
    this.migrations.pace.accepted(attempt.backend, attempt.sinceSent(this.#now) - attempt.rttMs);
    this.#accept(stream);
    // A second stream replaces the first only after its first event, because that event may be an ERROR.
    if (this.first === undefined) this.promote();
  }

  /**
   * Handles a 429. If the backend is still initialising its watch cache, the attempt does not count. For any other
   * cause, the pace of all moves is reduced.
   */
  #busy(answer: ResponseHead): void {
    if (!isInitialising(answer)) this.migrations.pace.slowDown();
    else if (this.first === undefined) this.#search.uncount();
  }

  /** Records that the backend answered 404. Returns true if no backend serves the resource any more. */
  #isGone(backend: string): boolean {
    this.#search.unserved(backend);
    return this.migrations.targets.isServedNowhere(this.#search.notServing);
  }

  #accept(stream: WatchStream): void {
    const { contentType, asked, migrations } = this.#parts;
    stream.accept(decodersOf(contentType, "", asked.isRepeating), migrations.clock.now());
    migrations.follow(stream, asked);
  }

  #advanced(stream: WatchStream): void {
    if (this.progress.phase === "listing") this.migrations.boundInitialEvents(this, stream);
    const { second } = this;
    if (second === undefined) return;
    // If the client is slow, the second stream is dropped, because a slow client's watch must not keep two streams.
    if (this.#state === "refreshing") {
      if (this.isBlocked || second.reading.bookmark !== "") this.dropSecond();
    } else if (stream === second && !this.isSentinel) {
      if (this.#hasSucceeded(second)) this.promote();
    } else if (this.#isVain(second)) this.dropSecond();
  }

  /**
   * Turns a sentinel's second stream (D13) into a hedge, because the first stream is suspect. Forwards the events that
   * only the second stream has delivered. Returns false if there is no second stream, if its backend is suspect, or if
   * `except` contains its backend.
   */
  hedgeWithSentinel(except: readonly string[]): boolean {
    const { first, second } = this;
    if (this.#state !== "sentinel" || first === undefined || second?.isAccepted !== true) return false;
    const { backend } = second.attempt;
    if (except.includes(backend) || this.migrations.targets.isDoubtful(backend)) return false;
    if (!this.#become("hedge")) return false;
    this.#search.begin("suspect", first.attempt.backend);
    if (!this.#releaseAhead(second)) this.dropSecond();
    return true;
  }

  promote(asked: AskReason = this.#search.reason): void {
    if (!this.#become("promote")) return;
    const { host } = this.#parts;
    const reason = asked === "sentinel" ? "lost" : asked;
    this.#leavePost(reason);
    const { from, ms } = this.#search;
    const isFit = this.#switch();
    this.progress.promoted();
    this.#search.found();
    host.goesOn({ reason, from, to: this.attempt?.backend ?? "", ms });
    if (!isFit && this.first !== undefined) this.#broken(this.first);
  }

  /**
   * Called if the watch continues on a sentinel's second stream (D13). The duration of the move is measured from now,
   * because the second stream was requested long ago.
   */
  #leavePost(reason: AskReason): void {
    if (this.#search.reason === "sentinel")
      this.#search.begin(reason, this.attempt?.backend ?? this.#search.from, true);
  }

  /**
   * Called if the first stream is not in the format of its content type. From now on, its bytes are forwarded as they
   * are, and the watch cannot move.
   */
  #lose(): void {
    this.progress.lose();
    this.dropSecond();
  }

  /** Handles an ERROR that answers the proxy's own request, or that came on one of two streams. */
  #refused(stream: WatchStream, code: number): void {
    this.#dropRefresh(stream);
    const { first, second } = this;
    if (stream === first && second !== undefined) {
      this.#drop(stream);
      return this.#goOnWithSecond(second);
    }
    const isLast = stream === first || first === undefined;
    if (isLast && (code === expired || stream.refusal !== undefined)) this.#search.refused(stream, code);
    const isForgotten = isLast && this.migrations.targets.isForgotten(this);
    this.#turnDown(stream, acceptanceOfError(code, isForgotten), code === expired ? "expired" : "refused");
  }

  #turnDown(stream: WatchStream, acceptance: Acceptance, reason: EndReason): void {
    const isCompared = this.#state === "sentinel" && stream === this.second;
    const isPassing = acceptance.kind === "elsewhere";
    this.#drop(stream);
    // No pause begins if only the stream for comparison (D13) was refused, and only for a temporary reason. During a
    // pause, the watch could not be hedged.
    if (this.first !== undefined) return isCompared && isPassing ? undefined : this.#decline(isPassing);
    this.#search.inVain(stream.attempt.backend);
    if (isPassing) this.#resume(acceptance.inMs);
    else this.#end(reason);
  }

  /** Drops a stream that delivers something that was not requested, or omits an event of the other stream. */
  #broken(stream: WatchStream): void {
    const isCompared = this.#state === "sentinel" && stream === this.second;
    this.#drop(stream);
    // The client has received no event of a stream for comparison (D13), so the watch continues without that stream.
    if (isCompared) return;
    if (this.first === undefined) this.#end("out_of_order");
    else this.#decline(false);
  }

  /** Continues with the first stream alone. `isPassing`: true if a backend refused the second one only temporarily. */
  #decline(isPassing: boolean): void {
    this.#search.declined(isPassing ? watchLimits.declinedMs : Number.POSITIVE_INFINITY);
    if (isPassing && this.#search.reason === "draining") this.migrations.leaveLater(this);
  }

  #await(stream: WatchStream): void {
    const isAlone = (): boolean => this.migrations.targets.isAlone(this, stream.attempt);
    this.#search.untilAnswered(isAlone, () => this.#giveUp(stream));
  }

  /**
   * If an attempt has lost its connection before a response and the watch has no other stream, does not count the
   * attempt towards `resumeAttempts`.
   */
  #lostUnanswered(stream: WatchStream | undefined): void {
    const isOnly = stream !== undefined && stream === this.second && this.first === undefined;
    if (isOnly && stream.isOpened && !stream.isAccepted) this.#search.lost();
  }

  #giveUp(stream: WatchStream): void {
    stream.cancel();
    this.#over(stream.attempt, "broken");
  }

  #drop(stream: WatchStream): void {
    if (stream !== this.first) return this.dropSecond();
    if (this.#become("lose")) this.#cancelFirst();
  }

  #dropRefresh(stream: WatchStream): void {
    if (stream === this.first && this.#state === "refreshing") this.dropSecond();
  }

  // --- after the end of an upstream stream ---

  #over(attempt: Attempt, over: Over): void {
    const stream = this.#streamOf(attempt);
    if (stream === undefined) return;
    const isFirst = stream === this.first;
    this.#dropRefresh(stream);
    this.#drop(stream);
    if (isFirst) return this.#firstOver(stream, over);
    if (this.first !== undefined) return this.#secondOver(over);
    this.#search.inVain(attempt.backend);
    this.#resume(stream.isOpened ? 0 : this.#search.unsent());
  }

  /**
   * If the second stream ended at the client's deadline, ends the watch without waiting for the first stream, which
   * may be silent.
   */
  #secondOver(over: Over): void {
    if (over === "ended" && isDeadline(this.#times.leftMs)) this.#endAtDeadline();
    else if (this.#search.reason === "draining") this.#decline(true);
  }

  /**
   * If the client's deadline has passed and the watch's only remaining stream is suspect, ends the watch and returns
   * true. While all backends are silent, nothing else ends the watch (D14).
   */
  #endIfPastDeadline(stream: WatchStream): boolean {
    const { first } = this;
    const isLast = first === undefined || stream === first;
    if (!isLast || !this.#isPastDeadline || !this.progress.isReadable) return false;
    this.#endAtDeadline();
    return true;
  }

  #endAtDeadline(): void {
    if (!this.#close()) return;
    this.#cancelFirst();
    this.#whenOld(() => this.#parts.host.endsHere(true));
  }

  #firstOver({ attempt, reading: { isOurs } }: WatchStream, over: Over): void {
    const isDraining = over === "ended" && this.migrations.targets.isLeaving(attempt);
    const { phase, start, liveEvents, resumeVersion } = this.progress;
    const ending: Ending = {
      ...this.#times,
      over,
      isDraining,
      isOurs,
      phase,
      start,
      liveEvents,
      isResumable: resumeVersion !== undefined,
      isRepeated: this.#search.hasEndedInVain,
      isBlocked: this.writer.isBlocked,
    };
    const { kind } = verdictOn(ending);
    if (over === "broken" || isDraining) this.#search.inVain(attempt.backend);
    const { second } = this;
    if (kind === "resume" && second !== undefined) {
      this.#leavePost(moveReason(over, isDraining));
      return this.#goOnWithSecond(second);
    }
    this.dropSecond();
    this.#search.begin(moveReason(over, isDraining), attempt.backend);
    if (kind === "resume" || kind === "replay") this.#resume(0);
    else if (kind === "relay") this.#endDue();
    else if (kind === "reset") this.#parts.host.breaksOff();
    else this.#end(endReason(ending));
  }

  #goOnWithSecond(second: WatchStream): void {
    if (second.isAccepted) return this.promote();
    this.#search.mayTry();
    this.#await(second);
  }

  #resume(inMs: number): void {
    if (this.#isPastDeadline) return this.#endAtDeadline();
    if (this.isExpired) return this.#end("refused");
    if (this.#isOver || !this.#search.mayTry())
      return this.#end(this.#search.hasNoProgress ? "no_progress" : this.#search.endReason);
    this.#search.waitFor(this.migrations.resume(this, Math.min(inMs, this.#search.leftMs)));
  }

  // --- the end of the watch ---

  #endDue(): void {
    if (this.#close()) this.#whenOld(() => this.#parts.host.endsHere(true));
  }

  /** Ends the watch for a reason of the proxy's own. If the watch is ending already, the first reason remains. */
  #end(reason: EndReason): void {
    if (this.#isOver || !this.#close()) return;
    const { host, migrations } = this.#parts;
    const refusal = this.#retry?.refusal;
    if (refusal !== undefined && this.first === undefined) {
      // The client gets the ERROR with which a backend answered the client's own request. So the end of the watch
      // counts as the backend's decision, not the proxy's.
      this.release(refusal);
      return host.endsHere(true);
    }
    this.#whenOld(() => {
      migrations.ended(this, reason, this.attempt?.backend ?? this.#search.from);
      host.endsHere(false);
    });
  }

  #close(): boolean {
    if (!this.#become("end")) return false;
    this.#retry?.stop();
    this.#cancelSecond();
    return true;
  }

  #whenOld(end: () => void): void {
    const { phase, liveEvents } = this.progress;
    const inMs = endOf({ phase, liveEvents, liveMs: this.#times.liveMs });
    if (inMs > 0) this.#search.after(inMs, end);
    else end();
  }

  // --- the events of the upstream streams ---

  #streamOf(attempt: Attempt): WatchStream | undefined {
    if (this.first?.attempt === attempt) return this.first;
    return this.second?.attempt === attempt ? this.second : undefined;
  }

  get heldBytes(): number {
    return (this.first?.heldBytes ?? 0) + (this.second?.heldBytes ?? 0);
  }

  /** True if events of both streams are forwarded, so that each event may arrive twice. */
  get #isMerged(): boolean {
    return isMerging(this.#state) && this.second?.isAccepted === true;
  }

  /** True if the second stream is useless, because the client is slow or the watch has no version to continue from. */
  #isVain(second: WatchStream): boolean {
    const { writer, progress } = this;
    if (second.isAccepted && writer.isBlocked) return true;
    return (!second.isAccepted || this.isSentinel) && progress.resumeVersion === undefined;
  }

  #hasSucceeded({ reading }: WatchStream): boolean {
    return reading.events > 0 && (this.writer.isBlocked || this.#state !== "hedged");
  }

  #sourceOf({ attempt }: WatchStream): AnomalySource {
    return { context: this.clientRequest, resource: this.resource, backend: attempt.backend };
  }

  /**
   * Makes the second stream the first. Then forwards the events that this stream has delivered and the old first
   * stream has not. Returns false if one of these events does not follow the client's latest event.
   */
  #switch(): boolean {
    this.first?.cancel();
    this.first = this.second;
    this.second = undefined;
    this.isPosted = false;
    this.moves += 1;
    this.writer.change();
    return this.first === undefined || this.#releaseAhead(this.first);
  }

  /**
   * Forwards the events of `stream` that were held until the first stream would deliver them, too. Returns false if one
   * of these events does not follow the client's latest event.
   */
  #releaseAhead(stream: WatchStream): boolean {
    for (let held = stream.shiftAhead(); held !== undefined; held = stream.shiftAhead()) {
      const fate = this.take(held.event, stream);
      if (fate === "forward") this.release(held.bytes);
      else if (fate !== "drop") return false;
    }
    return true;
  }

  #cancelFirst(): void {
    this.first?.cancel();
    this.first = undefined;
    // Without a first stream, nothing can be compared. From now on, the second stream is the one that will replace the
    // lost stream.
    this.isPosted = false;
  }

  #cancelSecond(): void {
    if (this.second?.isAccepted === false) this.migrations.pace.settled(this.second.attempt.backend);
    this.second?.cancel();
    this.second = undefined;
    this.isPosted = false;
  }

  take(event: WatchEvent, from: WatchStream): Fate {
    const { progress, asked, migrations } = this;
    const now = migrations.clock.now();
    const { versionRegressions, cursor } = progress;
    const isCompared = this.isSentinel;
    const fate = this.#fateOf(event, from, now);
    if (progress.versionRegressions !== versionRegressions)
      migrations.anomalies.outdated(this.#sourceOf(from), event, cursor);
    this.#updateCache(event, from, now);
    if (fate === "forward") asked.seenVersion?.raise(event.version);
    if (isCompared && from === this.first) this.#confirm(now);
    // A bookmark counts as progress even if it is not forwarded, because it shows that all events up to its version have
    // arrived (watch.md §5.2).
    if (fate === "forward" || progress.cursor !== cursor) this.#retry?.progressed();
    return fate;
  }

  #fateOf(event: WatchEvent, from: WatchStream, now: number): Fate {
    const { progress } = this;
    if (from === this.second && this.isSentinel) return this.#compare(event, from, now);
    // Two kinds of bookmarks do not show that the first stream gets a bookmark every minute: the bookmark of a stream
    // that was opened only to get it, and the one that ends the initial events. The first stream gets no further
    // bookmark until its cache has moved past the version at which the stream began, and that may take long (W5).
    const isRegular = (from === this.first || this.#state !== "refreshing") && !event.endsInitialEvents;
    progress.arrived(event.type, now, isRegular);
    return progress.take(event, from.reading, this.#isMerged, now);
  }

  /** Holds an event of a sentinel's second stream (D13) until the first stream delivers it, too. */
  #compare(event: WatchEvent, from: WatchStream, now: number): Fate {
    const { progress } = this;
    if (event.type !== "ERROR" && progress.isAhead(event, from.reading)) {
      // The event is newer than the client's latest event. The second stream should have delivered that latest event
      // earlier. If not, the second stream has skipped it.
      if (!from.isAhead && !progress.isShownBy(from.reading)) this.#reportUnlike(progress.cursor);
      else if (!from.isTooFarAhead) return "hold";
      return "broken";
    }
    // `arrived` is not called, because an event of the second stream does not end the first stream's silence.
    return progress.take(event, from.reading, true, now);
  }

  /** Called after the first stream has delivered an event. Drops the second stream if it has skipped that event. */
  #confirm(now: number): void {
    const { second, progress } = this;
    if (second === undefined) return;
    let isUnlike = false;
    for (
      let held = second.nextAhead;
      held !== undefined && !progress.isAhead(held.event, second.reading);
      held = second.nextAhead
    ) {
      const { event } = held;
      isUnlike ||= event.type !== "BOOKMARK" && compareVersions(event.version, progress.cursor) < 0;
      progress.take(event, second.reading, true, now);
      second.shiftAhead();
    }
    isUnlike ||= second.isAhead && !progress.isShownBy(second.reading);
    if (!isUnlike) return;
    this.#reportUnlike(progress.cursor);
    this.dropSecond();
  }

  /**
   * Reports that the events of two backends differ. Ignores watches with a selector, because two Kubernetes releases
   * may evaluate a selector differently.
   */
  #reportUnlike(version: string): void {
    const { asked, migrations } = this;
    const isProof = asked.scope !== "" && !asked.isRepeating;
    if (isProof && this.first !== undefined && this.second !== undefined)
      migrations.anomalies.unlike(this.#sourceOf(this.first), this.second.attempt.backend, version);
  }

  #updateCache(event: WatchEvent, from: WatchStream, now: number): void {
    const { seenVersion } = this.asked;
    if (event.type === "BOOKMARK") from.cache?.showBookmark(event, now);
    else if (event.type !== "ERROR") from.show(event.version, now);
    else if (event.code === 504) seenVersion?.refused();
    else if (event.code === expired) from.cache?.refuse(from.reading.from, event.oldest);
    if (event.endsInitialEvents) seenVersion?.shown(event.version);
  }

  mayGoOn(from: WatchStream): boolean {
    return from === this.first;
  }

  forward(bytes: Buffer, start: number, end: number, from: WatchStream): void {
    // While two streams are merged, bytes sent to the client cannot be attributed to one of them, so flow-control
    // credit is returned on receipt. That is safe, because a slow client's watch does not keep two streams for long.
    if (this.#isMerged) {
      this.writer.prepaid(end - start);
      from.attempt.up?.grant(end - start);
    }
    this.writer.send(bytes, start, end);
  }

  /** Sends held bytes. Their flow-control credit was returned on receipt, so sending them returns no credit again. */
  release(held: Buffer): void {
    this.writer.prepaid(held.length);
    this.writer.send(held, 0, held.length);
  }
}
