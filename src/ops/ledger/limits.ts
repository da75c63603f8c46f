/** Limits of the recorded callers, leases and pods, each with its reason (see src/base/limits.ts). */
export const ledgerLimits = {
  /**
   * Maximum number of callers, 400 bytes each. The kubelets, kube-proxies and agents of 1,000 nodes are about as many.
   */
  callers: 5000,
  /** Number of callers that one eviction checks to find an idle caller. */
  callerTurns: 32,
  /** Milliseconds for which a caller counts as new. */
  callerNewMs: 600_000,
  /**
   * A caller with fewer requests than this is never reported as "failing" or "re-watching", and may be evicted as soon
   * as it is idle.
   */
  callerRequests: 20,
  /** Minimum number of relists of a caller that is reported as "relisting". */
  callerRelists: 10,
  /** Number of watched resources remembered for each caller. A controller-manager watches 60. */
  callerResources: 100,
  /** Maximum number of programs that get a metric label of their own. */
  agents: 50,
  /** Maximum number of leases, about 600 bytes each. Each node and each controller has one. */
  leases: 8000,
  /** Maximum number of clients that are remembered for each lease because they renewed it. */
  leaseRenewers: 8,
  /** Maximum number of changes of holder that are remembered for each lease. */
  leaseHandovers: 8,
  /**
   * Minimum milliseconds that the proxy assumes as the duration of a lease when it looks for two clients that renew the
   * lease in turn under one name. A lease may state no duration.
   */
  leaseLeastMs: 5000,
  /** A takeover is suspect if less than this share of the lease's duration has passed since the last renewal. */
  leaseShare: 0.8,
  /** Two holders alternate if each takes the lease from the other, without a release, within these milliseconds. */
  leaseTurnsMs: 120_000,
  /** Number of renewals of a lease after which a holder with a new identity or program is suspect. */
  leaseRenewals: 3,
  /** Minimum milliseconds between two reports of one lease with the same verdict. */
  leaseReportMs: 15_000,
  /** Maximum number of remembered pods that sent requests, and of remembered pods that were deleted. */
  pods: 10_000,
  /**
   * Milliseconds after a pod's deletion for which renewals by the pod are not suspect, because they may have been sent
   * before the deletion.
   */
  podGoneMs: 1000,
  /** Maximum number of characters of a token's encoded claims. Longer claims are not read. */
  claimsChars: 16 * 1024,
  /** Number of characters that are kept of a holder's name. */
  holderChars: 256,
} as const;
