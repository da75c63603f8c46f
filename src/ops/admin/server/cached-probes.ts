/**
 * Answers probes, usually in the probe thread (probe-thread.ts). If the main thread's event loop answers too late,
 * returns the last known result, because a busy loop is no reason to restart the process. If the main thread has not
 * answered for `standstillMs`, the check "loop" fails.
 */
import type { Clock } from "../../../base/clock.ts";
import type { Journal } from "../../../events/journal.ts";
import { adminLimits } from "../http/limits.ts";
import type { Check, ProbeChecks, ProbeName, ProbeSource } from "./answers.ts";

export type CachedProbesParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** The main thread, which answers when its event loop is free. */
  readonly loop: ProbeSource;
  /** The checks that are returned until the main thread has answered for the first time. */
  readonly first: ProbeChecks;
};

export class CachedProbes implements ProbeSource {
  readonly #parts: CachedProbesParts;
  readonly #known: Record<ProbeName, readonly Check[]>;
  /** Unanswered questions to the main thread. Several probes may wait for the same answer. */
  readonly #asked = new Map<ProbeName | "metrics", { readonly at: number; readonly answer: Promise<void> }>();
  #scraped = "";
  #isHung = false;

  constructor(parts: CachedProbesParts) {
    this.#parts = parts;
    this.#known = { ...parts.first };
  }

  /** Stores the results of a probe's checks, which the main thread sends whenever they change. */
  learn(probe: ProbeName, checks: readonly Check[]): void {
    this.#known[probe] = checks;
  }

  /**
   * Returns a probe's checks. Sends a question to the main thread, unless one about this probe is already unanswered.
   * If no answer arrives within `probePatienceMs` after the question was sent, returns the last known checks.
   */
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
    // Without this handler, a rejection after the caller's timeout would be unhandled, and would end the process.
    answer.catch(() => {});
    return answer;
  }

  async #within(ms: number, answer: Promise<void>): Promise<boolean> {
    const { clock } = this.#parts;
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    // Waits for one more turn of the event loop. After a pause of the process, Node runs due timers before it reads
    // messages, and one of these messages may be the answer.
    const cancel = clock.after(ms, () => clock.soon(() => resolve(false)));
    try {
      return await Promise.race([answer.then(() => true), late]);
    } finally {
      cancel();
    }
  }

  /** True if the main thread's event loop answers. Unanswered scrapes do not count, because they may take longer. */
  #judge(): boolean {
    const { clock, journal } = this.#parts;
    const now = clock.now();
    const since = Math.min(this.#asked.get("livez")?.at ?? now, this.#asked.get("readyz")?.at ?? now);
    const unansweredMs = now - since;
    const isHung = unansweredMs >= adminLimits.standstillMs;
    if (isHung !== this.#isHung) {
      const complaint = isHung ? `loop: no answer for ${Math.round(unansweredMs)} ms` : "";
      journal.write({ kind: "probe.changed", probe: "loop", complaint });
    }
    this.#isHung = isHung;
    return !isHung;
  }
}
