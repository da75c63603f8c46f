/**
 * Keeps watches young enough for a newcomer. The cache of a backend that comes back begins now (watch.md §5.4): a watch
 * elsewhere to which nothing has been shown since is older than that, and until its next bookmark no other backend could
 * take it over. So its backend's cache is made to follow etcd (progress-requests.ts), and then the watch is asked for once
 * more where it is, for so short a time that a bookmark comes at once (§6.1). The two legs are merged as ever: that moves
 * its version, and nothing else.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { inSlices, stop } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { Exchanges } from "../../proxy/request/exchanges.ts";
import type { Exchange } from "../../proxy/request/relay.ts";
import type { PoolSet } from "../../proxy/upstream/pool-set.ts";
import type { Moves } from "../migration/moves.ts";
import type { CacheProgress } from "../progress/cache-progress.ts";
import type { Watching } from "../session/watching.ts";
import { type ProgressCounts, ProgressRequests, type Renewal } from "./progress-requests.ts";

export type RenewalsParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly pools: PoolSet;
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
    const since = this.#parts.clock.now();
    this.#elsewhere(
      backend,
      () => true,
      (watchings) => this.#addByAge(watchings, since),
    );
  }

  /** To sort 50,000 at once takes 30 ms: runs are sorted, and merged as they are added. */
  #addByAge(watchings: readonly Watching[], since: number): void {
    const runs: Aged[][] = [];
    const starts = Array.from({ length: Math.ceil(watchings.length / runLength) }, (_, at) => at * runLength);
    const { clock } = this.#parts;
    const sort = (start: number): void => {
      const run = watchings.slice(start, start + runLength);
      const aged = run.map((watching) => ({ watching, at: watching.progress.lastEventAt }));
      runs.push(aged.toSorted((one, other) => other.at - one.at).toReversed());
    };
    inSlices(clock, starts, sort, () => this.#add(renewalsOf(merged(runs), since)));
  }

  /** A cache of this backend has listed anew, say: it knows nothing of what was up to `refused`. */
  forgotten({ backend, resource, refused }: Pick<CacheProgress, "backend" | "resource" | "refused">): void {
    const isOld = ({ legs, progress: { resumeVersion = "" } }: Watching): boolean =>
      legs.resource === resource && compareVersions(resumeVersion, refused) <= 0;
    this.#begin(backend, isOld);
  }

  /** The backend that this watch should go to does not know its version. */
  refused(watching: Watching): void {
    // What it was shown in this millisecond is what was refused.
    this.#add([{ watching, since: this.#parts.clock.now() + 1 }]);
  }

  /** A cache of this backend was filled just now: no watch elsewhere that has shown nothing since could go on there. */
  warmed({ backend, resource }: Pick<CacheProgress, "backend" | "resource">): void {
    this.#begin(backend, ({ legs }) => legs.resource === resource);
  }

  /** Finds the watches that are served by another backend. */
  #elsewhere(
    backend: string,
    isMeant: (watching: Watching) => boolean,
    found: (watchings: readonly Watching[]) => void,
  ): void {
    const { clock, exchanges } = this.#parts;
    const watchings: Watching[] = [];
    const look = ({ watching, isEnded }: Exchange): void => {
      if (watching === undefined || isEnded || watching.leg?.backend === backend) return;
      if (isMeant(watching)) watchings.push(watching);
    };
    inSlices(clock, exchanges.live, look, () => found(watchings));
  }

  #begin(backend: string, isMeant: (watching: Watching) => boolean): void {
    const since = this.#parts.clock.now();
    this.#elsewhere(backend, isMeant, (watchings) => this.#add(renewalsOf(watchings, since)));
  }

  #add(renewals: Iterable<Renewal>): void {
    const add = ({ watching, since }: Renewal): void => {
      this.#old.set(watching, Math.max(since, this.#old.get(watching) ?? since));
      this.#nextSoon();
    };
    inSlices(this.#parts.clock, renewals, add);
  }

  #nextSoon(): void {
    if (this.#isUnderWay || this.#old.size === 0) return;
    this.#isUnderWay = true;
    this.#parts.clock.after(limits.renewalPauseMs, () => {
      this.#next(() => {
        this.#isUnderWay = false;
        this.#nextSoon();
      });
    });
  }

  /** Those that have ended meanwhile, or were shown something, cost no turn; nor do those that wait for a list. */
  #next(done: () => void): void {
    const renew = ([watching, since]: readonly [Watching, number]): unknown => {
      this.#old.delete(watching);
      return this.#renew({ watching, since }) ? stop : undefined;
    };
    inSlices(this.#parts.clock, this.#old, renew, done);
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

/** A watch, and when it was shown something last, a clock reading. */
type Aged = { readonly watching: Watching; readonly at: number };

const runLength = 1000;

function* renewalsOf(watchings: Iterable<Watching>, since: number): Iterable<Renewal> {
  for (const watching of watchings) yield { watching, since };
}

/** What is in runs whose latest is the last, the latest of all first. Empties them. */
function* merged(runs: readonly Aged[][]): Iterable<Watching> {
  for (;;) {
    let first: Aged[] | undefined;
    let latest = Number.NEGATIVE_INFINITY;
    for (const run of runs) {
      const at = run.at(-1)?.at ?? Number.NEGATIVE_INFINITY;
      if (at > latest) [first, latest] = [run, at];
    }
    const aged = first?.pop();
    if (aged === undefined) return;
    yield aged.watching;
  }
}
