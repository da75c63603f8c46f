/** Limits of the recorded callers, leases and pods, each with its reason (see src/base/limits.ts). */
export const ledgerLimits = {
  /** Maximum number of callers, 400 bytes each. The kubelets, kube-proxies and agents of 1,000 nodes are as many. */
  callers: 5000,
  /** Number of callers that one eviction checks to find an idle caller. */
  callerTurns: 32,
  /** Milliseconds for which a caller counts as new. */
  callerNewMs: 600_000,
  /** Minimum requests of a caller that can be "failing" or "re-watching", or that is kept while idle. */
  callerRequests: 20,
  callerRelists: 10,
  /** Number of watched resources remembered for each caller. A controller-manager watches 60. */
  callerResources: 100,
  /** Maximum number of programs that get a metric label of their own. */
  agents: 50,
  /** Maximum number of leases, about 600 bytes each. Each node and each controller has one. */
  leases: 8000,
  /** Maximum number of remembered clients that renewed a lease. */
  leaseRenewers: 8,
  leaseHandovers: 8,
  /** Minimum duration in milliseconds that is assumed for a lease: its object may state none. */
  leaseLeastMs: 5000,
  /** A takeover is suspect if less than this share of the lease's duration has passed since the last renewal. */
  leaseShare: 0.8,
  /** Two holders alternate if each takes the lease from the other, without a release, within these milliseconds. */
  leaseTurnsMs: 120_000,
  /** Number of renewals of a lease after which a holder with a new identity or program is suspect. */
  leaseRenewals: 3,
  /** Milliseconds between two reports on one lease. */
  leaseReportMs: 15_000,
  /** Maximum number of remembered pods that sent requests, and of remembered pods that were deleted. */
  pods: 10_000,
  /** Milliseconds after a pod's deletion in which the pod's last renewals may still arrive at the proxy. */
  podGoneMs: 1000,
  /** Number of characters read of a token's claims. */
  claimsChars: 16 * 1024,
  holderChars: 256,
} as const;
