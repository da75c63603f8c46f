/**
 * Computes the responses to probes and scrapes in the main thread, for the probe thread (probe-thread.ts), which
 * receives the requests.
 */
import type { Clock } from "../../../base/clock.ts";
import type { Entry, Journal } from "../../../events/journal.ts";
import { adminLimits } from "../http/limits.ts";
import { complaintOf, type Readiness } from "./probes.ts";

export type ProbeName = "livez" | "readyz";

/** A check as a response shows it: without the reason, which goes only to the journal. */
export type Check = Pick<Readiness, "name" | "ok">;

export type ProbeChecks = Readonly<Record<ProbeName, readonly Check[]>>;

/** The source of all responses on the port of metrics and probes. */
export type ProbeSource = {
  checks(probe: ProbeName): Promise<readonly Check[]>;
  /** Resolves with the text of all metrics; rejects if the text cannot be made. */
  scrape(): Promise<string>;
};

export type AnswersParts = {
  readonly journal: Journal;
  readonly clock: Clock;
  /** Returns the checks of /livez. They fail only if a restart would help, so dead backends do not make them fail. */
  readonly live: () => readonly Readiness[];
  /** Returns the checks of /readyz. A check fails if new clients should connect to another watchkeeper instance. */
  readonly ready: () => readonly Readiness[];
  readonly metrics: () => Promise<string>;
};

/** Kinds of journal entries that report a change of `ReadinessFacts`, after which a probe may have another result. */
const changingKinds: ReadonlySet<Entry["kind"]> = new Set<Entry["kind"]>([
  "backend.added",
  "backend.changed",
  "backend.removed",
  "cluster.added",
  "cluster.removed",
  "drain.started",
  "listener.lost",
  "listener.opened",
  "worker.lost",
  "worker.ready",
]);

export class Answers implements ProbeSource {
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

  standing(): ProbeChecks {
    return { livez: this.#look("livez").checks, readyz: this.#look("readyz").checks };
  }

  /** Calls `hear` whenever the checks of a probe have changed. Returns a function that unsubscribes. */
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
      if (isDue || !changingKinds.has(kind)) return;
      isDue = true;
      // `look` runs in the next turn of the event loop, because the change that the entry reports may still be
      // incomplete.
      clock.soon(look);
    });
  }

  /** Returns all metrics. Scrapes within a second share one text, because producing it takes milliseconds. */
  scrape(): Promise<string> {
    const { clock, metrics } = this.#parts;
    if (this.#scrape === undefined || clock.now() - this.#scrapedAt >= adminLimits.scrapeReuseMs) {
      this.#scrapedAt = clock.now();
      this.#scrape = metrics();
    }
    return this.#scrape;
  }

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
