/** The set of backends: collects evidence, derives each backend's state, and journals each change with its reason. */
import type { Clock } from "../base/clock.ts";
import { detectionBounds, Histogram } from "../base/histogram.ts";
import type { Journal } from "../events/journal.ts";
import {
  areAllSilent,
  type BackendFacts,
  type BackendState,
  type BackendView,
  type ConnectionState,
  isMute,
  isOvertaken,
  isSilentlyDead,
  judge,
  needsAnother,
  noFacts,
  type Rules,
  seenWith,
  verdictOf,
} from "./backend.ts";
import { connectionsAfter } from "./connection-states.ts";
import type { Evidence, Fresh } from "./evidence.ts";
import { reasonOf } from "./reason.ts";

export type BackendsParts = {
  readonly clock: Clock;
  /** A clock that stops while the proxy's event loop is stalled; default: `clock`. */
  readonly stallAwareClock?: Pick<Clock, "now">;
  readonly journal: Journal;
  readonly rules?: Rules;
  /** Milliseconds for which open requests are kept while no backend answers (D14); default: 0. */
  readonly deadAfterWhenAllSilentMs?: number;
  readonly onVerdict?: (view: BackendView) => void;
  /** Called when `needsAnother` changes. True: requests that wait for the backend should go to another one. */
  readonly onNeed?: (name: string, needsAnother: boolean) => void;
  /** Called when a backend answers after all backends had been silent. */
  readonly onAnswer?: () => void;
  /** Called after each piece of evidence, with the facts that result from it. */
  readonly onFacts?: ((name: string, facts: BackendFacts, evidence: Evidence) => void) | undefined;
  /**
   * Set if another process judges the backends. `report` must send all evidence to that process, and the resulting
   * facts must be passed to `adopt`. Default: this process judges.
   */
  readonly report?: ((name: string, evidence: Evidence) => void) | undefined;
};

/**
 * The rules without probes: a backend can be dead although no new socket has failed, and becomes ready as soon as it
 * answers.
 */
export const unprobed: Rules = { rise: 0, needsProof: false };

type Known = {
  facts: BackendFacts;
  /**
   * `verdict`: the facts from the process that judges the backends. `own`: the state of this process's own connections.
   * Both are unused if this process judges.
   */
  verdict: BackendFacts;
  own: ConnectionState;
  view: BackendView;
  /** Reading (ms) of `stallAwareClock` at which the present state began. */
  since: number;
  /** Milliseconds that the backend was suspect in total, before its present state. */
  suspectMs: number;
  /**
   * Clock reading (ms) of the last sign of life before the backend failed; undefined while the backend is ready, and
   * once it was found dead.
   */
  lostAt: number | undefined;
  /**
   * The latest result of a new socket that is in the journal, such as an answer or silence; undefined while the backend
   * is healthy.
   */
  met: string | undefined;
};

export class Backends {
  readonly #parts: BackendsParts;
  readonly #clock: Clock;
  readonly #stallAwareClock: Pick<Clock, "now">;
  readonly #rules: Rules;
  #known: ReadonlyMap<string, Known> = new Map();
  #views: readonly BackendView[] = [];
  readonly #watchers = new Set<{ readonly name: string; readonly run: () => void }>();
  /** Reading (ms) of `stallAwareClock` since which no backend has answered; undefined while one answers. */
  #silentSince: number | undefined;
  #silenceOverAt = 0;
  /**
   * Detection times of failures, in seconds: from the last sign of life of a ready backend until the proxy found the
   * backend suspect, and until it found the backend dead.
   */
  readonly detections = { suspect: new Histogram(detectionBounds), dead: new Histogram(detectionBounds) };
  /** Milliseconds for which open requests are kept while no backend answers (D14). */
  deadAfterWhenAllSilentMs: number;

  constructor(names: readonly string[], parts: BackendsParts) {
    const { clock, stallAwareClock = clock, rules = unprobed } = parts;
    this.#parts = parts;
    this.#clock = clock;
    this.#stallAwareClock = stallAwareClock;
    this.#rules = rules;
    this.deadAfterWhenAllSilentMs = parts.deadAfterWhenAllSilentMs ?? 0;
    this.reconcile(names);
  }

  get views(): readonly BackendView[] {
    return this.#views;
  }

