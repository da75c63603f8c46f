/** Limits for moving clients between backends, each with its reason (see src/base/limits.ts). */
const KiB = 1024;

export const balanceLimits = {
  /** Share of the clients that may be bound to another backend per second (F16). */
  rebalanceShare: 0.01,
  /** Milliseconds between two checks of the balance. */
  balanceMs: 5000,
  /** Clients are moved once a backend's load deviates from an even load by more than this share of the even load. */
  rebalanceSlack: 0.12,
  /**
   * Once clients are being moved, the moves continue until each backend's load deviates from an even load by less than
   * this share of the even load. Small changes of the load then cause no new moves.
   */
  restSlack: 0.06,
  /**
   * Ms until a client that was moved may be moved again. Doubles with each further move up to `restMostMs`, so that a
   * client whose load varies is not moved to and fro. When a backend becomes ready, or a ready one fails, every client
   * may be moved again.
   */
  restMs: 120_000,
  restMostMs: 3_600_000,
  /** Ms over which the work of a client is averaged. */
  activityMs: 30_000,
  /**
   * Bytes per second that cost an apiserver as much as one open stream. Measured at kube-apiserver 1.36
   * (test/real/skew/costs.ts) in CPU time: 30 to 50 µs a second for an open watch, 10 µs for 1 KiB of a list.
   */
  streamBytes: 4 * KiB,
} as const;
