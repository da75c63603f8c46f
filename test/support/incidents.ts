/** An event journal that the test writes to, and the incidents that result. */

import type { Met } from "../../src/base/failure.ts";
import { type Entry, type EntryOf, Journal } from "../../src/events/journal.ts";
import type { Incident } from "../../src/ops/incidents/incident.ts";
import { Incidents } from "../../src/ops/incidents/incidents.ts";
import { type ManualClock, manualClock } from "./clock.ts";

export class PlayedJournal {
  readonly clock: ManualClock = manualClock();
  readonly journal = new Journal(this.clock);
  readonly incidents = new Incidents(this.clock, this.journal);
  /** The openings and endings of incidents in the order of the journal: "+ backend-dead a", "- backend-dead a". */
  readonly told: string[] = [];

  constructor() {
    this.journal.subscribe((entry) => {
      if (entry.kind === "incident.opened") this.told.push(`+ ${entry.incident} ${entry.subject}`.trim());
      if (entry.kind === "incident.ended") this.told.push(`- ${entry.incident} ${entry.subject}`.trim());
    });
  }

  write(...entries: readonly Entry[]): void {
    for (const entry of entries) this.journal.write(entry);
  }

  get active(): readonly Incident[] {
    return this.incidents.store.active;
  }

  get only(): Incident {
    const [first] = this.active;
    if (first === undefined) throw new Error("There is no incident");
    return first;
  }
}

export function changed(
  backend: string,
  from: string,
  to: string,
  more: Partial<EntryOf<"backend.changed">> = {},
): Entry {
  return {
    kind: "backend.changed",
    backend,
    from,
    to,
    detector: "ping",
    valueMs: 600,
    limitMs: 500,
    reason: "PING unanswered for 600 ms",
    ...more,
  };
}

export function met(backend: string, what: Met, reached: "" | "tcp" | "tls" = ""): Entry {
  return { kind: "backend.probed", backend, met: what, reached, ms: 1000, reason: "as played" };
}
