/** Limits of the balance between backends, each with its reason (see src/base/limits.ts). */
const KiB = 1024;

export const balanceLimits = {
  /** Share of the clients that may be bound to another backend per second (F16). */
  rebalanceShare: 0.01,
  balanceMs: 5000,
  /** Clients are moved once a backend's load deviates from an even load by more than this share of the even load. */
  rebalanceSlack: 0.2,
  /** Once clients move, they move until the load deviates by less than this. Small changes then cause no new moves. */
  restSlack: 0.1,
  /**
   * Ms until a client that was moved may be moved again. Doubles with each further move up to `restMostMs`, so that a
   * client whose load varies is not moved to and fro.
   */
  restMs: 120_000,
  restMostMs: 3_600_000,
  /** Ms over which the work of a client is averaged. */
  activityMs: 30_000,
  /**
   * Bytes per second that count as much as one open stream. An estimate, not measured at a kube-apiserver: only the
   * order of clients by their load depends on it.
   */
  streamBytes: KiB,
} as const;
