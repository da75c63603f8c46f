/** What the port of metrics and probes asks the proxy, and the proxy's answers. */
import type { Clock } from "../clock.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import { complaintOf, type Readiness } from "./probes.ts";

export type ProbeName = "livez" | "readyz";

/** A check as whoever asks is told of it: the reason is the journal's. */
export type Check = Pick<Readiness, "name" | "ok">;

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

export class Answers implements Asker {
  readonly #parts: AnswersParts;
  readonly #complaints = new Map<ProbeName, string>();
  #scrape: Promise<string> | undefined;
  #scrapedAt = 0;

  constructor(parts: AnswersParts) {
    this.#parts = parts;
  }

  /** The journal is told when it begins to fail, why, and when it is well again. */
  checks(probe: ProbeName): Promise<readonly Check[]> {
    const { journal, live, ready } = this.#parts;
    const now = probe === "livez" ? live() : ready();
    const before = this.#complaints.get(probe) ?? "";
    const complaint = complaintOf(now);
    this.#complaints.set(probe, complaint);
    if (complaint !== before) journal.write({ kind: "probe.changed", probe, complaint });
    return Promise.resolve(now.map(({ name, ok }) => ({ name, ok })));
  }

  /** The same text for all who ask at nearly the same time: making it takes milliseconds of the path's own thread. */
  scrape(): Promise<string> {
    const { clock, metrics } = this.#parts;
    if (this.#scrape === undefined || clock.now() - this.#scrapedAt >= limits.scrapeReuseMs) {
      this.#scrapedAt = clock.now();
      this.#scrape = metrics();
    }
    return this.#scrape;
  }
}
