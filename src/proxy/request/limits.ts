/** Limits of requests, their retries and hedges, each with its reason (see src/base/limits.ts). */
const KiB = 1024;

export const requestLimits = {
  /** A request body up to this size is kept until the response, so that a refused stream can be retried. */
  repeatableBodyBytes: 64 * KiB,
  /** A refusal with a body up to this size is held until complete: its backend may be lost. A Status has 1 KiB. */
  shortRefusalBytes: 16 * KiB,
  /**
   * For this many ms, a retry after a GOAWAY does not count as an attempt. Each 401 causes a GOAWAY on its connection,
   * which proves nothing about the backend. During a flood of 401s, dozens of connections may refuse one request.
   */
  sentAwayMs: 15_000,
  /** Ms that a 429 or 5xx waits for the other attempt's response. The client would wait as long (Retry-After). */
  refusalHeldMs: 1000,
  /**
   * Ms that a request waits while no backend is available. Together with a failed dial (2.25 s) this is less than the 5
   * s that leader election allows a request (half of its 10 s renew deadline).
   */
  pendingMs: 2500,
  /**
   * Hedges that may be sent at once for reads that are slow although their backend answers PING. The budget grows by
   * one hedge for twenty reads, so that a slow etcd does not get twice the load.
   */
  slowHedgeBurst: 50,
  slowHedgesPerSecond: 10,
  slowHedgeShare: 0.05,
  /**
   * Ms for which requests avoid a backend that does not serve their resource. An upgraded apiserver serves new APIs
   * within seconds of its start, and an apiserver serves a new CRD within seconds.
   */
  missingMs: 30_000,
  /** Maximum number of resources that are remembered as missing. An upgrade adds a few dozen. */
  missingResources: 256,
  /** Maximum number of requests sent at once to another backend because of a 404, which any wrong path causes. */
  missingAskBurst: 50,
  missingAsksPerSecond: 10,
} as const;
