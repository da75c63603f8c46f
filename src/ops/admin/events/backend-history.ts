/** Keeps the latest state changes of each backend, as the journal reports them. */
import type { Entry, EntryOf, Journal } from "../../../events/journal.ts";
import { adminLimits } from "../http/limits.ts";

type Changed = EntryOf<"backend.changed">;

export type Change = Omit<Changed, "kind" | "backend"> & { readonly at: number };

export class BackendHistory {
  readonly #changes = new Map<string, readonly Change[]>();

  constructor(journal: Journal) {
    journal.subscribe((entry, at) => this.#take(entry, at));
  }

  /** Returns the state changes of a backend, oldest first. */
  of(backend: string): readonly Change[] {
    return this.#changes.get(backend) ?? [];
  }

  #take(entry: Entry, at: number): void {
    if (entry.kind === "backend.removed") this.#changes.delete(entry.backend);
    if (entry.kind !== "backend.changed") return;
    const { kind: _, backend, ...change } = entry;
    this.#changes.set(backend, [...this.of(backend), { at, ...change }].slice(-adminLimits.backendHistory));
  }
}
