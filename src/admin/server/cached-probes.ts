/**
 * Asks a loop that may be busy, from a thread that is not. What the loop says in time is passed on; else what it said
 * last, for a busy loop is no reason to restart a process. One that has left a question unanswered for too long stands
 * still, and that is: the check "loop" fails.
 */
import type { Clock } from "../../base/clock.ts";
import type { Journal } from "../../events/journal.ts";
import { adminLimits } from "../http/limits.ts";
import type { Asker, Check, ProbeName, Standing } from "./answers.ts";

export type CachedProbesParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Answers when the loop turns. */
  readonly loop: Asker;
  /** What is known before the first answer. */
  readonly first: Standing;
};

export class CachedProbes implements Asker {
  readonly #parts: CachedProbesParts;
  readonly #known: Record<ProbeName, readonly Check[]>;
  /** Questions under way: each is put once, however many ask, so that a loop that wakes up finds three at most. */
  readonly #asked = new Map<ProbeName | "metrics", { readonly at: number; readonly answer: Promise<void> }>();
  #scraped = "";
  #isStill = false;

  constructor(parts: CachedProbesParts) {
    this.#parts = parts;
    this.#known = { ...parts.first };
  }

  /** The loop has said so unasked. */
  learn(probe: ProbeName, checks: readonly Check[]): void {
    this.#known[probe] = checks;
  }

  /** Nobody is kept waiting for a loop that has already kept somebody waiting. */
  async checks(probe: ProbeName): Promise<readonly Check[]> {
    const { clock, loop } = this.#parts;
    const answer = this.#once(probe, async () => {
      this.learn(probe, await loop.checks(probe));
    });
    const waitedMs = clock.now() - (this.#asked.get(probe)?.at ?? clock.now());
    if (waitedMs < adminLimits.probePatienceMs)
      await this.#within(adminLimits.probePatienceMs - waitedMs, answer);
    return [...this.#known[probe], { name: "loop", ok: this.#judge() }];
  }

  async scrape(): Promise<string> {
    const { loop } = this.#parts;
    const answer = this.#once("metrics", async () => {
      this.#scraped = await loop.scrape();
    });
    if (await this.#within(adminLimits.adminRequestMs, answer)) return this.#scraped;
    throw new Error(`The loop has not answered within ${adminLimits.adminRequestMs} ms`);
  }

  #once(question: ProbeName | "metrics", ask: () => Promise<void>): Promise<void> {
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
    const { clock } = this.#parts;
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    // What has come meanwhile is read first: a whole process that was paused finds its timers due before its letters.
    const cancel = clock.after(ms, () => clock.soon(() => resolve(false)));
    try {
      return await Promise.race([answer.then(() => true), late]);
    } finally {
      cancel();
    }
  }

  /**
   * Does the loop turn? Only probes tell: metrics may take their time. The journal is told when that changes; what is told
   * reaches it once the loop turns again.
   */
  #judge(): boolean {
    const { clock, journal } = this.#parts;
    const now = clock.now();
    const since = Math.min(this.#asked.get("livez")?.at ?? now, this.#asked.get("readyz")?.at ?? now);
    const stoodMs = now - since;
    const isStill = stoodMs >= adminLimits.standstillMs;
    if (isStill !== this.#isStill) {
      const complaint = isStill ? `loop: no answer for ${Math.round(stoodMs)} ms` : "";
      journal.write({ kind: "probe.changed", probe: "loop", complaint });
    }
    this.#isStill = isStill;
    return !isStill;
  }
}
