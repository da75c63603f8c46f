/** The set of backends: takes evidence, keeps one verdict for each, journals every change with its reason. */
import type { Clock } from "../clock.ts";
import type { Journal } from "../journal.ts";
import { type BackendState, type BackendView, judge, reasonOf } from "./backend.ts";
import type { Evidence } from "./evidence.ts";

export class Backends {
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #watchers = new Set<{ readonly name: string; readonly run: () => void }>();
  #views: readonly BackendView[];

  constructor(names: readonly string[], parts: { clock: Clock; journal: Journal }) {
    this.#clock = parts.clock;
    this.#journal = parts.journal;
    this.#views = names.map((name) => ({ name, state: "unknown", since: parts.clock.now() }));
  }

  get views(): readonly BackendView[] {
    return this.#views;
  }

  /** Keeps what is known of those that stay; newcomers are unknown. */
  reconcile(names: readonly string[]): void {
    const known = new Map(this.#views.map((view) => [view.name, view]));
    const since = this.#clock.now();
    this.#views = names.map((name) => known.get(name) ?? { name, state: "unknown", since });
  }

  learn(name: string, evidence: Evidence): void {
    const before = this.#views.find((view) => view.name === name);
    if (before === undefined) return;
    const state = judge(before.state, evidence);
    if (state === before.state) return;
    this.#views = this.#views.map((view) =>
      view === before ? { name, state, since: this.#clock.now() } : view,
    );
    this.#journal.write({
      kind: "backend.changed",
      backend: name,
      from: before.state,
      to: state,
      reason: reasonOf(evidence),
    });
    if (isDoubted(state)) this.#tellDoubt(name);
  }

  /** Calls once when the backend is suspected or worse; returns its undoing. What has no PING asks here (D6). */
  onDoubt(name: string, run: () => void): () => void {
    const watcher = { name, run };
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #tellDoubt(name: string): void {
    for (const watcher of Array.from(this.#watchers)) {
      if (watcher.name !== name) continue;
      this.#watchers.delete(watcher);
      watcher.run();
    }
  }
}

/** Its lanes are silent or gone. */
export function isDoubted(state: BackendState): boolean {
  return state === "suspect" || state === "dead";
}
