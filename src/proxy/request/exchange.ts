/**
 * One request with its response, from the first attempt at a backend to the last frame.
 *
 *     state      input                                                      becomes
 *     placing    a backend is chosen                                        asking
 *                no backend can be asked, or no slot is free                placing, in a queue
 *                the wait is over, or the request is refused                ended, with a local reply
 *     asking     final head                                                 relaying
 *                attempt lost: another one is under way                     asking
 *                attempt lost: the request may be sent again                placing
 *                attempt lost: it may not be sent again                     ended, with a local reply or a reset
 *     relaying   the response is a watch with readable events               watching
 *                END_STREAM from the backend                                finishing
 *                attempt lost                                               ended, with a reset
 *     watching   the watch session ends the watch                           ended
 *     finishing  the request's body is over, or not wanted any more         ended
 *     any        the client resets its stream, or the exchange is cut       ended
 *
 * `#retry` sends a request again, to the next backend, if `upstream/retry-policy.ts` allows it.
 *
 * A sender gets flow-control credit only for bytes that have left towards the receiver, so a slow client slows only its
 * own stream at the backend.
 */
import { Failure } from "../../base/failure.ts";
import { journalFault } from "../../events/journal.ts";
import { type Field, role } from "../../h2/core/field.ts";
import { errorCode, lost } from "../../h2/core/protocol-error.ts";
import type { StreamListener, StreamWriter } from "../../h2/core/stream-writer.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import {
  isRepeatable,
  isSafe,
  type RequestContext,
  shareFields,
} from "../../upstream/context/request-context.ts";
import { dropsOf } from "../../upstream/identity/asserted-identity.ts";
import { type Credential, isTokenAccepted } from "../../upstream/identity/trust.ts";
import { type Attempt, type AttemptOwner, growWindow } from "../../upstream/pool/attempt.ts";
import type { PoolKey } from "../../upstream/pool/pool-key.ts";
import { maySendAgain } from "../../upstream/pool/retry-policy.ts";
import { decodersOf } from "../../watch/codec/framing.ts";
import type { Move } from "../../watch/session/end-verdict.ts";
import type { WatchTally } from "../../watch/session/session-progress.ts";
import { answerOf, type WatchContext, withOrigin } from "../../watch/session/watch-context.ts";
import { type WatchHost, WatchSession } from "../../watch/session/watch-session.ts";
import type { GateOwner, RequestGate } from "../limits/request-gate.ts";
import type { BodyCopy } from "../observe/ledger-tap.ts";
import type { ReplayLoop } from "../observe/replay-loop-detector.ts";
import { AttemptPair } from "./attempt-pair.ts";
import {
  answeredBy,
  type ExchangeRequest,
  type ExchangeServices,
  poolKeyOf,
  type ResponseReader,
} from "./exchange-request.ts";
import { failedEntry, journalMalformed, noneAnswers, refusedBy } from "./failures.ts";
import type { Hedges } from "./hedge.ts";
import { HeldBody, HeldResponse, holdBody, isRefusal, isShort, isShutdown } from "./held-response.ts";
import { requestLimits } from "./limits.ts";
import { failureOfCut, failureOfLost, honestCode, lostUnanswered, sendLocalReply } from "./local-reply.ts";
import { RequestBody } from "./request-body.ts";

export type ExchangeParts = ExchangeServices & {
  readonly hedges: Hedges;
  readonly exchanges: { remove(exchange: Exchange, end: ExchangeEnd, now: number): void };
};

export type ExchangeEnd = "complete" | "client_gone" | "backend_gone" | "refused";

export type ExchangeState = "placing" | "asking" | "relaying" | "watching" | "finishing" | "ended";

const noWait = (): void => {};

