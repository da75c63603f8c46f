/**
 * What follows when a cache is late (watch/late.ts): its watches of that resource are asked for elsewhere as well, and
 * whoever shows an event first is heard. When the cache has come on they are as before; when it is found to stand still
 * (caches.ts) they have company already, with which they go on. No verdict: requests go there as they did.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { Looks } from "../../base/looks.ts";
import { inSlices, stop } from "../../base/slices.ts";
import type { Moves } from "../migration/moves.ts";
import type { Doubt, Standings } from "../progress/stale.ts";
import { resourceOf } from "../session/watch-order.ts";
import type { Watching } from "../session/watching.ts";
import { LateCaches } from "./late.ts";

export type LatesParts = {
  readonly clock: Clock;
  /** How far each backend has come, scope by scope. */
  readonly scopes: Standings;
  readonly moves: Moves;
  /** When silence is suspicious, as far away as the backend is, in ms; undefined when it is none of ours. */
  readonly afterMs: (backend: string) => number | undefined;
};

/** One backend's cache of one resource. */
type Cache = { readonly backend: string; readonly resource: string };
type Told = Cache & { readonly since: number };

export class Lates {
  readonly #parts: LatesParts;
  readonly #looks: Looks;
  readonly #caches = new LateCaches();
  /** Those whose watches have been told, and since when. */
  readonly #told = new Map<string, Told>();
  /** Those that were late for a moment, and until when they are let alone. */
  readonly #pauses = new Map<string, number>();
  /** Those whose watches are being asked, or told. */
  readonly #walked = new Set<string>();
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(parts: LatesParts) {
    this.#parts = parts;
    this.#looks = new Looks(parts.clock, limits.lateLookMs, () => this.#look());
  }

  start(): void {
    this.#looks.start();
  }

  stop(): void {
    this.#looks.stop();
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  #look(): void {
    const { clock, scopes } = this.#parts;
    const now = clock.now();
    if (now - this.#dueAt > limits.stallMs) this.#caches.forgive(now - this.#dueAt);
    this.#dueAt = now + limits.lateLookMs;
    this.#caches.look(scopes, now);
    for (const [name, until] of this.#pauses) if (until <= now) this.#pauses.delete(name);
    const doubts = this.#caches.late(now, (backend) => this.#afterMs(backend));
    if (doubts.length > 0 || this.#told.size > 0) this.#act(doubts);
  }

  #act(doubts: readonly Doubt[]): void {
    const late = Map.groupBy(doubts, ({ standing }) => nameOf(cacheOf(standing)));
    for (const [name, told] of this.#told) if (!late.has(name)) this.#clear(name, told);
    for (const of of late.values()) this.#tell(of, doubts);
  }

  /** Of one that is no backend any more, or is suspected as a whole, nothing more is to be found out. */
  #afterMs(backend: string): number {
    const { moves, afterMs } = this.#parts;
    return moves.where.isDoubtful(backend)
      ? Number.POSITIVE_INFINITY
      : (afterMs(backend) ?? Number.POSITIVE_INFINITY);
  }

  /** `all`: what is doubted anywhere. Who is late too is not asked instead. */
  #tell(doubts: readonly Doubt[], all: readonly Doubt[]): void {
    const [first] = doubts;
    if (first === undefined) return;
    const { clock, moves } = this.#parts;
    const cache = cacheOf(first.standing);
    const name = nameOf(cache);
    if (this.#walked.has(name) || this.#pauses.has(name)) return;
    const others = all.map(({ standing }) => cacheOf(standing));
    const names = others.filter(({ resource }) => resource === cache.resource).map(({ backend }) => backend);
    const shadow = (): void =>
      this.#walk(cache, (watching) => {
        if (watching.leg?.backend === cache.backend) moves.shadowElsewhere(watching, names);
      });
    if (this.#told.has(name)) return shadow();
    // Is there a watch that would have shown it?
    let isShown = false;
    const ask = ({ legs }: Watching): unknown => {
      isShown = doubts.some((doubt) => legs.isLate(doubt, this.#afterMs(doubt.standing.backend)));
      return isShown ? stop : undefined;
    };
    this.#walk(cache, ask, () => {
      if (!isShown) return;
      this.#told.set(name, { ...cache, since: clock.now() });
      shadow();
    });
  }

  /** Through the watches of the cache's resource, of all backends; one walk at a time for each cache. */
  #walk(cache: Cache, visit: (watching: Watching) => unknown, done?: () => void): void {
    const { clock, moves } = this.#parts;
    const name = nameOf(cache);
    this.#walked.add(name);
    inSlices(clock, moves.watchings.of(cache.resource), visit, () => {
      this.#walked.delete(name);
      done?.();
    });
  }

  #clear(name: string, told: Told): void {
    const { backend, since } = told;
    const { clock, moves } = this.#parts;
    const now = clock.now();
    this.#told.delete(name);
    // Suspected by now: it was no moment's weakness, and its lanes say what its watches are to do.
    if (moves.where.isDoubtful(backend)) return;
    if (now - since < limits.lateMomentMs) this.#pauses.set(name, now + limits.latePauseMs);
    inSlices(clock, moves.watchings.of(told.resource), ({ leg }) => {
      if (leg?.backend === backend && !leg.isSuspect) leg.cleared();
    });
  }
}

function cacheOf({ backend, resource: scope }: Doubt["standing"]): Cache {
  return { backend, resource: resourceOf(scope) };
}

function nameOf({ backend, resource }: Cache): string {
  return `${backend} ${resource}`;
}
