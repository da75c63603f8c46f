/** What the port of metrics and probes asks the proxy, and the proxy's answers. */
import type { Clock } from "../../base/clock.ts";
import type { Entry, Journal } from "../../events/journal.ts";
import { adminLimits } from "../http/limits.ts";
import { complaintOf, type Readiness } from "./probes.ts";

export type ProbeName = "livez" | "readyz";

/** A check as whoever asks is told of it: the reason is the journal's. */
export type Check = Pick<Readiness, "name" | "ok">;

/** What both probes answer now. */
export type Standing = Readonly<Record<ProbeName, readonly Check[]>>;

export type Asker = {
  checks(probe: ProbeName): Promise<readonly Check[]>;
  /** The metrics' text; rejects when it cannot be made. */
  scrape(): Promise<string>;
};

export type AnswersParts = {
  readonly journal: Journal;
  readonly clock: Clock;
  /** Whether a restart would not help. Dead backends are no reason for one: they are why the proxy is there. */
  readonly live: () => readonly Readiness[];
  /** Whether new clients may be sent here. */
  readonly ready: () => readonly Readiness[];
  readonly metrics: () => Promise<string>;
};

/** After which a probe may answer something else: all that readinessOf (probes.ts) looks at. */
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

  /** Calls `hear` when a probe begins to fail, or fails otherwise, or is well again, once this turn is over; until it is undone. */
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
      // Whoever tells it may be about to do it.
      clock.soon(look);
    });
  }

  /** The same text for all who ask at nearly the same time: making it takes milliseconds of the path's own thread. */
  scrape(): Promise<string> {
    const { clock, metrics } = this.#parts;
    if (this.#scrape === undefined || clock.now() - this.#scrapedAt >= adminLimits.scrapeReuseMs) {
      this.#scrapedAt = clock.now();
      this.#scrape = metrics();
    }
    return this.#scrape;
  }

  /** The journal is told when it begins to fail, why, and when it is well again. */
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