  factsOf(name: string): BackendFacts {
    return this.#known.get(name)?.facts ?? noFacts;
  }

  stateOf(name: string): BackendState | undefined {
    return this.#known.get(name)?.view.state;
  }

  /** Clock reading (ms) at which the latest silence of all backends ended, because one of them answered; 0: never. */
  get silenceOverAt(): number {
    return this.#silenceOverAt;
  }

  /** True for a limited time while no backend answers. Open requests are then kept, and new requests wait (D14). */
  get areAllSilent(): boolean {
    return this.#silentSince !== undefined && this.#stallAwareClock.now() < this.silentUntil;
  }

  /** Reading (ms) of `stallAwareClock` at which `areAllSilent` ends at the latest; 0 while a backend answers. */
  get silentUntil(): number {
    return this.#silentSince === undefined ? 0 : this.#silentSince + this.deadAfterWhenAllSilentMs;
  }

  /** Returns for how many milliseconds the backend has been in its state, without the time of event-loop stalls. */
  stateMs(name: string): number {
    const now = this.#stallAwareClock.now();
    return now - (this.#known.get(name)?.since ?? now);
  }

  suspectMs(name: string): number {
    const known = this.#known.get(name);
    if (known === undefined) return 0;
    const { view, suspectMs } = known;
    return suspectMs + (view.state === "suspect" ? this.#clock.now() - view.since : 0);
  }

  /** Replaces the set of backends. A backend that is in both sets keeps its facts; a new one starts as unknown. */
  reconcile(names: readonly string[]): void {
    const { journal } = this.#parts;
    const before = this.#known;
    for (const name of before.keys())
      if (!names.includes(name)) journal.write({ kind: "backend.removed", backend: name });
    this.#known = new Map(names.map((name) => [name, before.get(name) ?? this.#unknown(name)]));
    for (const name of names) if (!before.has(name)) journal.write({ kind: "backend.added", backend: name });
    this.#seeViews();
    this.#seeSilence();
  }

  #unknown(name: string): Known {
    const view: BackendView = { name, state: "unknown", since: this.#clock.now() };
    return {
      facts: noFacts,
      verdict: noFacts,
      own: "none",
      view,
      since: this.#stallAwareClock.now(),
      suspectMs: 0,
      lostAt: undefined,
      met: undefined,
    };
  }

  learn(name: string, evidence: Evidence): void {
    const known = this.#known.get(name);
    if (known === undefined) return;
    const { report, onFacts } = this.#parts;
    if (report !== undefined) {
      known.own = connectionsAfter(known.own, evidence);
      report(name, evidence);
      this.#take(known, seenWith(known.verdict, known.own), evidence);
      return;
    }
    this.#take(known, judge(known.facts, evidence, this.#clock.now(), this.#rules), evidence);
    onFacts?.(name, known.facts, evidence);
    if (!this.#views.some(({ state }) => state === "ready")) this.#raiseOne();
  }

  /**
   * Adopts the facts from the process that judges the backends. The connections of this process can only make these
   * facts worse, and only within this process.
   */
  adopt(name: string, verdict: BackendFacts, evidence: Evidence): void {
    const known = this.#known.get(name);
    if (known === undefined) return;
    known.verdict = verdict;
    this.#take(known, seenWith(verdict, known.own), evidence);
  }

  /**
   * Records that this process has closed its connections to the backend on its own initiative, not because of the
   * backend.
   */
  unconnected(name: string): void {
    const known = this.#known.get(name);
    if (known !== undefined) known.own = "none";
  }

  #take(known: Known, facts: BackendFacts, evidence: Evidence): void {
    const before = known.facts;
    known.facts = facts;
    this.#seeSilence();
    if (evidence.kind === "fresh" && !isOvertaken(before, evidence)) this.#journalProbe(known, evidence);
    this.#seeChanges(known, before, evidence);
    if (isSilentlyDead(facts) && !this.areAllSilent) this.#notifyLost(known.view.name);
  }

  /**
   * Calls `run` once when the backend is dead and ignores new sockets. From that moment, connections on which
   * the proxy cannot send PINGs (exec, passthrough) are lost. Returns a function that cancels the call.
   */
  onLost(name: string, run: () => void): () => void {
    const watcher = { name, run };
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #seeSilence(): void {
    const wereSilent = this.#silentSince !== undefined;
    const areSilent = areAllSilent(Array.from(this.#known.values(), ({ facts }) => facts));
    if (areSilent) this.#silentSince ??= this.#stallAwareClock.now();
    else this.#silentSince = undefined;
    if (!wereSilent || areSilent) return;
    this.#silenceOverAt = this.#clock.now();
    this.#parts.onAnswer?.();
  }

  /**
   * Journals the result of a new socket to the backend (an answer, a refusal or silence) if it differs from the result
   * that was journaled last. Must run before `#seeChanges`, so that this entry precedes the change of state in the
   * journal.
   */
  #journalProbe(known: Known, evidence: Fresh): void {
    const { met, ms, reason } = evidence;
    const { name } = known.view;
    const reached = reachedBy(evidence, known.met);
    const word = `${met} ${reached}`;
    if (known.met === word) return;
    const isNews = met !== "answer" || known.met !== undefined;
    if (met === "answer" && known.facts.state === "ready") known.met = undefined;
    else if (isNews) known.met = word;
    if (isNews)
      this.#parts.journal.write({
        kind: "backend.probed",
        backend: name,
        met,
        reached,
        ms: Math.round(ms),
        reason,
      });
  }

  #seeChanges(known: Known, before: BackendFacts, evidence: Evidence): void {
    const { facts, view } = known;
    if (facts.state !== before.state) this.#changed(known, evidence);
    if (isMute(facts) !== isMute(before)) this.#setView(known, { isMute: isMute(facts) });
    if (needsAnother(facts) !== needsAnother(before)) this.#parts.onNeed?.(view.name, needsAnother(facts));
  }

