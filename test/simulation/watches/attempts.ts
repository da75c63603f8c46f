/**
 * Records every request that reaches a backend under its audit id, which the proxy keeps (watch.md §8). Checks that a
 * moved watch still is the request of its client, and that no write arrives twice.
 */

import type { Answer, Ask } from "../../../demo/apiserver/ask.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import type { Findings } from "./findings.ts";
import type { WatchCall } from "./watch-call.ts";

/** The query parameters that a resume changes. It changes no others (watch.md §5.2). */
const moving = new Set([
  "resourceVersion",
  "resourceVersionMatch",
  "sendInitialEvents",
  "limit",
  "continue",
  "timeoutSeconds",
  "allowWatchBookmarks",
]);
const toleranceSeconds = 2;
/** The longest time between the decision to request a bookmark and the request. */
const queueMs = 200;
/** An end that a backend sent within this time may not have reached the proxy yet: one or two retransmissions. */
const underWayMs = 500;

export class Attempt {
  readonly backend: string;
  readonly at: number;
  readonly path: string;
  /** The status, or the code of an ERROR event. 0 before the response. */
  code = 0;
  /** True if the status was 200. An ERROR event may still follow. */
  isTaken = false;
  /** True once the backend sent the bookmark that ends the initial events, or an event that can only follow it. */
  isPastState = false;
  endedAt = Number.POSITIVE_INFINITY;
  /**
   * True if the proxy requested a bookmark from the backend that already serves the watch, so the watch did not move.
   */
  isRenewal = false;

  readonly #now: () => number;

  constructor(backend: string, path: string, now: () => number) {
    this.backend = backend;
    this.path = path;
    this.at = now();
    this.#now = now;
  }

  get hasEnded(): boolean {
    return this.endedAt < Number.POSITIVE_INFINITY;
  }

  /** The version after which this request continues. Undefined if it requests the initial events. */
  get version(): number | undefined {
    const asked = /[?&]resourceVersion=(\d+)/.exec(this.path)?.[1];
    return asked === undefined || asked === "0" ? undefined : Number(asked);
  }

  /** Returns `answer` wrapped, so that this attempt records what the backend sends. */
  noting(answer: Answer): Answer {
    // Without initial events, every event comes after them.
    const proof = this.path.includes("sendInitialEvents=false")
      ? /BOOKMARK|ADDED|MODIFIED|DELETED/
      : /BOOKMARK|MODIFIED|DELETED/;
    const said = (bytes: Buffer): void => {
      if (this.isPastState) return;
      const text = bytes.toString("latin1", 0, Math.min(bytes.length, 2_000));
      if (proof.test(text)) this.isPastState = true;
      else if (text.includes("ERROR")) this.code = Number(/"code":(\d+)/.exec(text)?.[1] ?? 410);
    };
    return {
      head: (status, fields) => {
        this.code = status;
        this.isTaken = status === 200;
        answer.head(status, fields);
      },
      write: (bytes) => {
        said(bytes);
        answer.write(bytes);
      },
      end: () => {
        this.endedAt = this.#now();
        answer.end();
      },
      queued: () => answer.queued(),
      onGone: (run) => answer.onGone(run),
    };
  }
}

export class Attempts {
  readonly #findings: Findings;
  readonly #calls: ReadonlyMap<string, WatchCall>;
  readonly #all = new Map<string, Attempt[]>();
  /** Number of all attempts of all clients. */
  count = 0;

  constructor(findings: Findings, calls: ReadonlyMap<string, WatchCall>) {
    this.#findings = findings;
    this.#calls = calls;
  }

  /** Forgets the requests whose first attempt is older than `ms`. None of them may be open any more. */
  forget(ms: number): void {
    const until = this.#findings.world.now() - ms;
    for (const [auditId, [first]] of this.#all) {
      if (first !== undefined && first.at >= until) return;
      this.#all.delete(auditId);
    }
  }

  of(auditId: string): readonly Attempt[] {
    return this.#all.get(auditId) ?? [];
  }

  /** Records a request and checks it. `isLate`: the request was sent long ago, so it is not checked as a move. */
  begin(backend: string, ask: Ask, isLate: boolean): Attempt {
    const auditId = fieldOf(ask, "audit-id");
    const earlier = this.of(auditId);
    this.count += 1;
    const attempt = new Attempt(backend, ask.path, () => this.#findings.world.now());
    this.#findings.tell(() => `${backend} is asked ${auditId} ${ask.method} ${ask.path}`);
    const call = this.#calls.get(auditId);
    if (call !== undefined && isList(ask.path)) return this.#list(call, ask, attempt);
    this.#all.set(auditId, [...earlier, attempt]);
    this.#judge(auditId, ask, earlier);
    if (call !== undefined) this.#judgeWatch(call, ask);
    if (call !== undefined && !isLate && ask.path !== call.path) this.#judgeMove(call, ask, attempt, earlier);
    return attempt;
  }

  #judge(auditId: string, ask: Ask, earlier: readonly Attempt[]): void {
    const owner = auditId.slice(0, auditId.lastIndexOf("."));
    if (fieldOf(ask, "authorization") !== `Bearer ${owner}`)
      this.#findings.wrong("identity", `${auditId} was asked with ${fieldOf(ask, "authorization")}`);
    const isWrite = ask.method !== "GET" && ask.method !== "HEAD";
    // A write that was refused before its execution may be sent to another backend. Any other write may have been
    // executed.
    if (isWrite && earlier.some(({ code }) => code < 400))
      this.#findings.wrong("once", `${auditId} ${ask.method} was sent ${earlier.length + 1} times`);
  }

