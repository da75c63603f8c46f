/** The requests of one program, or of all programs without a label of their own, by verb. Counts never decrease. */

const verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

export class ProgramRequests {
  readonly #counts = verbs.map(() => 0);
  #others = 0;

  /** Searches a short list, because that is cheaper for each request than a look-up in a Map. */
  add(verb: string): void {
    const at = verbs.indexOf(verb);
    if (at < 0) this.#others += 1;
    else this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  /** Returns the number of requests by verb, without verbs that have none. "other": verbs that are not in the list. */
  get counts(): readonly (readonly [verb: string, count: number])[] {
    const all = [
      ...this.#counts.map((count, at) => [verbs[at] ?? "", count] as const),
      ["other", this.#others] as const,
    ];
    return all.filter(([, count]) => count > 0);
  }
}