  #changed(known: Known, evidence: Evidence): void {
    const { state } = known.facts;
    const { name, state: from } = known.view;
    known.suspectMs = this.suspectMs(name);
    known.since = this.#stallAwareClock.now();
    this.#setView(known, { state, since: this.#clock.now() });
    const reason = reasonOf(evidence);
    this.#detected(known, from, reason.valueMs);
    this.#parts.journal.write({ kind: "backend.changed", backend: name, from, to: state, ...reason });
    this.#parts.onVerdict?.(known.view);
  }

  /** Measures how long a backend had been silent when it became suspect or dead. `silentMs`: silence so far, in ms. */
  #detected(known: Known, from: BackendState, silentMs: number): void {
    // If another process judges the backends, that process also measures the detection time, once for all processes.
    if (this.#parts.report !== undefined) return;
    const { state } = known.facts;
    const now = this.#clock.now();
    if (from === "ready") known.lostAt = now - silentMs;
    if (state !== "suspect" && state !== "dead") known.lostAt = undefined;
    else if (known.lostAt !== undefined && (state === "dead" || from === "ready"))
      this.detections[state].observe((now - known.lostAt) / 1000);
    if (state === "dead") known.lostAt = undefined;
  }

  #setView(known: Known, changed: Partial<BackendView>): void {
    known.view = { ...known.view, ...changed };
    this.#seeViews();
  }

  #seeViews(): void {
    this.#views = Array.from(this.#known.values(), ({ view }) => view);
  }

  /** Makes a recovering backend ready at once, because no other backend is ready. */
  #raiseOne(): void {
    const name = this.#views.find(
      (view) => view.state === "suspect" && verdictOf(this.factsOf(view.name)) === "ready",
    )?.name;
    if (name !== undefined) this.learn(name, { kind: "alone" });
  }

  #notifyLost(name: string): void {
    for (const watcher of Array.from(this.#watchers)) {
      if (watcher.name !== name) continue;
      this.#watchers.delete(watcher);
      watcher.run();
    }
  }
}

/**
 * Returns the last step that succeeded on a new socket: the TCP handshake, the TLS handshake, or none (""). `before`:
 * the result of the last probe, used if `hasConnected` is not known.
 */
function reachedBy({ met, hasConnected }: Fresh, before: string | undefined): "" | "tcp" | "tls" {
  if (met === "answer" || met === "untrusted") return "tls";
  const isTcp = hasConnected ?? (met === "silence" && before === "silence tcp");
  return isTcp ? "tcp" : "";
}
