/**
 * Which backends' caches stand still while others go on, resource by resource: versions are compared within one resource
 * only (watch.md §6.3). Silence alone proves nothing: to be behind is a doubt, and what watches show there settles it.
 */
import { limits } from "../../base/limits.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import { isStalled, latestEventOf, Standing } from "./standing.ts";

const nobody: readonly string[] = [];

/** The newest event of a resource that any backend had shown at a time. */
export type Mark = { readonly version: string; readonly at: number };

/** A backend that has shown nothing new for long, although others have shown `version`. */
export type Doubt = {
  readonly standing: Standing;
  readonly version: string;
  readonly behindMs: number;
  /** A bookmark came since, and said that its cache is no further: that is proof. */
  readonly isTold: boolean;
  /** Do watches of this resource have bookmarks at all? Those of an uncached one have none. */
  readonly hasBookmarks: boolean;
  /** All that it has not shown, oldest first. */
  readonly missing: readonly Mark[];
};

/** One resource: how far each backend has come, and what it may be measured by. */
class Course {
  readonly standings = new Map<string, Standing>();
  /** The newest version that backends which are forgotten had shown. */
  #seen = "";
  #marks: Mark[] = [];

  get isWatched(): boolean {
    return this.standings.values().some(({ watches, stall }) => watches > 0 || stall !== undefined);
  }

  judge(now: number): Doubt[] {
    this.#mark(now);
    const hasBookmarks = this.standings.values().some(({ bookmarkAt }) => bookmarkAt >= 0);
    return [...this.standings.values()].flatMap((standing) => {
      if (standing.watches === 0) return [];
      const missing = this.#marks.filter(({ version }) => compareVersions(version, standing.version) > 0);
      return doubtOf(standing, missing, { hasBookmarks, now });
    });
  }

  /** The newest version that any backend has shown, of an event or a bookmark. */
  get seen(): string {
    let seen = this.#seen;
    for (const { version } of this.standings.values()) if (compareVersions(version, seen) > 0) seen = version;
    return seen;
  }

  forget(backend: string): void {
    this.#seen = this.seen;
    if (this.standings.delete(backend)) this.#marks = [];
  }

  forgetSeen(): void {
    this.#seen = "";
  }

  /** Only what an event has shown must come to every cache: a bookmark may tell of a revision of other resources. */
  #mark(now: number): void {
    const most = latestEventOf(this.standings.values());
    const last = this.#marks.at(-1);
    if (compareVersions(most, last?.version ?? "") > 0) this.#marks.push({ version: most, at: now });
    const watched = [...this.standings.values()].filter(({ watches }) => watches > 0);
    // What all have shown measures nobody; the last one stays, so that it is not taken for new.
    const isMissed = ({ version }: Mark): boolean =>
      watched.some((standing) => compareVersions(version, standing.version) > 0);
    this.#marks = this.#marks
      .filter((mark, index) => isMissed(mark) || index === this.#marks.length - 1)
      .slice(-limits.standingMarks);
  }
}

export class Standings {
  readonly #courses = new Map<string, Course>();
  readonly #stalled = new Set<Standing>();