export class Exchange implements StreamListener, AttemptOwner, WatchHost, GateOwner {
  readonly #parts: ExchangeParts;
  context: RequestContext;
  readonly down: StreamWriter;
  /**
   * Invariant: a first attempt exists in the states `asking`, `relaying` and `finishing`, and in no other state. A
   * watch session has its own attempts.
   */
  readonly attempts: AttemptPair;
  readonly #credential: Credential;
  readonly #info: RequestInfo;
  readonly #asked: WatchContext | undefined;
  #reader: ResponseReader | undefined;
  readonly #copy: BodyCopy | undefined;
  readonly #gate: RequestGate | undefined;
  readonly headBytes: number;
  #state: ExchangeState = "placing";
  /**
   * Status of the final head for the client. Invariant: 0 in `placing` and `asking`, any in `ended`, else at least 200.
   */
  #status = 0;
  /** The request's body; undefined if no body follows the head. */
  readonly #body: RequestBody | undefined;
  /** Invariant: defined in `watching`, undefined before. */
  #watch: WatchSession | undefined;
  /** Cancels the present wait. Invariant: set only in `placing` (in a queue) and `asking` (holds a response back). */
  #stopWaiting: () => void = noWait;
  /** Clock reading at which the wait for a backend ends; 0: the request has not waited yet. */
  #waitsUntil = 0;
  /**
   * Counts how often the client repeats this watch; undefined: the watch does not start at an exact resource version.
   */
  #replayLoop: ReplayLoop | undefined;
  /**
   * The backends whose routers have answered this read with 404. Undefined: no backend lacked the API, or could not
   * reach its server.
   */
  #lacking: readonly string[] | undefined;
  #delivered = 0;
  #sentBytes = 0;
  /** The held body that was forwarded; undefined: the body was not held. */
  #relayed: HeldBody | undefined;
  /** The exchange's index in `ActiveRequests`, which sets it. */
  index = -1;
  /**
   * The totals of all watches, to which this exchange adds its bytes. Undefined unless the exchange is an active watch.
   */
  tally: WatchTally | undefined;

  constructor(parts: ExchangeParts, request: ExchangeRequest) {
    this.#parts = parts;
    this.context = request.context;
    this.down = request.down;
    this.#credential = request.credential;
    this.#info = request.info;
    this.#asked = request.asked;
    this.#reader = request.reader;
    this.#copy = request.copy;
    this.#gate = request.gate;
    this.headBytes = request.headBytes;
    this.attempts = new AttemptPair(this, request);
    this.#body = request.context.isBodiless ? undefined : new RequestBody(parts.buffered);
  }

  get state(): ExchangeState {
    return this.#state;
  }

  get status(): number {
    return this.#status;
  }

  get isEnded(): boolean {
    return this.#state === "ended";
  }

  get isAnswered(): boolean {
    return this.#status !== 0;
  }

  get isBound(): boolean {
    return this.isAnswered || !this.#maySendAgain(lost);
  }

