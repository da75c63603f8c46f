/**
 * May this watch end? watch.md §5.1 names the reasons; whatever has none of them is an end that its client should
 * never have seen.
 */
import type { SimulatedApiserver } from "./apiserver.ts";
import type { Attempt, Attempts } from "./attempts.ts";
import type { Findings } from "./findings.ts";
import { Reach } from "./reach.ts";
import type { Truth } from "./truth.ts";
import type { WatchCall, WatchEnd } from "./watch-call.ts";

/** A move may take so long before it is given up, and so many tries (watch.md §5.2). */
const budgetMs = 15_000;
const flappingMs = 60_000;
const mostAttempts = 3;
/** The server's own end comes this long before what its client reckons. */
const earlyMs = 2_500;
/** How late a deadline may be kept: a move in its last moment takes a second more, and a hole its detection (5 s and a tick). */
const lateMs = 6_500;
/** While nothing was wrong for some time: a retransmission or two, and a server's rounding to seconds. */
const calmLateMs = 1_500;
const calmMs = 15_000;
/** client-go lists again after a watch without events that ended sooner (watch.md §7). */
const veryShortMs = 1_000;
/**
 * An upstream connection is dead after 2 s of silence, or after 5 s while its backend answers elsewhere (upstreamLimits.connectionPatienceMs); then
 * come a move, a round trip or two, and perhaps a retransmission.
 */
const freshMs = 6_000;
/** A probe every 250 ms, TCP and TLS. */
const foundMs = 1_000;
/** Events that come so soon one after another were held up together. */
const rushMs = 100;
/** A backend that has been well for so long is known to be: a backend that fell often is believed again after 16 s (backend.ts). */
const wellMs = 20_000;
/** A cache that stands still is told from a quiet one by its peers' progress, 10 s later (F5). */
const staleMs = 10_000;

const ownReasons = ["its own timeout", "slow reader"];

export type EndParts = {
  readonly findings: Findings;
  readonly apiservers: readonly SimulatedApiserver[];
  readonly attempts: Attempts;
  readonly truth: Truth;
  /** True if ends without a reason are violations, and not only counted. */
  readonly isStrict: boolean;
  /** True if the only fault is a silence of all backends. Then no watch ends but for its client (D14). */
  readonly isCarried: boolean;
};

export class EndJudge {
  readonly #parts: EndParts;
  readonly #reach: Reach;
  /** What each watch had been shown before those events that it is shown at once. */
  readonly #shown = new WeakMap<WatchCall, { readonly at: number; readonly version: number }>();

  constructor(parts: EndParts) {
    this.#parts = parts;
    this.#reach = new Reach(parts.apiservers, () => parts.findings.world.now());
  }

