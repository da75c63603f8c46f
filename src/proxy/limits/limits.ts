/** Limits of request limits and of the shield, each with its reason (see src/base/limits.ts). */
export const operatorLimits = {
  /**
   * Maximum number of limits that operators have set at a time. An emergency needs a few, and each request is compared
   * with all of them.
   */
  limits: 32,
  /** Milliseconds between two journal entries about the refusals of one limit. */
  reportMs: 10_000,
  /**
   * Maximum number of characters of all limits of operators: a successor process inherits them in an environment
   * variable, and Linux allows 128 KiB.
   */
  stateChars: 64 * 1024,
} as const;

export const shieldLimits = {
  /** Ms for which a backend is shielded after it became ready: an apiserver fills its caches in this time. */
  warmMs: 30_000,
  /** Ms for which a backend is shielded after the last sign of overload, a 429 or slow reads. */
  weakMs: 10_000,
  /** Initial number of concurrent lists at a shielded backend: two for each core of a small apiserver. */
  firstCap: 8,
  /** Minimum number of concurrent lists. With a smaller number, one list that hangs could stop all others. */
  leastCap: 2,
  /**
   * Maximum number of concurrent lists. A larger number would limit nothing: kube-apiserver itself allows 400
   * concurrent reads by default.
   */
  mostCap: 400,
  /** A list is slow if its response begins this many times later than that of the fastest list of the same kind. */
  slowTimes: 4,
  /** A list whose response begins within this many ms is never slow: such a delay is harmless. */
  slowMs: 100,
  /** Reads of one object are late if they take this many ms on average: a leader's renewal is a read and a write. */
  lateMs: 250,
  /** After each list, the remembered fastest time is multiplied by this, so that it follows a growing cluster. */
  fastestGrowth: 1.01,
  /**
   * Minimum ms between two decreases of the cap: the lists that were under way at the first decrease are late for the
   * same reason.
   */
  decreaseMs: 250,
  /** Maximum number of kinds of lists whose fastest time is remembered. A large cluster has 200 resources. */
  kinds: 512,
  /** Ms after which a list gives its place back, even if it has not ended: its client may read slowly on purpose. */
  placeMs: 10_000,
  /** Maximum number of requests that wait at one backend, as in the pending queue. */
  waiting: 10_000,
  /** Ms between checks of the queue. */
  lookMs: 50,
  /** Ms between two comparisons of the times of reads. */
  judgeMs: 1000,
  /** Ms over which the usual time of reads is averaged: much longer than an overload lasts. */
  usualMs: 300_000,
} as const;
