/** The set of backends: takes evidence, keeps one verdict for each, and journals every change with its reason. */
import type { Clock } from "../base/clock.ts";
import { limits } from "../base/limits.ts";
import type { Journal } from "../events/journal.ts";
import {
  areAllSilent,
  type BackendFacts,
  type BackendView,
  isMute,
  isOvertaken,
  isSilentlyDead,
  judge,
  needsAnother,
  noFacts,
  type Rules,
  verdictOf,
} from "./backend.ts";
import type { Evidence } from "./evidence.ts";
import { healthLimits } from "./limits.ts";
import { reasonOf } from "./reason.ts";

export type BackendsParts = {
  readonly clock: Clock;
  /** Stops while our own event loop is stalled; default: `clock`. */
  readonly stallAwareClock?: Pick<Clock, "now">;
  readonly journal: Journal;
  readonly rules?: Rules;
  /** How long existing work is kept while no backend at all answers, in ms (D14); default: 0. */
  readonly deadAfterWhenAllSilentMs?: number;
};

/** Rules without probes: there is no proof of death and no count of good answers. */
export const unprobed: Rules = {
  rise: 0,
  riseMs: limits.riseMs,
  strikeMs: limits.strikeMs,
  hungMs: healthLimits.hungReadsMs,
  forbiddenMs: healthLimits.forbiddenMs,
  needsProof: false,
};

type Fresh = Extract<Evidence, { kind: "fresh" }>;

export class Backends {
  readonly #clock: Clock;
  readonly #stallAwareClock: Pick<Clock, "now">;
  /** Since when each backend has been in its state: readings of `stallAwareClock`. */
  readonly #since = new Map<string, number>();
  readonly #journal: Journal;
  readonly #rules: Rules;
  readonly #watchers = new Set<{ readonly name: string; readonly run: () => void }>();
  readonly #held = new Map<string, BackendFacts>();
  /** For each backend, ms spent suspect, except the present period. */
  readonly #suspectMs = new Map<string, number>();
  /** The last result of a fresh socket to each unhealthy backend. */
  readonly #met = new Map<string, string>();
  readonly #deadAfterWhenAllSilentMs: number;
  /** Since when no backend answers: a reading of `stallAwareClock`. */
  #silentSince: number | undefined;
  #silenceOverAt = 0;
  #views: readonly BackendView[] = [];
  /** Called for every changed verdict. */
  onVerdict: (view: BackendView) => void = () => {};
  /** Called when waiting requests should leave a backend, and when that is over. */
  onNeed: (name: string, needsAnother: boolean) => void = () => {};

  /** Called when one backend answers after all were silent. */
  onAnswer: () => void = () => {};

  constructor(names: readonly string[], parts: BackendsParts) {
    const { clock, stallAwareClock = clock, journal, rules = unprobed, deadAfterWhenAllSilentMs = 0 } = parts;
    this.#deadAfterWhenAllSilentMs = deadAfterWhenAllSilentMs;
    this.#clock = clock;
    this.#stallAwareClock = stallAwareClock;
    this.#journal = journal;
    this.#rules = rules;
    this.reconcile(names);
  }

  get views(): readonly BackendView[] {
    return this.#views;
  }

  /** Returns all facts about a backend; an unconfigured one has none. */
  held(name: string): BackendFacts {
    return this.#held.get(name) ?? noFacts;
  }

  /**
   * True while no backend answers, for at most `deadAfterWhenAllSilentMs`. Existing work is then kept, and requests
   * wait (D14).
   */
  get areAllSilent(): boolean {
    return this.#stallAwareClock.now() < this.silentUntil;
  }

  /** The latest end of that period: a reading of `stallAwareClock`; 0 while a backend answers. */
  get silentUntil(): number {
    return this.#silentSince === undefined ? 0 : this.#silentSince + this.#deadAfterWhenAllSilentMs;
  }

  /** When a backend last answered after all were silent: a clock reading; 0 if never. */
  get silenceOverAt(): number {
    return this.#silenceOverAt;
  }

