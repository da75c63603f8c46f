/** The set of backends: takes evidence, keeps one verdict for each, journals every change with its reason. */
import type { Clock } from "../base/clock.ts";
import { limits } from "../base/limits.ts";
import type { Journal } from "../events/journal.ts";
import {
  areAllSilent,
  type BackendFacts,
  type BackendView,
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
  /** Stands still while our own loop does; default: `clock`. */
  readonly stallAwareClock?: Pick<Clock, "now">;
  readonly journal: Journal;
  readonly rules?: Rules;
  /** For how long nothing that lives is ended while no backend at all answers, in ms (D14); default: 0. */
  readonly deadAfterWhenAllSilentMs?: number;
};

/** Without probes nobody proves anything, and nobody would count the good answers. */
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
  /** Since when each has been in its state: readings of `patience`. */
  readonly #since = new Map<string, number>();
  readonly #journal: Journal;
  readonly #rules: Rules;
  readonly #watchers = new Set<{ readonly name: string; readonly run: () => void }>();
  readonly #held = new Map<string, BackendFacts>();
  /** For each backend, ms that it has been suspect in all, but for the present time. */
  readonly #suspectMs = new Map<string, number>();
  /** What fresh sockets to those that are ill met last. */
  readonly #met = new Map<string, string>();
  readonly #deadAfterWhenAllSilentMs: number;
  /** Since when no backend answers: a reading of `patience`. */
  #silentSince: number | undefined;
  #silenceOverAt = 0;
  #views: readonly BackendView[] = [];
  /** Hears every verdict that differs from the one before. */
  onVerdict: (view: BackendView) => void = () => {};
  /** Hears when what waits for a backend had better ask elsewhere, and when it need not any more. */
  onNeed: (name: string, needsAnother: boolean) => void = () => {};

  /** Runs when one backend answers after all were silent. */
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

  /** All that is known of one; nothing is of those that are not configured. */
  held(name: string): BackendFacts {
    return this.#held.get(name) ?? noFacts;
  }

  /** Has no backend answered for less than `deadAfterWhenAllSilentMs`? Then what lives is kept, and requests wait (D14). */
  get areAllSilent(): boolean {
    return this.#stallAwareClock.now() < this.silentUntil;
  }

  /** Until when that is so at the latest: a reading of `patience`; 0 while a backend answers. */
  get silentUntil(): number {
    return this.#silentSince === undefined ? 0 : this.#silentSince + this.#deadAfterWhenAllSilentMs;
  }

  /** When a backend last answered after all were silent: a clock reading; 0 if that never happened. */
  get silenceOverAt(): number {
    return this.#silenceOverAt;
  }

  /** For how long it has been in its state, but for time in which our own loop stood still, in ms. */
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

  /** Keeps what is known of those that stay; newcomers are unknown. */
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
    if (needsAnother(held) !== needsAnother(before)) this.onNeed(name, needsAnother(held));
    if (isSilentlyDead(held) && !this.areAllSilent) this.#tellLost(name);
    if (!this.#views.some(({ state }) => state === "ready")) this.#raiseSomeone();
  }

  /** Calls once when the backend is dead and new sockets meet silence; returns its undoing. What has no PING asks here. */
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

  /** What every fresh socket met says how a backend is ill: told when it changes, before the verdict that follows. */
  #tellMet(name: string, { state }: BackendFacts, evidence: Fresh): void {
    const { met, ms, reason } = evidence;
    const reached = reachedBy(evidence, this.#met.get(name));
    const word = `${met} ${reached}`;
    if (this.#met.get(name) === word) return;
    // Of one that is well and answers nothing is to be told, but that it answers again.
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
    this.#views = this.#views.map((view) => (view.name === name ? after : view));
    this.#journal.write({
      kind: "backend.changed",
      backend: name,
      from,
      to: state,
      ...reasonOf(evidence, isOfPackets),
    });
    this.onVerdict(after);
  }

  /** Of those that are kept waiting although they answer, one need not wait any longer. */
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

/** How far a fresh socket came. An upstream connection's dial that met silence does not know: what a probe found before holds. */
function reachedBy({ met, hasConnected }: Fresh, before: string | undefined): "" | "tcp" | "tls" {
  if (met === "answer" || met === "untrusted") return "tls";
  const isTcp = hasConnected ?? (met === "silence" && before === "silence tcp");
  return isTcp ? "tcp" : "";
}
