/**
 * Answers probes from a thread of its own for an event loop that may be busy. Passes on the loop's answer if it comes in
 * time, else the last known one: a busy loop is no reason to restart the process. If a question stays unanswered for too
 * long, the loop counts as stuck, and the check "loop" fails.
 */
import type { Clock } from "../../base/clock.ts";
import type { Journal } from "../../events/journal.ts";
import { adminLimits } from "../http/limits.ts";
import type { Asker, Check, ProbeName, Standing } from "./answers.ts";

export type CachedProbesParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Answers when the event loop turns. */
  readonly loop: Asker;
  /** The answers before the first one of the loop. */
  readonly first: Standing;
};

export class CachedProbes implements Asker {
  readonly #parts: CachedProbesParts;
  readonly #known: Record<ProbeName, readonly Check[]>;
  /** Questions in flight. Each is sent once for any number of probes: a loop that wakes up finds three at most. */
  readonly #asked = new Map<ProbeName | "metrics", { readonly at: number; readonly answer: Promise<void> }>();
  #scraped = "";
  #isStill = false;

  constructor(parts: CachedProbesParts) {
    this.#parts = parts;
    this.#known = { ...parts.first };
  }

  /** Stores an answer that the loop sent unasked. */
  learn(probe: ProbeName, checks: readonly Check[]): void {
    this.#known[probe] = checks;
  }

  /** Returns the known answer at once if an earlier probe has already waited in vain. */
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
    // A caller that has timed out ignores a rejection.
    answer.catch(() => {});
    return answer;
  }

  /** True if the answer came in time. Rejects if the answer does. */
  async #within(ms: number, answer: Promise<void>): Promise<boolean> {
    const { clock } = this.#parts;
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    // Messages are read before the timeout counts: after a pause of the whole process, due timers run before its messages.
    const cancel = clock.after(ms, () => clock.soon(() => resolve(false)));
    try {
      return await Promise.race([answer.then(() => true), late]);
    } finally {
      cancel();
    }
  }

  /**
   * True if the event loop turns. Judged by probes only, because metrics may take longer. A change is journaled; the entry
   * reaches the journal once the loop turns again.
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
