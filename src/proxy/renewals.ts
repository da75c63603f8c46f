/**
 * Keeps watches young enough for a newcomer. The cache of a backend that comes back begins now (watch.md §5.4): a watch
 * elsewhere to which nothing has been shown since is older than that, and for up to a minute, until its next bookmark,
 * nobody could take it over. So it is asked for once more where it is, for so short a time that a bookmark comes at
 * once (§6.1). The two legs are merged as ever: that moves its version, and nothing else.
 */
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import type { Standing } from "../watch/standing.ts";
import { compareVersions } from "../watch/version.ts";
import type { Exchanges } from "./exchanges.ts";
import type { Moves } from "./moves.ts";
import type { Watching } from "./watching.ts";

export type RenewalsParts = { readonly clock: Clock; readonly exchanges: Exchanges; readonly moves: Moves };

export class Renewals {
  readonly #parts: RenewalsParts;
  /** Those that may be too old for who came back last; the next one is the last. */
  #old: Watching[] = [];
  #since = 0;
  #isUnderWay = false;

  constructor(parts: RenewalsParts) {
    this.#parts = parts;
  }

  /** This backend serves, with a cache that begins now. Whoever is too old for it is for all that came back before. */
  returned(backend: string): void {
    // Who was shown something last waits longest for its own bookmark, and is the first.
    this.#old = this.#elsewhere(backend).toSorted((a, b) => a.progress.lastEventAt - b.progress.lastEventAt);
    this.#begin();
  }

  /** A cache of this backend has listed anew, say: it knows nothing of what was up to `refused`. */
  forgotten({ backend, resource, refused }: Pick<Standing, "backend" | "resource" | "refused">): void {
    const isOld = ({ legs, progress: { resumeVersion = "" } }: Watching): boolean =>
      legs.resource === resource && compareVersions(resumeVersion, refused) <= 0;
    this.#old = [...this.#elsewhere(backend).filter(isOld), ...this.#old];
    this.#begin();
  }

  #elsewhere(backend: string): Watching[] {
    return this.#parts.exchanges.live.flatMap(({ watching }) =>
      watching === undefined || watching.leg?.backend === backend ? [] : [watching],
    );
  }

  #begin(): void {
    this.#since = this.#parts.clock.now();
    this.#nextSoon();
  }

  #nextSoon(): void {
    if (this.#isUnderWay || this.#old.length === 0) return;
    this.#isUnderWay = true;
    this.#parts.clock.after(limits.renewalPauseMs, () => {
      this.#isUnderWay = false;
      this.#next();
      this.#nextSoon();
    });
  }

  /** Those that have ended meanwhile, or were shown something, cost no turn. */
  #next(): void {
    const { moves } = this.#parts;
    for (let next = this.#old.pop(); next !== undefined; next = this.#old.pop())
      if (next.mayHaveTwo && next.legs.isOlderThan(this.#since)) return moves.renew(next);
  }
}
