/**
 * Which caches are late: an event that others have shown has not come to them for as long as a PING may be silent. One
 * whose way to etcd is cut answers PING, and /readyz for two seconds more; but nothing new comes to its watches. Less than
 * a verdict: what follows costs nothing when it was a moment's weakness (watch.md §5.6).
 */
import { limits } from "../../base/limits.ts";
import { compareVersions } from "../../kube/resource-version.ts";
import type { Doubt, Mark, Standings } from "../progress/stale.ts";
import { latestEventOf, type Standing } from "../progress/standing.ts";

export class LateCaches {
  /** What each has not shown although others have, oldest first. Of the standings that are missing nothing, none. */
  readonly #missing = new Map<Standing, Mark[]>();

  /** How far has everybody come? To be called several times a second, with what whole scopes have shown. */
  look(scopes: Standings, now: number): void {
    const seen = new Set<Standing>();
    for (const rivals of scopes.rivals) {
      const latest = latestEventOf(rivals);
      for (const standing of rivals.filter(({ watches }) => watches > 0)) {
        this.#compare(standing, latest, now);
        seen.add(standing);
      }
    }
    // Those that nobody watches now, and those of a backend that is gone.
    for (const standing of this.#missing.keys()) if (!seen.has(standing)) this.#missing.delete(standing);
  }

  /** For so long our own loop stood still: what came meanwhile may still be unread. */
  forgive(ms: number): void {
    for (const [standing, marks] of this.#missing)
      this.#missing.set(
        standing,
        marks.map(({ version, at }) => ({ version, at: at + ms })),
      );
  }

  /** Those that have missed something for longer than their backend may, in ms. */
  late(now: number, afterMs: (backend: string) => number): Doubt[] {
    return [...this.#missing].flatMap(([standing, missing]) => {
      const [mark] = missing;
      if (mark === undefined || now - mark.at < afterMs(standing.backend)) return [];
      const { version, at } = mark;
      return [{ standing, version, behindMs: now - at, isTold: false, hasBookmarks: false, missing }];
    });
  }

  #compare(standing: Standing, latest: string, now: number): void {
    const isBehind = compareVersions(latest, standing.version) > 0;
    const known = this.#missing.get(standing);
    if (!isBehind && known === undefined) return;
    const marks = (known ?? []).filter(({ version }) => compareVersions(version, standing.version) > 0);
    const last = marks.at(-1);
    const isNews = last === undefined || (last.version !== latest && now - last.at >= limits.lateMarkMs);
    if (isBehind && isNews && marks.length < limits.lateMarks) marks.push({ version: latest, at: now });
    if (marks.length > 0) this.#missing.set(standing, marks);
    else this.#missing.delete(standing);
  }
}