  get watch(): WatchSession | undefined {
    return this.#watch;
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  get queuedBytes(): number {
    return (
      this.down.queuedBytes +
      this.attempts.queuedBytes +
      (this.#watch?.heldBytes ?? 0) +
      (this.#body?.length ?? 0)
    );
  }

  get backend(): string {
    return this.attempts.backend;
  }

  /** Returns a text for tests and logs. It omits the path, because the path's query may contain a token. */
  toString(): string {
    const tried = this.attempts.tried.map((backend) => `, asked ${backend} in vain`).join("");
    return `${this.context.verb} ${this.context.auditId} ${this.#state} ${this.#status} ${this.backend}${tried}`;
  }

  // --- begin and end ---

  /** Sends the request to the first backend, or answers the client with `refusal`. */
  begin(refusal: Failure | undefined): void {
    this.#parts.buffered.add(this.headBytes);
    try {
      if (refusal === undefined) this.#place();
      else this.#failed(refusal);
      this.attempts.queue();
      // Makes the client open a new connection, on which it can present another certificate. Apiservers also do this
      // after a 401.
      if (refusal?.code === "unauthenticated") this.context.client.sendAway();
    } catch (error) {
      // An attempt that has begun is ended here. The client's stream has no listener yet, so a reset by the client
      // would not end the attempt.
      this.attemptFaulted(error);
    }
  }

  /**
   * Ends a watch whose events can be decoded, in a way that client-go does not report as a failure (D5). Returns false,
   * and does nothing, for any other request.
   */
  letWatchEnd(): boolean {
    if (this.isEnded || this.#watch?.progress.isReadable !== true) return false;
    this.#watch.finish();
    return true;
  }

  /**
   * Ends the exchange now, in any state: the process or cluster stops, memory is short, or an internal error occurred.
   * The client gets "not processed" only if nothing of the request was sent (D17), because Go's transport then repeats
   * even a write.
   */
  cut(): void {
    // The exchange has ended, but the client has not read the whole response. The reset frees its buffered bytes.
    if (this.isEnded) return this.down.reset(errorCode.INTERNAL_ERROR);
    if (this.#watch?.progress.isReadable === true) return this.endsHere(false);
    const { mayHaveRun } = this.attempts;
    this.attempts.cancel(this.isAnswered);
    if (this.isAnswered) return this.#resetDown(lost);
    // Closes the connection if it is HTTP/1.1. An open connection would keep the request's head in memory, and the
    // exchange may be cut because memory is short.
    this.down.closeAfter?.();
    if (mayHaveRun) this.#reply(failureOfCut(isSafe(this.context)));
    else this.#resetDown(errorCode.REFUSED_STREAM);
  }

  #failed(failure: Failure): void {
    // The limit itself journals its refusals, as a sum, because a client may send thousands of requests above a limit.
    if (failure.code === "limited") return this.#reply(failure);
    this.#parts.journal.write(failedEntry(this.context, failure, this.backend));
    this.#reply(failure);
  }

  #reply(failure: Failure): void {
    this.#status = sendLocalReply(this.down, this.context.method, failure);
    // The client gets no more flow-control credit for the rest of its body. The reset tells it to stop sending; without
    // the reset it would wait for credit for ever.
    if (this.#body?.isOver === false) this.down.reset(errorCode.NO_ERROR);
    this.#end("refused");
  }

  #resetDown(code: number): void {
    this.down.reset(honestCode(code, this.isAnswered || this.attempts.mayHaveRun));
    this.#end("backend_gone");
  }

  #endIfOver(): void {
    if (this.#state === "finishing" && this.#body?.isOver !== false) this.#end("complete");
  }

  #end(end: ExchangeEnd): void {
    if (this.isEnded) return;
    this.#state = "ended";
    this.attempts.end();
    this.#body?.forget();
    this.#stopWaiting();
    this.#gate?.end();
    const { exchanges, probers, clock, buffered } = this.#parts;
    buffered.add(-this.headBytes);
    exchanges.remove(this, end, clock.now());
    this.#replayLoop?.ended();
    // A backend that was lost, or that sent a 5xx, is probed. A 5xx alone does not count against the backend, because a
    // webhook may have caused it.
    if (end === "backend_gone" || this.#status >= 500) probers?.of(this.backend)?.probeNow();
    this.#watch?.cancel();
  }

  // --- placing ---

  #place(): void {
    if (this.isEnded || this.#gate?.isAdmitted(this) === false) return;
    const { backends, pools, avoidedApis } = this.#parts;
    const { client } = this.context;
    if (backends.areAllSilent) return this.#enqueue(noneAnswers);
    const backend = this.attempts.nextFor(this.#parts, this.context.client.backend, this.#gate);
    if (backend instanceof Failure) return this.#enqueue(backend);
    if (this.#gate?.mayAsk(backend, this) === false) return;
    // If an API is missing at the backend to which the client is bound, only the requests of this API go to another
    // backend, and the client stays bound (k/k 59848).
    if (this.#lacking === undefined && avoidedApis.avoided(this.#info).length === 0) client.bind(backend);
    this.#state = "asking";
    this.attempts.ask(backend).dial(pools);
  }

  turnAway(failure: Failure): void {
    if (!this.isEnded) this.#failed(failure);
  }

  /**
   * Sends the request after it has waited for its admission, or for a backend that limits concurrent lists
   * (limits/shield.ts).
   */
  proceed(): void {
    this.#place();
  }

  /** Waits for a backend: until `pending.until`, or until `silentUntil` while all backends are silent (D14). */
  #enqueue(failure: Failure): void {
    if (failure.code === "unproven-identity") return this.#failed(failure);
    const { pending, backends } = this.#parts;
    if (backends.areAllSilent) this.#waitsUntil = backends.silentUntil;
    else if (this.#waitsUntil === 0) this.#waitsUntil = pending.until;
    const place = (): void => {
      if (failure === noneAnswers) this.#waitsUntil = 0;
      this.#place();
    };
    this.#stopWaiting = pending.wait(this.#waitsUntil, place, () => this.#failed(failure));
  }

  /**
   * Sends the request again, to the next backend, after an attempt that sent nothing or may be repeated: up to
   * `limits.attempts` attempts in all. `isSentAway`: true if a GOAWAY refused the request.
   */
  #retry(failure: Failure, isSentAway = false): void {
    this.#state = "placing";
    const { clock, backends } = this.#parts;
    const { attempts, context } = this;
    // While no backend answers at all, the fault is probably not this backend's, so failed attempts do not count (D14).
    if (backends.areAllSilent) attempts.forget(Number.POSITIVE_INFINITY);
    // An attempt that a GOAWAY refused does not count for a while, because any client's 401 makes the apiserver send
    // GOAWAY to all clients of that connection.
    const since = Math.max(context.at, this.#gate?.admittedAt ?? 0);
    if (isSentAway && attempts.isSpent && clock.now() - since < requestLimits.sentAwayMs) attempts.forget(1);
    if (!attempts.isSpent) return this.#place();
    if (failure.code !== "backend-lost") return this.#failed(failure);
    // The 503 has a Retry-After, after which a client continues its watch without a relist (watch.md §5.1).
    const message = `All attempts failed (${attempts.tried.join(", ")}): ${failure.message}`;
    this.#failed(new Failure("no-backend", "backend", message, failure));
  }

  // --- input from the client ---

  headers(fields: Field[]): void {
    const drops = dropsOf(this.context.client.identity, this.context.asserted);
    const said = drops === undefined ? fields : fields.filter((field) => !drops(field));
    this.#body?.end(said);
    this.attempts.first?.up?.sendHeaders(said, true);
    this.#endIfOver();
  }

  data(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    if (this.isEnded) return this.down.grant(end - start);
    this.#copy?.add(bytes, start, end);
    const body = this.#body;
    if (endStream) body?.end();
    const up = this.attempts.first?.up;
    if (up === undefined) return body?.keep(bytes, start, end);
    body?.keepForAgain(bytes, start, end);
    up.sendData(bytes, start, end, endStream);
    this.#endIfOver();
  }

  reset(): void {
    if (this.isEnded) return;
    this.attempts.cancel(this.isAnswered);
    this.#end("client_gone");
  }

  sent(count: number): void {
    this.#sentBytes += count;
    this.context.client.work.add(count);
    if (this.tally !== undefined) this.tally.bytes += count;
    const granted = (this.#watch ?? this.#relayed)?.creditFor(count) ?? count;
    const attempt = this.#watch?.attempt ?? this.attempts.first;
    if (attempt?.up === undefined) return;
    if (granted > 0) attempt.up.grant(granted);
    this.#delivered = growWindow(attempt.up, attempt, this.#delivered + count, this.#parts.buffered.isTight);
  }

  // --- input from the attempts ---

  poolKey(): PoolKey {
    return poolKeyOf(this.#parts, this.context, this.#credential);
  }

  attemptOpened(attempt: Attempt, up: StreamWriter): void {
    this.#body?.sendTo(up);
    const phase = this.attempts.sent(attempt);
    if (phase !== undefined) this.#parts.overhead.forwarded(phase, this.context.at, this.context.auditId);
  }

  attemptRefused(attempt: Attempt, failure: Failure): void {
    if (!this.#goesOnWithout(attempt)) this.#retry(failure);
  }

  attemptHeaders(attempt: Attempt, fields: Field[], end: boolean): void {
    if (this.isEnded) return;
    const held = this.attempts.heldOf(attempt);
    if (held !== undefined) {
      held.endWith(fields);
      return this.#relayIfDue(held);
    }
    this.#relayHead(attempt);
    if (this.isAnswered) this.#sendHead(fields, end);
    else this.#takeHead(attempt, fields, end);
  }

  attemptData(attempt: Attempt, bytes: Buffer, start: number, end: number, endStream: boolean): void {
    if (this.isEnded) return;
    const held = this.attempts.heldOf(attempt);
    if (held !== undefined) {
      held.keep(bytes, start, end, endStream);
      return this.#relayIfDue(held);
    }
    if (!endStream && this.#holdsBody(attempt))
      return this.attemptData(attempt, bytes, start, end, endStream);
    this.#relayHead(attempt);
    if (endStream) this.#state = "finishing";
    this.#reader?.read(bytes, start, end, endStream);
    this.down.sendData(bytes, start, end, endStream);
    if (endStream) this.#endIfOver();
  }

  attemptSent(_attempt: Attempt, count: number): void {
    this.down.grant(count);
  }

  attemptSuspected(attempt: Attempt): void {
    if (this.isEnded || this.isAnswered) return;
    // A backend that is sending the body is not slow.
    if (!attempt.isSuspect && this.attempts.heldOf(attempt) !== undefined) return;
    const { backends, hedges } = this.#parts;
    // While no backend answers at all, the fault is probably not this backend's, so failed attempts do not count (D14).
    if (backends.areAllSilent) this.attempts.forget(Number.POSITIVE_INFINITY);
    hedges.suspected(this.context, this.attempts, attempt, this.#info);
  }

  attemptPassed(attempt: Attempt): void {
    if (!this.isEnded) this.#relayHead(attempt);
  }

  attemptFaulted(error: unknown): void {
    journalFault(this.#parts.journal, error);
    this.cut();
  }

  attemptGone(attempt: Attempt, code: number): void {
    if (this.isEnded) return;
    // If the backend itself has ended the stream, it will send no more, so the held part of the response is forwarded.
    // After a lost connection, the held part is not forwarded.
    if (code !== lost) this.#relayArrived(attempt);
    if (this.#state === "relaying") journalMalformed(this.#parts.journal, this.context, attempt, code);
    if (this.isAnswered) return this.#lostAnswered(code);
    if (this.#goesOnWithout(attempt)) return;
    if (this.#maySendAgain(code)) {
      const isSentAway = code === errorCode.REFUSED_STREAM && attempt.isConnectionRetiring;
      return this.#retry(lostUnanswered(attempt.backend), isSentAway);
    }
    const failure = failureOfLost(attempt, code, isSafe(this.context) || !this.attempts.mayHaveRun);
    if (failure === undefined) this.#resetDown(code);
    else this.#failed(failure);
  }

  /** True if the request may be sent again. That also requires that its whole body is still buffered. */
  #maySendAgain(code: number): boolean {
    return this.#body?.isRepeatable !== false && maySendAgain(code, isSafe(this.context));
  }

  #lostAnswered(code: number): void {
    // The client's stream is reset, so that the client never mistakes a truncated response for a complete one (F9).
    if (this.#state !== "finishing") return this.#resetDown(code);
    // The response is complete, and the backend does not need the rest of the request's body. NO_ERROR tells the client
    // to stop sending (RFC 9113 §8.1).
    this.down.reset(errorCode.NO_ERROR);
    this.#end("complete");
  }

  // --- the response's head ---

  #takeHead(attempt: Attempt, fields: Field[], end: boolean): void {
    const status = Number(fields[0]?.value);
    if (status < 200) {
      // Only the first attempt's interim heads (1xx) are forwarded. Otherwise the client would get each head twice.
      if (attempt === this.attempts.first) this.down.sendHeaders(fields, false);
      return;
    }
    this.attempts.answered(attempt, fields, this.#parts.clock.now());
    if (this.#putsOff(attempt, status, fields, end)) return;
    if (end || this.context.kind !== "plain" || !isRepeatable(this.context))
      return this.#answer(attempt, status, fields, end);
    attempt.keepHead(fields);
  }

  #relayHead(attempt: Attempt): void {
    const head = attempt.takeHead();
    if (head !== undefined) this.#answer(attempt, Number(head[0]?.value), head, false);
  }

  /**
   * Forwards the held part of the attempt's response, because the rest will not come. Waits instead if the other
   * attempt may still bring a complete response. Never forwards a part of a malformed response.
   */
  #relayArrived(attempt: Attempt): void {
    if (attempt.fault !== undefined || (this.attempts.hasTwo && this.attempts.isHoldingBody)) return;
    this.#relayHead(attempt);
    if (this.attempts.heldOf(attempt) instanceof HeldBody) this.#relayHeld();
  }

  #answer(attempt: Attempt, status: number, fields: Field[], end: boolean): void {
    this.#stopWaiting();
    this.#stopWaiting = noWait;
    this.#status = status;
    this.#state = "relaying";
    this.#body?.forget();
    this.#account(attempt, this.attempts.prefer(attempt), fields);
    this.#sendHead(fields, end);
    if (this.context.kind !== "watch" || status !== 200 || end) return;
    this.#watch = this.#watchOf(fields, attempt);
    if (this.#watch === undefined) return;
    this.#state = "watching";
    shareFields(this.context);
    this.attempts.handOver();
    if (this.tally !== undefined) this.#watch.progress.countIn(this.tally, attempt.backend);
  }

  /** Evaluates what the response shows about the credential, the client, and the backends that got the request. */
  #account(attempt: Attempt, rest: Attempt | undefined, fields: readonly Field[]): void {
    const status = this.#status;
    const { avoidedApis, clock, hedges, overhead } = this.#parts;
    const now = clock.now();
    overhead.forwarded("response", now, this.context.auditId);
    const isAccepted = this.learnt(status, attempt.isConnectionRetiring);
    if (isRepeatable(this.context)) avoidedApis.readAnswered(this.#info, this.backend, status, this.#lacking);
    this.context.client.answered();
    hedges.answered(this.context, status, attempt, { rest, now });
    this.#gate?.answered(status, attempt.answeredMs, isAccepted);
    this.#copy?.answered(status);
    if (rest?.isSlow === true) avoidedApis.lostHedge(this.#info, rest, status);
    if (status === 500) this.#reader = avoidedApis.readerOf(this.#info) ?? this.#reader;
    if (this.#reader?.answered(this.backend, fields) === true)
      hedges.leaveBehind(this.context.client, this.backend);
  }

  #sendHead(fields: Field[], end: boolean): void {
    if (end) this.#state = "finishing";
    this.down.sendHeaders(fields, end);
    this.#endIfOver();
  }

  // --- a response that is held, because another backend may give a better one ---

  /** Returns true if the response is not forwarded now, because another attempt may give a better one. */
  #putsOff(attempt: Attempt, status: number, fields: Field[], end: boolean): boolean {
    if (status !== 200 && this.attempts.prefersBodyTo(attempt)) return true;
    if (this.#holdsNotFound(attempt, fields, end)) return true;
    return isRefusal(status) && this.#holdsBack(attempt, fields, end);
  }

  /** Returns true if the refusal is not forwarded now: it is held back, or the request goes to another backend. */
  #holdsBack(attempt: Attempt, fields: Field[], end: boolean): boolean {
    const rest = this.attempts.otherThan(attempt);
    if (rest !== undefined && !this.attempts.isHolding) {
      this.attempts.hold(new HeldResponse(attempt, fields, end, this.#parts.buffered));
      this.#stopWaiting = this.#parts.clock.after(requestLimits.refusalHeldMs, () => this.#relayHeld());
      return true;
    }
    if (this.#body?.isRepeatable === false) return false;
    if (!this.#leaves(attempt, fields))
      return rest === undefined && isRepeatable(this.context) && this.#waitsForRest(attempt, fields, end);
    attempt.cancel(true);
    if (!this.#goesOnWithout(attempt)) this.#retry(refusedBy(attempt.backend));
    return true;
  }

  /** Returns true if the request now goes to another backend, because this one is shutting down. */
  #leaves(attempt: Attempt, refusal: readonly Field[]): boolean {
    const { backends, hedges } = this.#parts;
    const isGoing = attempt.isConnectionRetiring || backends.stateOf(attempt.backend) === "draining";
    return isShutdown(refusal, isGoing) && hedges.another(this.attempts) !== undefined;
  }

  /** Holds a read's 404 back, and returns true, until its body shows whether the path has no route. */
  #holdsNotFound(attempt: Attempt, fields: Field[], end: boolean): boolean {
    if (fields[0]?.value !== "404" || this.attempts.hasTwo) return false;
    const { avoidedApis, origins } = this.#parts;
    return (
      avoidedApis.mayJudge(this.context, this.#info, origins) && this.#waitsForRest(attempt, fields, end)
    );
  }

  /**
   * Holds a short refusal back until it is complete, and returns true. If the backend is lost before that, another one
   * can be asked. Returns false if the refusal is complete or not short.
   */
  #waitsForRest(attempt: Attempt, fields: Field[], end: boolean): boolean {
    if (end || !isShort(fields)) return false;
    this.attempts.hold(new HeldResponse(attempt, fields, false, this.#parts.buffered));
    return true;
  }

  /**
   * Begins to hold the body of a response whose first bytes have arrived. Returns false if the body is forwarded as it
   * arrives.
   */
  #holdsBody(attempt: Attempt): boolean {
    const to = { info: this.#info, context: this.context };
    const held = this.attempts.isHolding ? undefined : holdBody(attempt, to, this.#parts.buffered);
    if (held === undefined) return false;
    this.attempts.hold(held);
    held.forwardWhenLate(this.#parts.clock, () => this.#relayHeld());
    return true;
  }

  #relayIfDue(held: HeldResponse): void {
    if (!held.isDue) return;
    if (held instanceof HeldBody) return this.#relayHeld();
    if (this.attempts.hasTwo) return;
    const { avoidedApis, hedges } = this.#parts;
    const lacking = avoidedApis.leave(this.#info, held, this.#lacking, hedges.another(this.attempts));
    if (lacking === undefined) return this.#relayHeld();
    this.#lacking = lacking;
    if (!this.#goesOnWithout(held.attempt)) this.#retry(refusedBy(held.attempt.backend));
  }

  #goesOnWithout(attempt: Attempt): boolean {
    if (!this.attempts.goesOnWithout(attempt)) return false;
    if (!this.attempts.isHoldingBody) this.#relayHeld();
    return true;
  }

  #relayHeld(): void {
    const held = this.attempts.takeHeld();
    if (held === undefined) return;
    const { attempt } = held;
    if (held instanceof HeldBody) this.#relayed = held;
    held.passOn({
      headers: (fields, end) =>
        this.isAnswered
          ? this.#sendHead(fields, end)
          : this.#answer(attempt, Number(fields[0]?.value), fields, end),
      data: (body, end) => this.attemptData(attempt, body, 0, body.length, end),
    });
  }

  // --- a response that is a watch ---

  /** Returns a session for the watch; undefined: no other backend could continue the watch. */
  #watchOf(head: readonly Field[], attempt: Attempt): WatchSession | undefined {
    const { buffered, migrations, replays, originChecks } = this.#parts;
    const request = this.#asked;
    const { contentType, contentEncoding } = answerOf(head);
    // A watch whose response has a content-length cannot move, because the other backend's events would have another
    // total length.
    if (head.some((field) => field.role === role.contentLength)) return undefined;
    if (request === undefined || decodersOf(contentType, contentEncoding, request.isRepeating) === undefined)
      return undefined;
    this.#replayLoop = replays.answered(request, this.context);
    const known = withOrigin(request, originChecks.answered(this.#info, head));
    const asked = migrations.targets.answeredBy(attempt.backend, known);
    const watch = new WatchSession({ host: this, migrations, buffered, asked, contentType }, attempt);
    originChecks.check(this.#info, asked.origin, watch);
    return watch;
  }

  learnt(status: number, isGoing = false): boolean | undefined {
    const by = answeredBy(this.context, this.#info, this.#parts.origins);
    return this.#parts.trust.learn(this.#credential, isTokenAccepted(status, by, isGoing));
  }

  /**
   * Binds the client to the watch's new backend, so that the client's other requests read from the same cache (k/k
   * 59848).
   */
  goesOn(move: Move): void {
    this.context.client.follow(this.backend, move.to);
    this.attempts.moved(move);
    this.#parts.migrations.moved(move, this.context.auditId);
  }

  endsHere(isWhole: boolean): void {
    if (this.isEnded) return;
    this.#state = "finishing";
    this.down.sendData(Buffer.alloc(0), 0, 0, true);
    this.#end(isWhole ? "complete" : "backend_gone");
  }

  breaksOff(): void {
    this.#resetDown(lost);
  }
}