  /**
   * A list that the proxy itself sends to learn the current version. It must have the client's credentials and select
   * the same objects. It is not part of the watch.
   */
  #list(call: WatchCall, ask: Ask, attempt: Attempt): Attempt {
    this.#judge(call.auditId, ask, []);
    this.#findings.count("lists for progress");
    const [asked, watched] = [ask.path, call.path].map((path) =>
      fixedPart(path).replace(/[?&](watch=true)?$/, ""),
    );
    if (asked !== watched) this.#wrong(call, ask, "another question");
    return attempt;
  }

  #judgeWatch(call: WatchCall, ask: Ask): void {
    if (fieldOf(ask, "accept") !== call.accept) this.#wrong(call, ask, "another form");
    if (fixedPart(ask.path) !== fixedPart(call.path)) this.#wrong(call, ask, "another question");
  }

  /** The request differs from the client's, so it must be a valid move of the client's watch. */
  #judgeMove(call: WatchCall, ask: Ask, attempt: Attempt, earlier: readonly Attempt[]): void {
    const wrong = (what: string): void => this.#wrong(call, ask, what);
    const query = new URLSearchParams(ask.path.slice(ask.path.indexOf("?")));
    const leftMs = (call.deadline ?? Number.POSITIVE_INFINITY) - attempt.at;
    // A watch with less time left than a bookmark refresh takes is never refreshed. With about that time left, the
    // request is a refresh only while the earlier stream is open.
    const isShort = leftMs < watchLimits.bookmarkRefreshMs - queueMs;
    // If the remaining time equals that of a refresh, a request after the stream's end is a resume.
    const isAlike = Math.ceil(leftMs / 1_000) * 1_000 === watchLimits.bookmarkRefreshMs;
    const since = isAlike ? attempt.at : attempt.at - underWayMs;
    const open =
      leftMs > 2 * watchLimits.bookmarkRefreshMs ? earlier : earlier.filter(({ endedAt }) => endedAt > since);
    attempt.isRenewal = !isShort && isRenewal(attempt, query, open);
    if (attempt.isRenewal) this.#findings.count("refreshes");
    else this.#judgeTime(call, query, wrong);
    const isReplay =
      query.get("resourceVersion") === new URLSearchParams(call.path.split("?")[1]).get("resourceVersion");
    // The client's original request with the remaining time: the client has received nothing of the response yet.
    if (isReplay && call.follower.version === 0) return;
    if (!attempt.isRenewal) this.#findings.count("moves");
    if (query.has("sendInitialEvents") || query.has("resourceVersionMatch")) wrong("the state again");
    if (!/^[1-9]\d*$/.test(query.get("resourceVersion") ?? "")) wrong("no version to go on from");
    const isPast = call.follower.phase === "live" || earlier.some(({ isPastState }) => isPastState);
    if (!isPast) wrong("moved before its state was whole");
  }

  #wrong(call: WatchCall, ask: Ask, what: string): void {
    const form = fieldOf(ask, "accept");
    this.#findings.wrong("identity", `${call.auditId} was asked as ${ask.path} (${form}): ${what}`);
  }

  #judgeTime(call: WatchCall, query: URLSearchParams, wrong: (what: string) => void): void {
    // The timeout has not begun before the response, so the client's request is repeated unchanged (watch.md §5.1).
    if (call.deadline === undefined || !call.isAnswered) return;
    const left = (call.deadline - this.#findings.world.now()) / 1_000;
    const asked = Number(query.get("timeoutSeconds") ?? "0");
    const isRight =
      asked > 0 && asked <= Math.max(1, left) + toleranceSeconds && asked >= left - toleranceSeconds;
    if (!isRight) wrong(`${left.toFixed(1)} s are left of its time`);
  }
}

function isList(path: string): boolean {
  return path.includes("limit=1") && !path.includes("watch=true");
}

/**
 * True if the request goes to the backend that already serves the watch, asks for bookmarks, and has the timeout of a
 * bookmark refresh. The end of the earlier stream may still be in flight.
 */
function isRenewal({ backend }: Attempt, query: URLSearchParams, earlier: readonly Attempt[]): boolean {
  const isServed = earlier.some((one) => one.backend === backend && one.isTaken);
  const hasBookmarks = query.get("allowWatchBookmarks") === "true";
  return (
    isServed && hasBookmarks && query.get("timeoutSeconds") === String(watchLimits.bookmarkRefreshMs / 1_000)
  );
}

function fixedPart(path: string): string {
  const [plain = "", query = ""] = path.split("?");
  const kept = query.split("&").filter((pair) => !moving.has(pair.split("=")[0] ?? ""));
  return `${plain}?${kept.join("&")}`;
}

function fieldOf(ask: Ask, name: string): string {
  return ask.fields.find(([key]) => key === name)?.[1] ?? "";
}
