/**
 * Asks a loop that may be busy, from a thread that is not. What the loop says in time is passed on; else what it said
 * last, for a busy loop is no reason to restart a process. One that has left a question unanswered for too long stands
 * still, and that is: the check "loop" fails.
 */
import type { Clock } from "../clock.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import type { Asker, Check, ProbeName } from "./answers.ts";

export type PatientParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Answers when the loop turns. */
  readonly loop: Asker;
  /** What is known before the first answer. */
  readonly first: Readonly<Record<ProbeName, readonly Check[]>>;
};

export class Patient implements Asker {
  readonly #parts: PatientParts;
  readonly #known: Record<ProbeName, readonly Check[]>;
  /** Questions under way: each is put once, however many ask, so that a loop that wakes up finds three at most. */
  readonly #asked = new Map<string, { readonly at: number; readonly answer: Promise<void> }>();
  #scraped = "";
  #isStill = false;

  constructor(parts: PatientParts) {
    this.#parts = parts;
    this.#known = { ...parts.first };
  }

  async checks(probe: ProbeName): Promise<readonly Check[]> {
    const { loop } = this.#parts;
    const answer = this.#once(probe, async () => {
      this.#known[probe] = await loop.checks(probe);
    });
    await this.#within(limits.probePatienceMs, answer);
    return [...this.#known[probe], { name: "loop", ok: this.#judge() }];
  }

  async scrape(): Promise<string> {
    const { loop } = this.#parts;
    const answer = this.#once("metrics", async () => {
      this.#scraped = await loop.scrape();
    });
    if (await this.#within(limits.adminRequestMs, answer)) return this.#scraped;
    throw new Error(`The loop has not answered within ${limits.adminRequestMs} ms`);
  }

  #once(question: string, ask: () => Promise<void>): Promise<void> {
    const under = this.#asked.get(question);
    if (under !== undefined) return under.answer;
    const answer = ask().finally(() => this.#asked.delete(question));
    this.#asked.set(question, { at: this.#parts.clock.now(), answer });
    // Whoever waits no longer does not hear of a refusal.
    answer.catch(() => {});
    return answer;
  }

  /** Was it answered in time? Rejects as the answer does. */
  async #within(ms: number, answer: Promise<void>): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    const cancel = this.#parts.clock.after(ms, () => resolve(false));
    try {
      return await Promise.race([answer.then(() => true), late]);
    } finally {
      cancel();
    }
  }

  /** Does the loop turn? The journal is told when that changes; what is told reaches it once the loop turns again. */
  #judge(): boolean {
    const { clock, journal } = this.#parts;
    const since = Math.min(...Array.from(this.#asked.values(), ({ at }) => at));
    const stoodMs = clock.now() - since;
    const isStill = stoodMs >= limits.standstillMs;
    if (isStill !== this.#isStill) {
      const complaint = isStill ? `loop: no answer for ${Math.round(stoodMs)} ms` : "";
      journal.write({ kind: "probe.changed", probe: "loop", complaint });
    }
    this.#isStill = isStill;
    return !isStill;
  }
}
