/**
 * Decides whether a watch was allowed to end. watch.md §5.1 lists the permitted reasons. An end without one of them
 * should never have reached the client.
 */
import type { SimulatedApiserver } from "./apiserver.ts";
import type { Attempt, Attempts } from "./attempts.ts";
import type { Findings } from "./findings.ts";
import { Reach } from "./reach.ts";
import type { Truth } from "./truth.ts";
import type { WatchCall, WatchEnd } from "./watch-call.ts";

/**
 * Limits of a move before it is given up: the time for one move, and the number of attempts within one minute (watch.md
 * §5.2).
 */
const budgetMs = 15_000;
const flappingMs = 60_000;
const mostAttempts = 3;
/** A server may end a watch this long before the deadline that the client calculates. */
const earlyMs = 2_500;
/**
 * The longest permitted delay after a deadline. A move in the last moment adds one second. A watch leaves a silent
 * connection after 5 s (upstreamLimits.connectionPatienceMs) and a tick; only what can go on nowhere else stays for 30 s.
 */
const lateMs = 6_500;
/**
 * The longest permitted delay if no fault occurred within the last `calmMs`: one or two retransmissions, and the
 * server's rounding to seconds.
 */
const calmLateMs = 1_500;
const calmMs = 15_000;
/** client-go relists after a watch that ended without events within this time (watch.md §7). */
const veryShortMs = 1_000;
/**
 * The longest time until an event arrives through another backend. An upstream connection counts as dead after 2 s of
 * silence, or after 5 s if its backend answers on other connections (upstreamLimits.connectionPatienceMs). A move
 * follows, with a round trip or two and perhaps a retransmission.
 */
const freshMs = 6_000;
/** Time within which the proxy notices that a backend is back: a probe every 250 ms, with TCP and TLS. */
const foundMs = 1_000;
/** Events that arrive within this time after one another were delayed by the same cause. */
const rushMs = 100;
/**
 * After this time without a fault the proxy treats a backend as ready. A backend that failed often becomes ready again
 * only after 16 s (backend.ts).
 */
const wellMs = 20_000;
/**
 * Time until the proxy detects a stalled cache, which at first looks like a quiet one: its peers' caches must have been
 * ahead of it for 10 s (F5).
 */
const staleMs = 10_000;

const ownReasons = ["its own timeout", "slow reader"];

export type EndParts = {
  readonly findings: Findings;
  readonly apiservers: readonly SimulatedApiserver[];
  readonly attempts: Attempts;
  readonly truth: Truth;
  /** True if an end without a reason is a violation. False: it is only counted. */
  readonly isStrict: boolean;
  /**
   * True if the only fault is a simultaneous silence of all backends. Then no watch may end unless its client wants it
   * (D14).
   */
  readonly isCarried: boolean;
};

export class EndJudge {
  readonly #parts: EndParts;
  readonly #reach: Reach;
  /** For each watch, the version that its client had before the present batch of late events. */
  readonly #shown = new WeakMap<WatchCall, { readonly at: number; readonly version: number }>();

  constructor(parts: EndParts) {
    this.#parts = parts;
    this.#reach = new Reach(parts.apiservers, () => parts.findings.world.now());
  }

