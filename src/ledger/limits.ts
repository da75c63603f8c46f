/** Limits of the recorded callers, leases and pods, each with its reason (see src/base/limits.ts). */
export const ledgerLimits = {
  /** Maximum number of callers, 400 bytes each. 1,000 nodes have about as many kubelets, kube-proxies and agents. */
  callers: 5000,
  /** Number of callers that one eviction checks to find an idle caller. */
  callerTurns: 32,
  /** Milliseconds for which a caller counts as new. */
  callerNewMs: 600_000,
  /** Number of requests below which the ledger reports no anomaly of a caller, except "new". */
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
  /** Duration in milliseconds that is assumed for a lease whose object states none. */
  leaseLeastMs: 5000,
  /** A takeover is suspect if it comes earlier after the last renewal than this share of the lease's duration. */
  leaseShare: 0.8,
  /** Two holders alternate if each takes the lease from the other, without a release, within these milliseconds. */
  leaseTurnsMs: 120_000,
  /** Number of renewals of a lease after which a new kind of holder counts as a stranger. */
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
