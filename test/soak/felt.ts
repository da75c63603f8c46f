/** What the soak's clients have done and felt. */

export type Felt = {
  readonly done: Map<string, number>;
  /** Not as it should be, by what; while every apiserver was away that is told apart. */
  readonly amiss: Map<string, number>;
};

export function newFelt(): Felt {
  return { done: new Map(), amiss: new Map() };
}

export function count(counts: Map<string, number>, what: string, more = 1): void {
  counts.set(what, (counts.get(what) ?? 0) + more);
}

export function told(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([what, number]) => `${what} ×${number}`).join(", ") || "none";
}