  /** The same object every time: watches keep it. Of too many resources the last ones are not compared. */
  of(backend: string, resource: string): Standing {
    const known = this.#courses.get(resource);
    const standing = known?.standings.get(backend) ?? new Standing(backend, resource);
    if (known === undefined && !this.#hasRoom()) return standing;
    const course = known ?? new Course();
    this.#courses.set(resource, course);
    course.standings.set(backend, standing);
    return standing;
  }

  /** True if a watch of this resource was taken by the backend, since it was forgotten last. */
  knows(backend: string, resource: string): boolean {
    return this.#courses.get(resource)?.standings.has(backend) === true;
  }

  /** A resource that nobody watches makes room. */
  #hasRoom(): boolean {
    if (this.#courses.size < limits.standingResources) return true;
    for (const [resource, course] of this.#courses)
      if (!course.isWatched) return this.#courses.delete(resource);
    return false;
  }

  /** The backends that are known not to go on from this version: a cache only ever forgets (watch.md §5.4). */
  refusing(resource: string, version: string): readonly string[] {
    const standings = this.#courses.get(resource)?.standings.values().toArray() ?? [];
    const refusing = standings.filter(({ refused }) => compareVersions(version, refused) <= 0);
    return refusing.length === 0 ? nobody : refusing.map(({ backend }) => backend);
  }

  /** Those that have refused a newer version than before; told once. */
  forgetful(): Standing[] {
    const all = this.#courses.values().flatMap(({ standings }) => standings.values());
    return all.filter((standing) => standing.hasForgotten).toArray();
  }

  get resources(): number {
    return this.#courses.size;
  }

  /** Resource by resource the standings of all backends that have one, where they are several. */
  get rivals(): readonly (readonly Standing[])[] {
    const all = this.#courses.values().map(({ standings }) => [...standings.values()]);
    return all.filter(({ length }) => length > 1).toArray();
  }

  /** A backend that is gone, or begins anew, is no measure for anybody. */
  forget(backend: string): void {
    for (const [resource, course] of this.#courses) {
      course.forget(backend);
      if (course.standings.size === 0 && course.seen === "") this.#courses.delete(resource);
    }
    for (const standing of this.#stalled) if (standing.backend === backend) this.#stalled.delete(standing);
  }

  /** The newest version of this resource that clients may have seen; "" when nothing is known. */
  seen(resource: string): string {
    return this.#courses.get(resource)?.seen ?? "";
  }

  /** The history that clients have seen is no backend's any more: what comes now is the right one. */
  forgetSeen(): void {
    for (const [resource, course] of this.#courses) {
      for (const backend of Array.from(course.standings.keys())) this.forget(backend);
      course.forgetSeen();
      this.#courses.delete(resource);
    }
  }

  /** Those that are no backends any more are forgotten. */
  reconcile(names: readonly string[]): void {
    const all = this.#courses.values().flatMap(({ standings }) => standings.keys());
    for (const backend of new Set(all)) if (!names.includes(backend)) this.forget(backend);
  }

  /** To be called about every second: who has stood still for too long while others went on? */
  judge(now: number): Doubt[] {
    return [...this.#courses.values()].flatMap((course) => course.judge(now));
  }

  // --- those that were found to stand still ---

  convict({ standing, version }: Doubt, now: number): void {
    const before = standing.stall;
    const spellMs =
      before === undefined ? limits.stallSpellMs : Math.min(limits.stallSpellMostMs, 2 * before.spellMs);
    standing.stall = { version, since: before?.since ?? now, until: now + spellMs, spellMs };
    this.#stalled.add(standing);
  }

  /** Those that have shown by now what they had not; told once. */
  recovered(): Standing[] {
    const recovered = [...this.#stalled].filter(
      ({ stall, version }) => stall === undefined || compareVersions(version, stall.version) >= 0,
    );
    for (const standing of recovered) {
      this.#stalled.delete(standing);
      standing.stall = undefined;
    }
    return recovered;
  }

  /** Is nobody to be avoided at all? */
  get isClear(): boolean {
    return this.#stalled.size === 0;
  }

  /** The backends that stand still with this resource. */
  stalledWith(resource: string, now: number): readonly string[] {
    return [...this.#stalled]
      .filter((standing) => standing.resource === resource && isStalled(standing, now))
      .map(({ backend }) => backend);
  }

  /** The resources with which a backend stands still. */
  stalledAt(backend: string, now: number): readonly string[] {
    return [...this.#stalled]
      .filter((standing) => standing.backend === backend && isStalled(standing, now))
      .map(({ resource }) => resource);
  }

  /** How many of them there are, for metrics. */
  stalls(now: number): number {
    return [...this.#stalled].filter((standing) => isStalled(standing, now)).length;
  }
}

function doubtOf(
  standing: Standing,
  missing: readonly Mark[],
  { hasBookmarks, now }: { readonly hasBookmarks: boolean; readonly now: number },
): Doubt[] {
  const [mark] = missing;
  if (mark === undefined) return [];
  const since = Math.max(mark.at, standing.stillSince);
  const behindMs = now - since;
  if (behindMs < limits.behindMs) return [];
  const isTold = standing.bookmarkAt - since >= limits.behindMs;
  return [{ standing, version: mark.version, behindMs, isTold, hasBookmarks, missing }];
}
