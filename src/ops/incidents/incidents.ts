/** Reads the journal, keeps the incidents found in it, and writes a journal entry when an incident begins or ends. */
import type { Clock } from "../../base/clock.ts";
import type { Entry, Journal } from "../../events/journal.ts";
import { Fold } from "./fold.ts";
import type { Incident } from "./incident.ts";
import { incidentKinds } from "./kinds.ts";
import { IncidentStore } from "./store.ts";

export class Incidents {
  readonly store: IncidentStore;
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #fold: Fold;
  readonly #unsubscribe: () => void;
  #stopTimer: (() => void) | undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
    this.store = new IncidentStore({
      opened: (incident) => this.#opened(incident),
      ended: (incident) => this.#ended(incident),
    });
    this.#fold = new Fold(this.store);
    this.#unsubscribe = journal.subscribe((entry, at) => this.#take(entry, at));
  }

  stop(): void {
    this.#unsubscribe();
    this.#stopTimer?.();
  }

  #take(entry: Entry, at: number): void {
    // Entries about incidents are ignored, because an incident is never the cause of another incident.
    if (entry.kind === "incident.opened" || entry.kind === "incident.ended") return;
    this.#fold.take(entry, at);
    this.#schedule();
  }

  #schedule(): void {
    const { dueAt } = this.#fold;
    if (dueAt === this.#timerAt) return;
    this.#stopTimer?.();
    this.#timerAt = dueAt;
    if (dueAt === Number.POSITIVE_INFINITY) return;
    this.#stopTimer = this.#clock.after(Math.max(0, dueAt - this.#clock.now()), () => {
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.#fold.tick(this.#clock.now());
      this.#schedule();
    });
  }

  #opened({ id, kind, subject, backend, summary, startedAt, detectedAt }: Incident): void {
    this.#journal.write({
      kind: "incident.opened",
      id,
      incident: kind,
      subject,
      backend,
      severity: incidentKinds[kind].severity,
      summary,
      detectionMs: Math.round(detectedAt - startedAt),
    });
  }

  #ended({ id, kind, subject, backend, startedAt, endedAt, impact, affected, ending }: Incident): void {
    this.#journal.write({
      kind: "incident.ended",
      id,
      incident: kind,
      subject,
      backend,
      lastedMs: Math.round(endedAt - startedAt),
      watchesMoved: impact.watchesMoved,
      clients: affected.count,
      reason: ending,
    });
  }
}
