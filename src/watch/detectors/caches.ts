/**
 * Finds backends whose caches stand still although they answer (F5): nothing that is asked of one of them tells, but
 * what its peers show does. Its watches of that resource go elsewhere, and nobody new is sent there for it. Hears too of
 * caches that have forgotten more than was known.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { Looks } from "../../base/looks.ts";
import { inSlices, stop } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import type { Moves } from "../migration/moves.ts";
import type { Doubt, Standings } from "../progress/stale.ts";
import { isStalled, type Standing } from "../progress/standing.ts";
import type { Watching } from "../session/watching.ts";
import type { Renewals } from "./renewals.ts";

export type CachesParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly standings: Standings;
  readonly moves: Moves;
  readonly renewals: Pick<Renewals, "forgotten">;
};

export class Caches {
  readonly #parts: CachesParts;
  readonly #looks: Looks;
  /** Those whose watches are being asked. */
  readonly #asked = new Set<Standing>();

  constructor(parts: CachesParts) {
    this.#parts = parts;
    this.#looks = new Looks(parts.clock, limits.standingsMs, () => this.#look());
  }

  start(): void {
    this.#looks.start();
  }

  stop(): void {
    this.#looks.stop();
  }

  #look(): void {
    const { standings, journal, clock, renewals } = this.#parts;
    const now = clock.now();
    for (const standing of standings.forgetful()) renewals.forgotten(standing);
    for (const { backend, resource, version } of standings.recovered())
      journal.write({ kind: "cache.recovered", backend, resource, version });
    // Of those that are known already nothing more is to be found out.
    const doubts = standings.judge(now).filter(({ standing }) => !isStalled(standing, now));
    const told = doubts.filter(({ isTold }) => isTold);
    for (const doubt of told) this.#convict(doubt, "bookmark");
    this.#ask(doubts.filter((doubt) => !doubt.isTold && mayBeShown(doubt)));
  }

  /** Is there a watch that would have shown it? */
  #ask(doubts: readonly Doubt[]): void {
    const { clock, moves } = this.#parts;
    for (const doubt of doubts) {
      const { standing } = doubt;
      if (this.#asked.has(standing)) continue;
      this.#asked.add(standing);
      const testify = ({ legs }: Watching): unknown => {
        if (!legs.testifies(doubt)) return undefined;
        if (!isStalled(standing, clock.now())) this.#convict(doubt, "watch");
        return stop;
      };
      inSlices(clock, moves.watchings.of(standing.resource), testify, () => this.#asked.delete(standing));
    }
  }

  #convict(doubt: Doubt, detector: "bookmark" | "watch"): void {
    const { standings, journal, clock, moves } = this.#parts;
    const { standing, version, behindMs } = doubt;
    standings.convict(doubt, clock.now());
    const { backend, resource, version: shown, watches } = standing;
    journal.write({
      kind: "cache.stalled",
      backend,
      resource,
      version: shown,
      peersVersion: version,
      behindMs: Math.round(behindMs),
      detector,
      watches,
    });
    inSlices(clock, moves.watchings.of(resource), (watching) => {
      if (watching.legs.first?.standing === standing) moves.flee(watching);
    });
  }
}

/** Can any watch tell by now? */
function mayBeShown({ standing, behindMs, hasBookmarks }: Doubt): boolean {
  return standing.wholeWatches > 0 || (hasBookmarks && behindMs >= limits.caughtUpMs);
}
