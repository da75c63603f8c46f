/** What the port of metrics and probes asks of the data path's thread, and its answers. */
import type { Clock } from "../../base/clock.ts";
import type { Entry, Journal } from "../../events/journal.ts";
import { adminLimits } from "../http/limits.ts";
import { complaintOf, type Readiness } from "./probes.ts";

export type ProbeName = "livez" | "readyz";

/** A check as a probe's response shows it: without the reason, which goes to the journal. */
export type Check = Pick<Readiness, "name" | "ok">;

/** The current answers of both probes. */
export type Standing = Readonly<Record<ProbeName, readonly Check[]>>;

export type Asker = {
  checks(probe: ProbeName): Promise<readonly Check[]>;
  /** Resolves with the metrics' text; rejects if it cannot be made. */
  scrape(): Promise<string>;
};

export type AnswersParts = {
  readonly journal: Journal;
  readonly clock: Clock;
  /** Checks that fail only if a restart would help. Dead backends do not count: the proxy exists to bridge them. */
  readonly live: () => readonly Readiness[];
  /** Checks whether new clients may be sent here. */
  readonly ready: () => readonly Readiness[];
  readonly metrics: () => Promise<string>;
};

/** The kinds of entry after which a probe's answer may change. They cover every input of readinessOf (probes.ts). */
const turns: ReadonlySet<Entry["kind"]> = new Set<Entry["kind"]>([
  "backend.added",
  "backend.changed",
  "backend.removed",
  "cluster.added",
  "cluster.removed",
  "drain.started",
  "listener.lost",
  "listener.opened",
]);

export class Answers implements Asker {
  readonly #parts: AnswersParts;
  readonly #complaints = new Map<ProbeName, string>();
  #scrape: Promise<string> | undefined;
  #scrapedAt = 0;

  constructor(parts: AnswersParts) {
    this.#parts = parts;
  }

  checks(probe: ProbeName): Promise<readonly Check[]> {
    return Promise.resolve(this.#look(probe).checks);
  }

  standing(): Standing {
    return { livez: this.#look("livez").checks, readyz: this.#look("readyz").checks };
  }

  /** Calls `hear` after the current turn whenever a probe's checks change. Returns a function that stops it. */
  onChange(hear: (probe: ProbeName, checks: readonly Check[]) => void): () => void {
    const { clock, journal } = this.#parts;
    let isDue = false;
    const look = (): void => {
      isDue = false;
      for (const probe of ["livez", "readyz"] as const) {
        const { checks, isNew } = this.#look(probe);
        if (isNew) hear(probe, checks);
      }
    };
    return journal.subscribe(({ kind }) => {
      if (isDue || !turns.has(kind)) return;
      isDue = true;
      // In the next turn: the change that the entry reports may not be complete yet.
      clock.soon(look);
    });
  }

  /** Concurrent scrapes share one text: it takes milliseconds of the data path's thread to make. */
  scrape(): Promise<string> {
    const { clock, metrics } = this.#parts;
    if (this.#scrape === undefined || clock.now() - this.#scrapedAt >= adminLimits.scrapeReuseMs) {
      this.#scrapedAt = clock.now();
      this.#scrape = metrics();
    }
    return this.#scrape;
  }

  /** Journals when a probe begins to fail, with the reason, and when it recovers. */
  #look(probe: ProbeName): { readonly checks: readonly Check[]; readonly isNew: boolean } {
    const { journal, live, ready } = this.#parts;
    const now = probe === "livez" ? live() : ready();
    const complaint = complaintOf(now);
    const isNew = complaint !== (this.#complaints.get(probe) ?? "");
    this.#complaints.set(probe, complaint);
    if (isNew) journal.write({ kind: "probe.changed", probe, complaint });
    return { checks: now.map(({ name, ok }) => ({ name, ok })), isNew };
  }
}