  /** Checks the delay of an event. A late event is a violation if some backend could have delivered it in time. */
  judgeDelay(call: WatchCall, version: number): void {
    const { findings, truth, apiservers, isStrict } = this.#parts;
    const now = findings.world.now();
    const writtenAt = truth.timeOf(version);
    const delayMs = now - writtenAt;
    if (delayMs < 1_000 || call.liveSince < 0 || call.liveSince > writtenAt || call.stalledUntil >= writtenAt)
      return;
    const seconds = Math.floor(delayMs / 1_000);
    findings.delays.set(seconds, (findings.delays.get(seconds) ?? 0) + 1);
    const attempts = this.#parts.attempts.of(call.auditId);
    // Another backend was tried meanwhile and refused the watch: a fresh backend does not know the requested version.
    const wasRefused = attempts.some(({ at, code }) => code >= 400 && at >= writtenAt - budgetMs);
    const wasAlone = wasRefused || this.#reach.unservedAt >= writtenAt - freshMs;
    const isStale = apiservers.some(({ behindUntil }) => behindUntil >= writtenAt);
    // Two faults may overlap: one backend has forgotten the version, and the others are down or not yet detected as
    // ready.
    const from = this.#shownBefore(call);
    const { resource } = call.order.interest;
    const isSure = this.#reach.isServedSince(resource, from, writtenAt - freshMs);
    // The backend that knows the version was unreachable, so the event had to wait for its return.
    const again = this.#reach.reachableAgain(resource, from);
    const waitMs = isSure ? 0 : Math.max(freshMs, again - writtenAt);
    const mostMs = freshMs + (isStale ? staleMs : 0) + waitMs;
    if (isStrict && !wasAlone && delayMs > mostMs)
      findings.wrong(
        "fresh",
        `${call.auditId} was told ${version} ${Math.round(delayMs)} ms after it was written`,
      );
  }

