/**
 * The open watches, by resource, so that a look at one resource does not walk through 50,000 watches. Watches of another
 * server's resources are not included: their versions are not comparable.
 */
import type { WatchContext } from "../session/watch-context.ts";

/** One resource: the watches of the whole resource, and the others (a namespace, a name, a selector). */
type Group<W> = { readonly whole: Set<W>; readonly part: Set<W> };

const none: ReadonlySet<never> = new Set();

export class WatchesByResource<W> {
  readonly #groups = new Map<string, Group<W>>();

  add(watch: W, { resource, isWhole, origin }: WatchContext): void {
    if (origin.isForeign) return;
    const group = this.#groups.get(resource) ?? { whole: new Set(), part: new Set() };
    this.#groups.set(resource, group);
    (isWhole ? group.whole : group.part).add(watch);
  }

  remove(watch: W, { resource, isWhole }: WatchContext): void {
    const group = this.#groups.get(resource);
    if (group === undefined) return;
    (isWhole ? group.whole : group.part).delete(watch);
    if (group.whole.size + group.part.size === 0) this.#groups.delete(resource);
  }

  get resources(): Iterable<string> {
    return this.#groups.keys();
  }

  wholeOf(resource: string): ReadonlySet<W> {
    return this.#groups.get(resource)?.whole ?? none;
  }

  partOf(resource: string): ReadonlySet<W> {
    return this.#groups.get(resource)?.part ?? none;
  }

  *of(resource: string): Iterable<W> {
    yield* this.wholeOf(resource);
    yield* this.partOf(resource);
  }
}
