/**
 * Keeps watches young enough for a newcomer. The cache of a backend that comes back begins now (watch.md §5.4): a watch
 * elsewhere to which nothing has been shown since is older than that, and until its next bookmark no other backend could
 * take it over. So its backend's cache is made to follow etcd (progress-requests.ts), and then the watch is asked for once
 * more where it is, for so short a time that a bookmark comes at once (§6.1). The two legs are merged as ever: that moves
 * its version, and nothing else.
 */
import type { Clock } from "../clock.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import type { Standing } from "../watch/standing.ts";
import { compareVersions } from "../watch/version.ts";
import type { Exchanges } from "./exchanges.ts";
import type { Moves } from "./moves.ts";
import { type ProgressCounts, ProgressRequests, type Renewal } from "./progress-requests.ts";
import type { Upstreams } from "./upstreams.ts";
import type { Watching } from "./watching.ts";

export type RenewalsParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly upstreams: Upstreams;
  readonly exchanges: Exchanges;
  readonly moves: Moves;
};

export class Renewals {
  readonly #parts: RenewalsParts;
  readonly #progress: ProgressRequests;
  /** Those that may be too old for a backend that came back, and since when; in the order in which they are renewed. */
  readonly #old = new Map<Watching, number>();
  #isUnderWay = false;

  constructor(parts: RenewalsParts) {
    this.#parts = parts;
    this.#progress = new ProgressRequests(parts, (waited) => this.#add(waited));
  }

  /** Lists that were asked for, by what came of them. */
  get progressRequests(): ProgressCounts {
    return this.#progress.counts;
  }

  /** This backend serves, with a cache that begins now. A watch that is too old for it is for all that came back before. */
  returned(backend: string): void {
    // The watch that was shown something last waits longest for its own bookmark, and is the first.
    this.#begin(this.#elsewhere(backend).toSorted((a, b) => b.progress.lastEventAt - a.progress.lastEventAt));
  }

  /** A cache of this backend has listed anew, say: it knows nothing of what was up to `refused`. */
  forgotten({ backend, resource, refused }: Pick<Standing, "backend" | "resource" | "refused">): void {
    const isOld = ({ legs, progress: { resumeVersion = "" } }: Watching): boolean =>
      legs.resource === resource && compareVersions(resumeVersion, refused) <= 0;
    this.#begin(this.#elsewhere(backend).filter(isOld));
  }

  /** The backend that this watch should go to does not know its version. */
  refused(watching: Watching): void {
    // What it was shown in this millisecond is what was refused.
    this.#add([{ watching, since: this.#parts.clock.now() + 1 }]);
  }

  /** A cache of this backend was filled just now: no watch elsewhere that has shown nothing since could go on there. */
  warmed({ backend, resource }: Pick<Standing, "backend" | "resource">): void {
    this.#begin(this.#elsewhere(backend).filter(({ legs }) => legs.resource === resource));
  }

  #elsewhere(backend: string): Watching[] {
    return this.#parts.exchanges.live.flatMap(({ watching }) =>
      watching === undefined || watching.leg?.backend === backend ? [] : [watching],
    );
  }

  #begin(watchings: readonly Watching[]): void {
    const since = this.#parts.clock.now();
    this.#add(watchings.map((watching) => ({ watching, since })));
  }

  #add(renewals: readonly Renewal[]): void {
    for (const { watching, since } of renewals)
      this.#old.set(watching, Math.max(since, this.#old.get(watching) ?? since));
    this.#nextSoon();
  }

  #nextSoon(): void {
    if (this.#isUnderWay || this.#old.size === 0) return;
    this.#isUnderWay = true;
    this.#parts.clock.after(limits.renewalPauseMs, () => {
      this.#isUnderWay = false;
      this.#next();
      this.#nextSoon();
    });
  }

  /** Those that have ended meanwhile, or were shown something, cost no turn; nor do those that wait for a list. */
  #next(): void {
    for (const [watching, since] of this.#old) {
      this.#old.delete(watching);
      if (this.#renew({ watching, since })) return;
    }
  }

  #renew(renewal: Renewal): boolean {
    const { watching, since } = renewal;
    const { leg, legs } = watching;
    if (leg === undefined || !watching.mayHaveTwo || !legs.isOlderThan(since, undefined)) return false;
    const version = this.#progress.versionFor(renewal, leg.backend);
    if (version === undefined || !legs.isOlderThan(since, version)) return false;
    this.#parts.moves.renew(watching);
    this.#progress.renewed(watching, leg.backend);
    return true;
  }
}