  /** How long it has been in its state, in ms, without time in which our own loop was stalled. */
  stateMs(name: string): number {
    const now = this.#stallAwareClock.now();
    return now - (this.#since.get(name) ?? now);
  }

  /** How long it has been suspect since it was configured, in ms. */
  suspectMs(name: string): number {
    const view = this.#views.find((one) => one.name === name);
    const nowMs = view?.state === "suspect" ? this.#clock.now() - view.since : 0;
    return (this.#suspectMs.get(name) ?? 0) + nowMs;
  }

  /** Keeps the facts of backends that stay; new ones start as unknown. */
  reconcile(names: readonly string[]): void {
    const known = new Map(this.#views.map((view) => [view.name, view]));
    const since = this.#clock.now();
    for (const name of this.#held.keys()) if (!names.includes(name)) this.#forget(name);
    for (const name of names) if (!this.#held.has(name)) this.#add(name);
    this.#views = names.map((name) => known.get(name) ?? { name, state: "unknown", since });
    this.#seeSilence();
  }

  learn(name: string, evidence: Evidence): void {
    const before = this.#held.get(name);
    if (before === undefined) return;
    const held = judge(before, evidence, this.#clock.now(), this.#rules);
    this.#held.set(name, held);
    this.#seeSilence();
    if (evidence.kind === "fresh" && !isOvertaken(before, evidence)) this.#tellMet(name, held, evidence);
    if (held.state !== before.state) this.#changed(name, evidence);
    if (isMute(held) !== isMute(before)) this.#setView(name, { isMute: isMute(held) });
    if (needsAnother(held) !== needsAnother(before)) this.onNeed(name, needsAnother(held));
    if (isSilentlyDead(held) && !this.areAllSilent) this.#tellLost(name);
    if (!this.#views.some(({ state }) => state === "ready")) this.#raiseSomeone();
  }

  /**
   * Calls `run` once when the backend is dead and new sockets get no answer; returns a function that cancels it. For
   * work without PINGs.
   */
  onLost(name: string, run: () => void): () => void {
    const watcher = { name, run };
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #seeSilence(): void {
    const wereSilent = this.#silentSince !== undefined;
    const areSilent = areAllSilent(Array.from(this.#held.values()));
    if (areSilent) this.#silentSince ??= this.#stallAwareClock.now();
    else this.#silentSince = undefined;
    if (!wereSilent || areSilent) return;
    this.#silenceOverAt = this.#clock.now();
    this.onAnswer();
  }

  #add(name: string): void {
    this.#held.set(name, noFacts);
    this.#since.set(name, this.#stallAwareClock.now());
    this.#journal.write({ kind: "backend.added", backend: name });
  }

  #forget(name: string): void {
    this.#held.delete(name);
    this.#suspectMs.delete(name);
    this.#since.delete(name);
    this.#met.delete(name);
    this.#journal.write({ kind: "backend.removed", backend: name });
  }

  /** Journals how a fresh socket failed, when that changes and before the verdict that follows from it. */
  #tellMet(name: string, { state }: BackendFacts, evidence: Fresh): void {
    const { met, ms, reason } = evidence;
    const reached = reachedBy(evidence, this.#met.get(name));
    const word = `${met} ${reached}`;
    if (this.#met.get(name) === word) return;
    // An answer is news only after a failure.
    const isNews = met !== "answer" || this.#met.has(name);
    if (met === "answer" && state === "ready") this.#met.delete(name);
    else if (isNews) this.#met.set(name, word);
    if (isNews)
      this.#journal.write({
        kind: "backend.probed",
        backend: name,
        met,
        reached,
        ms: Math.round(ms),
        reason,
      });
  }

  #changed(name: string, evidence: Evidence): void {
    const { state, connections } = this.held(name);
    const isOfPackets = connections === "answering" && this.#met.get(name) === "silence tcp";
    const from = this.#views.find((view) => view.name === name)?.state ?? "unknown";
    this.#suspectMs.set(name, this.suspectMs(name));
    const after = { name, state, since: this.#clock.now() };
    this.#since.set(name, this.#stallAwareClock.now());
    this.#setView(name, after);
    this.#journal.write({
      kind: "backend.changed",
      backend: name,
      from,
      to: state,
      ...reasonOf(evidence, isOfPackets),
    });
    this.onVerdict(after);
  }

  #setView(name: string, changed: Partial<BackendView>): void {
    this.#views = this.#views.map((view) => (view.name === name ? { ...view, ...changed } : view));
  }

  /** Makes one of the answering backends that wait for more good answers ready at once. */
  #raiseSomeone(): void {
    const [name] = this.#views
      .map((view) => view.name)
      .filter((one) => this.held(one).state === "suspect" && verdictOf(this.held(one)) === "ready");
    if (name !== undefined) this.learn(name, { kind: "alone" });
  }

  #tellLost(name: string): void {
    for (const watcher of Array.from(this.#watchers)) {
      if (watcher.name !== name) continue;
      this.#watchers.delete(watcher);
      watcher.run();
    }
  }
}

/**
 * How far a fresh socket got. An upstream connection's unanswered dial does not know, so the previous probe's result
 * stays.
 */
function reachedBy({ met, hasConnected }: Fresh, before: string | undefined): "" | "tcp" | "tls" {
  if (met === "answer" || met === "untrusted") return "tls";
  const isTcp = hasConnected ?? (met === "silence" && before === "silence tcp");
  return isTcp ? "tcp" : "";
}
