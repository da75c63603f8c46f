/**
 * The journal folded into incidents: entries and clock readings in, incidents out, no I/O. Who calls it sees to it that
 * `tick` is called when `dueAt` has come.
 */
import type { Entry } from "../journal.ts";
import { BackendFold } from "./backend-fold.ts";
import { endingIn, type Found, findingIn } from "./findings.ts";
import { addAffected } from "./incident.ts";
import { incidentKinds } from "./kinds.ts";
import { OutdatedAnswers } from "./outdated.ts";
import type { IncidentStore } from "./store.ts";

export class Fold {
  readonly #store: IncidentStore;
  readonly #backends: BackendFold;
  readonly #outdated = new OutdatedAnswers();

  constructor(store: IncidentStore) {
    this.#store = store;
    this.#backends = new BackendFold(store);
  }

  take(entry: Entry, at: number): void {
    this.#backends.take(entry, at);
    if (entry.kind === "answer.outdated") this.#found(this.#outdated.take(entry, at), at);
    else this.#found(findingIn(entry, at), at);
    const ending = endingIn(entry);
    if (ending !== undefined) this.#store.end(ending.kind, ending.subject, ending.ending, at);
  }

  /** Infinity: nothing is to be done before the next entry. */
  get dueAt(): number {
    let { dueAt } = this.#backends;
    for (const { kind, lastSeenAt } of this.#store.active) {
      const { calmMs } = incidentKinds[kind];
      if (calmMs > 0) dueAt = Math.min(dueAt, lastSeenAt + calmMs);
    }
    return dueAt;
  }

  tick(at: number): void {
    this.#backends.tick(at);
    this.#store.calm(at);
  }

  #found(found: Found | undefined, at: number): void {
    if (found === undefined) return;
    const incident = this.#store.found(found, at);
    if (incident !== undefined && found.affected !== undefined && found.affected !== "")
      addAffected(incident.affected, found.affected);
  }
}