  /**
   * Returns the version that the client had before this batch. Events that waited for the same backend arrive in one
   * batch.
   */
  #shownBefore(call: WatchCall): number {
    const at = this.#parts.findings.world.now();
    const last = this.#shown.get(call);
    const isSameRush = last !== undefined && at - last.at < rushMs;
    const version = isSameRush ? last.version : call.follower.wholeVersion;
    this.#shown.set(call, { at, version });
    return version;
  }

  /** Called when a fault of this backend begins or ends. */
  look(backend: SimulatedApiserver): void {
    this.#reach.look(backend);
  }

  judge(call: WatchCall, end: WatchEnd): void {
    const { findings, isStrict } = this.#parts;
    const reason = this.#reasonOf(call, end);
    findings.count(`end: ${reason}`);
    findings.tell(() => `${call.auditId} ended: ${reason}`);
    this.#judgeDeadline(call);
    if (!isStrict) return;
    if (this.#parts.isCarried && !ownReasons.includes(reason))
      findings.wrong("carried", `${call.auditId} ended (${JSON.stringify(end)}): ${reason}`);
    if (reason.startsWith("no reason"))
      findings.wrong("ends", `${call.auditId} ended (${JSON.stringify(end)}) for ${reason}`);
    const ageMs = findings.world.now() - call.countedSince;
    if (end.kind === "end" && call.events === 0 && ageMs < veryShortMs)
      findings.wrong("ends", `${call.auditId} ended without events after ${Math.round(ageMs)} ms`);
  }

  /** Checks a watch, open or ended, against the timeout that its client requested. */
  #judgeDeadline({
    deadline = Number.POSITIVE_INFINITY,
    auditId,
    openedAt,
    answeredAt,
    isAnswered,
  }: WatchCall): void {
    const { findings } = this.#parts;
    const isCalm = this.#reach.befellAt < findings.world.now() - calmMs;
    // The server's timeout runs from its response, and a watch from the most recent version may wait for etcd before
    // that.
    const late = findings.world.now() - deadline - (answeredAt - openedAt);
    if (!isAnswered) return;
    if (late > (isCalm ? calmLateMs : lateMs))
      findings.wrong("deadline", `${auditId} was over ${Math.round(late)} ms after its deadline`);
  }

  #reasonOf(call: WatchCall, end: WatchEnd): string {
    const { world } = this.#parts.findings;
    const now = world.now();
    const hasMoved = this.#parts.attempts.of(call.auditId).length > 1;
    if (end.kind === "error" && hasMoved && call.events > 0)
      return `no reason: another backend's ERROR ${end.code}`;
    if (end.kind === "error") return this.#reasonOfError(call, end.code);
    if (end.kind === "refused") return `refused ${end.status}`;
    if (call.deadline !== undefined && now >= call.deadline - earlyMs) return "its own timeout";
    if (end.kind === "lost") return "no reason: connection lost";
    if (end.kind === "reset") return `no reason: reset ${end.code}`;
    return this.#reasonOfEnd(call, now);
  }

  /** A 410 is correct only if no healthy backend knows the version. */
  #reasonOfError(call: WatchCall, code: number): string {
    const { beginning } = call.order;
    const isUntrue = code === 410 && beginning.from === "version" && this.#isKnown(call, beginning.version);
    return isUntrue ? "no reason: a 410 although another backend knows its version" : `error ${code}`;
  }

  #isKnown({ order }: WatchCall, version: number): boolean {
    const since = this.#parts.findings.world.now() - wellMs;
    return this.#reach.isServedSince(order.interest.resource, version, since);
  }

  #reasonOfEnd(call: WatchCall, now: number): string {
    const { follower, order, stalledUntil } = call;
    if (follower.phase !== "live") return follower.phase;
    if (stalledUntil >= now) return "slow reader";
    // The first version of `events` may have several events, and nothing shows whether this watch got all of them
    // (watch.md §5.3).
    if (order.interest.resource === "events" && follower.isFirstVersionOpen) return "first version open";
    return this.#reasonOfMove(call, now);
  }

  /** Returns why a live watch ended although it could have been resumed: the result of the attempts to move it. */
  #reasonOfMove(call: WatchCall, now: number): string {
    const attempts = this.#parts.attempts
      .of(call.auditId)
      .slice(1)
      .filter(({ isRenewal }) => !isRenewal);
    const refusals = attempts.filter(({ at, code }) => code >= 400 && at >= now - budgetMs);
    const [first] = refusals;
    // A watch of `events` resumes at the version before its last one (watch.md §5.3). Etcd may have forgotten that
    // version.
    const isExact = call.order.interest.resource !== "events";
    // watch.md §5.1: after an unexplained early end the proxy resumes the watch once, and a second time only after
    // progress.
    const early = this.#parts.attempts
      .of(call.auditId)
      .filter(({ code, hasEnded, isRenewal }) => code === 200 && hasEnded && !isRenewal);
    if (early.length > 1) return "ended early twice";
    // 401 and 403 are final even after other refusals: every backend would return them.
    const denial = refusals.find(({ code }) => code === 401 || code === 403);
    if (denial !== undefined) return `refused elsewhere: ${denial.code}`;
    if (first?.code === 410 && isExact && this.#isKnown(call, call.follower.version))
      return "no reason: a 410 elsewhere although another backend knows its version";
    if (first !== undefined && !this.#couldGoElsewhere(call, refusals))
      return `refused elsewhere: ${first.code}`;
    if (attempts.filter(({ at }) => at >= now - flappingMs).length >= mostAttempts) return "moved too often";
    if (this.#reach.unservedAt >= now - budgetMs) return "no backend to serve it";
    // The proxy does not try a backend that is known to have forgotten the version, so there may be no refusal.
    const { interest } = call.order;
    const version = isExact ? call.follower.version : call.follower.wholeVersion;
    if (!this.#parts.apiservers.some((one) => one.knows(interest.resource, version)))
      return "its version is forgotten";
    if (this.#reach.isHiddenSince(interest.resource, version, now - budgetMs, now - foundMs))
      return "no reachable backend knows its version";
    return `no reason: end after ${attempts.length} moves`;
  }

  /**
   * True if the watch could have moved to another backend. One refusal is no reason to end while an untried backend
   * would accept the watch.
   */
  #couldGoElsewhere({ follower, order }: WatchCall, refusals: readonly Attempt[]): boolean {
    if (refusals.length > 1) return false;
    // A resume of `events` requests a version before the last one that the client has, and etcd may have forgotten
    // exactly that.
    const version = refusals[0]?.version ?? follower.version;
    const since = this.#parts.findings.world.now() - freshMs;
    // A backend that was dead and has just come back may not be known to the proxy yet, so it does not count.
    return this.#parts.apiservers.some(
      (apiserver) =>
        apiserver.name !== refusals[0]?.backend &&
        apiserver.serves(order.interest.resource, version) &&
        !this.#reach.isBackSince(apiserver, since),
    );
  }
}
