/** What the journal tells, counted: things too rare to need a counter of their own on the path. */
import type { Entry, Journal } from "../../events/journal.ts";
import { Series } from "./series.ts";

export class Tally {
  readonly transitions = new Series();
  readonly laneCloses = new Series();
  readonly exchangeFailures = new Series();
  readonly certificateLoads = new Series();
  readonly configReloads = new Series();
  readonly faults = new Series();
  readonly cacheStalls = new Series();
  readonly watchLoops = new Series();
  readonly passthroughEnds = new Series();
  readonly passthroughRefusals = new Series();

  constructor(journal: Journal) {
    journal.subscribe((entry) => {
      this.#count(entry);
      this.#countWatches(entry);
      this.#countPassthrough(entry);
    });
  }

  #count(entry: Entry): void {
    const { kind } = entry;
    if (kind === "backend.changed") this.transitions.add([entry.backend, entry.from, entry.to], 1);
    else if (kind === "upstream_connection.closed") this.laneCloses.add([entry.backend], 1);
    else if (kind === "request.failed") this.exchangeFailures.add([entry.code, entry.origin], 1);
    else if (kind === "certificate.loaded") this.certificateLoads.add([entry.name, "ok"], 1);
    else if (kind === "certificate.refused") this.certificateLoads.add([entry.name, "rejected"], 1);
    else if (kind === "config.reloaded") this.configReloads.add(["ok"], 1);
    else if (kind === "config.refused") this.configReloads.add(["rejected"], 1);
    else if (kind === "internal.error") this.faults.add([entry.scope], 1);
  }

  #countPassthrough(entry: Entry): void {
    const { kind } = entry;
    if (kind === "passthrough.ended") this.passthroughEnds.add([entry.backend, entry.reason], 1);
    else if (kind === "passthrough.refused") this.passthroughRefusals.add([entry.code, entry.origin], 1);
  }

  #countWatches(entry: Entry): void {
    const { kind } = entry;
    if (kind === "cache.stalled") this.cacheStalls.add([entry.backend, entry.detector], 1);
    else if (kind === "watch.replay_loop") this.watchLoops.add([entry.resource], 1);
  }
}
