/** The number of watchkeeper processes among which limits of scope AllReplicas are divided. */
export class ReplicaCount {
  #count = 1;

  /** At least 1, because this process counts itself. */
  get count(): number {
    return this.#count;
  }

  /** Takes effect for the next request that a shared limit counts. */
  set(count: number): void {
    this.#count = Math.max(1, count);
  }
}