  /** Judges an event that came: it is a violation if it was late although some backend could have delivered it. */
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
    // Some backend was asked meanwhile and refused: a fresh backend does not know the version that is needed.
    const wasRefused = attempts.some(({ at, code }) => code >= 400 && at >= writtenAt - budgetMs);
    const wasAlone = wasRefused || this.#reach.unservedAt >= writtenAt - freshMs;
    const isStale = apiservers.some(({ behindUntil }) => behindUntil >= writtenAt);
    // Two faults at once: one forgot the version, the others had to be found dead, or well again.
    const from = this.#shownBefore(call);
    const { resource } = call.order.interest;
    const isSure = this.#reach.isServedSince(resource, from, writtenAt - freshMs);
    // A backend that knows the version was hidden: it had to come back first.
    const again = this.#reach.reachableAgain(resource, from);
    const waitMs = isSure ? 0 : Math.max(freshMs, again - writtenAt);
    const mostMs = freshMs + (isStale ? staleMs : 0) + waitMs;
    if (isStrict && !wasAlone && delayMs > mostMs)
      findings.wrong(
        "fresh",
        `${call.auditId} was told ${version} ${Math.round(delayMs)} ms after it was written`,
      );
  }

  /** What waited for one backend comes in one rush. */
  #shownBefore(call: WatchCall): number {
    const at = this.#parts.findings.world.now();
    const last = this.#shown.get(call);
    const isSameRush = last !== undefined && at - last.at < rushMs;
    const version = isSameRush ? last.version : call.follower.wholeVersion;
    this.#shown.set(call, { at, version });
    return version;
  }

  /** Something befell this backend, or is over. */
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

  /** A watch that is open or over: its time is its client's to choose. */
  #judgeDeadline({
    deadline = Number.POSITIVE_INFINITY,
    auditId,
    openedAt,
    answeredAt,
    isAnswered,
  }: WatchCall): void {
    const { findings } = this.#parts;
    const isCalm = this.#reach.befellAt < findings.world.now() - calmMs;
    // The server's clock starts when it answers, and a watch from the most recent may wait for etcd.
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

  /** A 410 is true when no well backend knows the version any more. */
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
    // Its first version may be of many events, and what precedes it is unknown (watch.md §5.3).
    if (order.interest.resource === "events" && follower.isFirstVersionOpen) return "first version open";
    return this.#reasonOfMove(call, now);
  }

  /** Why a watch that was live and could have gone on ended: what came of trying. */
  #reasonOfMove(call: WatchCall, now: number): string {
    const attempts = this.#parts.attempts
      .of(call.auditId)
      .slice(1)
      .filter(({ isRenewal }) => !isRenewal);
    const refusals = attempts.filter(({ at, code }) => code >= 400 && at >= now - budgetMs);
    const [first] = refusals;
    // Of `events` the version before the last one is asked for (watch.md §5.3), which etcd may have forgotten.
    const isExact = call.order.interest.resource !== "events";
    // watch.md §5.1: an unexplained early end is answered by a resume once, and again only if something came.
    const early = this.#parts.attempts
      .of(call.auditId)
      .filter(({ code, hasEnded, isRenewal }) => code === 200 && hasEnded && !isRenewal);
    if (early.length > 1) return "ended early twice";
    // 401 and 403 count whatever was said before them: every backend would return them.
    const denial = refusals.find(({ code }) => code === 401 || code === 403);
    if (denial !== undefined) return `refused elsewhere: ${denial.code}`;
    if (first?.code === 410 && isExact && this.#isKnown(call, call.follower.version))
      return "no reason: a 410 elsewhere although another backend knows its version";
    if (first !== undefined && !this.#couldGoElsewhere(call, refusals))
      return `refused elsewhere: ${first.code}`;
    if (attempts.filter(({ at }) => at >= now - flappingMs).length >= mostAttempts) return "moved too often";
    if (this.#reach.unservedAt >= now - budgetMs) return "no backend to serve it";
    // A backend that has refused the version before need not be asked again.
    const { interest } = call.order;
    const version = isExact ? call.follower.version : call.follower.wholeVersion;
    if (!this.#parts.apiservers.some((one) => one.knows(interest.resource, version)))
      return "its version is forgotten";
    if (this.#reach.isHiddenSince(interest.resource, version, now - budgetMs, now - foundMs))
      return "no reachable backend knows its version";
    return `no reason: end after ${attempts.length} moves`;
  }

  /** One backend's refusal is no reason while another, that was not asked, would take it. */
  #couldGoElsewhere({ follower, order }: WatchCall, refusals: readonly Attempt[]): boolean {
    if (refusals.length > 1) return false;
    // Of `events` an older version is asked for than the last that was shown, and etcd may have forgotten just that one.
    const version = refusals[0]?.version ?? follower.version;
    const since = this.#parts.findings.world.now() - freshMs;
    // A backend that was found dead, and has just come back, is not known to be there.
    return this.#parts.apiservers.some(
      (apiserver) =>
        apiserver.name !== refusals[0]?.backend &&
        apiserver.serves(order.interest.resource, version) &&
        !this.#reach.isBackSince(apiserver, since),
    );
  }
}
