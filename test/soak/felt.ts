/** Counts what the clients of the soak did, and what failed. */

export type Felt = {
  readonly done: Map<string, number>;
  /** Failures by kind. A failure while all apiservers were down has a kind of its own. */
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
