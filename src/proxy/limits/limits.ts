/**
 * Bounds for request limits and for the shield, each with its reason (see src/base/limits.ts). The shield (shield.ts)
 * limits the concurrent lists at a backend that has just started or is overloaded; their maximum number is the *cap*.
 */
export const operatorLimits = {
  /**
   * Maximum number of operators' limits in force at the same time. An emergency needs only a few. More would cost time,
   * because each request is compared with all of them.
   */
  limits: 32,
  /** Minimum ms between two journal entries about the refusals of one limit. */
  reportMs: 10_000,
  /**
   * Maximum number of characters of all operators' limits, written as JSON. A successor process inherits them in an
   * environment variable, for which Linux allows 128 KiB.
   */
  stateChars: 64 * 1024,
} as const;

export const shieldLimits = {
  /**
   * Ms for which a backend is shielded after it has started and become ready. An apiserver needs about this long to
   * fill its caches.
   */
  warmMs: 30_000,
  /** Ms for which a backend is shielded after the last sign of overload (a 429, or slow reads). */
  weakMs: 10_000,
  /** Initial cap on concurrent lists at a shielded backend: two lists for each core of a small apiserver. */
  firstCap: 8,
  /** Lowest cap on concurrent lists. With a cap of 1, a list that hangs would stop all others. */
  leastCap: 2,
  /**
   * Highest cap on concurrent lists. A higher cap would limit nothing: kube-apiserver itself allows 400 concurrent
   * reads by default.
   */
  mostCap: 400,
  /** A list is slow if its response takes at least this many times as long to begin as the fastest one of its kind. */
  slowTimes: 4,
  /** A list whose response begins within this many ms never counts as slow, because so short a delay is harmless. */
  slowMs: 100,
  /**
   * Reads of one object are late if they take this many ms on average. Such delays endanger leaders, because a leader
   * renews its Lease with a read and a write.
   */
  lateMs: 250,
  /**
   * With each list, the remembered time of the fastest list of its kind grows by this factor. The remembered time
   * therefore follows the growth of the cluster.
   */
  fastestGrowth: 1.01,
  /**
   * Minimum ms between two decreases of the cap: lists that were under way at the first decrease are slow for the same
   * reason, and must not cause a second one.
   */
  decreaseMs: 250,
  /** Maximum number of kinds of lists for which the fastest time is remembered. A large cluster has 200 resources. */
  kinds: 512,
  /**
   * Ms after which a list no longer counts towards the cap, even if it has not ended, because its client may read
   * slowly on purpose.
   */
  placeMs: 10_000,
  /** Maximum number of requests that wait for one shielded backend; the pending queue has the same limit. */
  waiting: 10_000,
  /** Ms between checks of the requests that wait for shielded backends. */
  lookMs: 50,
  /** Ms between two checks whether a backend's reads are slower than usual. */
  judgeMs: 1000,
  /**
   * Ms over which the usual response time of reads is averaged. This is much longer than an overload lasts, so an
   * overload hardly changes the average.
   */
  usualMs: 300_000,
} as const;
