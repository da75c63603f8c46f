/** Limits of requests, their retries and hedges, each with its reason (see src/base/limits.ts). */
const KiB = 1024;

export const requestLimits = {
  /** A request body up to this size is kept until the response, so that a refused stream can be retried. */
  repeatableBodyBytes: 64 * KiB,
  /**
   * The head of a refusal with a body up to this size waits for the body, so that a truncated one can be retried. A
   * Status is 1 KiB.
   */
  shortRefusalBytes: 16 * KiB,
  /**
   * For this long a request retried because its stream id is above a GOAWAY's last id does not use up an attempt. Each
   * 401 causes such a GOAWAY on its connection, which proves nothing about the backend. During a flood of 401s a
   * request may be sent away from dozens of connections.
   */
  sentAwayMs: 15_000,
  /**
   * With two attempts open, a 429 or 5xx from one waits this long for the other's response. Its client would wait as
   * long (Retry-After).
   */
  refusalHeldMs: 1000,
  /**
   * How long a request waits in the pending queue while no backend is available. With a failed dial before it (2.25 s)
   * that stays below the 5 s that leader election allows a request (half of its 10 s renew deadline). A short outage is
   * over by then.
   */
  pendingMs: 2500,
  /**
   * Reads hedged because they are slow although their backend answers PING: one in twenty, plus a small burst for small
   * clusters, so that slow etcd does not double the load.
   */
  slowHedgeBurst: 50,
  slowHedgesPerSecond: 10,
  slowHedgeShare: 0.05,
} as const;
