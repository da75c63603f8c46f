/**
 * A queue of requests of many users. The caller decides when another request may be *admitted*; the queue then chooses
 * one, from each user in turn. When the queue is full, the user with the most waiting requests loses one of them. So no
 * user can fill the queue, and a user with fewer waiting requests than another user always gets in.
 */

export type Waiting = {
  /** The user, identified by what the proxy has verified about the client. */
  readonly user: string;
};

/** The waiting requests of one user, and the number of the user's admitted requests (`placed`). */
class Group<T extends Waiting> {
  readonly user: string;
  /** The user's waiting requests, oldest first. */
  readonly waiting = new Set<T>();
  placed = 0;

  constructor(user: string) {
    this.user = user;
  }
}

export class FairQueue<T extends Waiting> {
  readonly #most: number;
  readonly #groups = new Map<string, Group<T>>();
  /** Users with waiting requests, in the order of their turns. */
  readonly #turns = new Set<Group<T>>();
  /** The users' groups by number of waiting requests, so that the largest group is found at once. */
  readonly #bySize = new Map<number, Set<Group<T>>>();
  #largest = 0;
  #size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Number of waiting requests. */
  get size(): number {
    return this.#size;
  }

  /** Number of users with a request that waits or is admitted. */
  get users(): number {
    return this.#groups.size;
  }

  /** Adds a request. If the queue is full, returns the request that has to leave it, which may be the added one. */
  add(request: T): T | undefined {
    const group = this.#groupOf(request.user);
    this.#resize(group, () => group.waiting.add(request));
    this.#turns.add(group);
    if (this.#size <= this.#most) return undefined;
    const longest = this.#bySize.get(this.#largest);
    const [other] = longest?.has(group) === true ? [group] : (longest ?? []);
    // If the user of the added request has the most waiting requests, removes the added request. Otherwise another user
    // has the most: removes that user's oldest request, because the newest one cannot be found at once.
    const [oldest = request] = other === group ? [request] : (other?.waiting ?? []);
    this.remove(oldest);
    return oldest;
  }

  /** Removes a waiting request. */
  remove(request: T): void {
    const group = this.#groups.get(request.user);
    if (group?.waiting.has(request) !== true) return;
    this.#resize(group, () => group.waiting.delete(request));
    if (group.waiting.size === 0) this.#turns.delete(group);
    this.#forget(group);
  }

  /**
   * Removes the next request from the queue, counts it as admitted, and returns it. `mostEach`: maximum number of
   * admitted requests of one user while other users wait.
   */
  next(mostEach: number): T | undefined {
    for (const group of this.#turns) {
      if (group.placed >= mostEach && this.#turns.size > 1) continue;
      const [first] = group.waiting;
      if (first === undefined) continue;
      this.#turns.delete(group);
      this.#resize(group, () => group.waiting.delete(first));
      if (group.waiting.size > 0) this.#turns.add(group);
      group.placed += 1;
      return first;
    }
    return undefined;
  }

  /** Counts a request of the user that was admitted without waiting. */
  place(user: string): void {
    this.#groupOf(user).placed += 1;
  }

  /** Called when an admitted request of the user has ended. */
  leave(user: string): void {
    const group = this.#groups.get(user);
    if (group === undefined) return;
    group.placed -= 1;
    this.#forget(group);
  }

  #groupOf(user: string): Group<T> {
    let group = this.#groups.get(user);
    if (group === undefined) {
      group = new Group(user);
      this.#groups.set(user, group);
    }
    return group;
  }

  #forget(group: Group<T>): void {
    if (group.waiting.size === 0 && group.placed <= 0) this.#groups.delete(group.user);
  }

  #resize(group: Group<T>, change: () => void): void {
    const before = group.waiting.size;
    change();
    const after = group.waiting.size;
    this.#size += after - before;
    const old = this.#bySize.get(before);
    old?.delete(group);
    if (old?.size === 0) this.#bySize.delete(before);
    if (after > 0) {
      const same = this.#bySize.get(after) ?? new Set();
      this.#bySize.set(after, same.add(group));
    }
    this.#largest = Math.max(this.#largest, after);
    while (this.#largest > 0 && !this.#bySize.has(this.#largest)) this.#largest -= 1;
  }
}
