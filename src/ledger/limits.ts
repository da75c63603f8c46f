/** Limits of the callers, leases and pods that are remembered, each with its reason (see src/base/limits.ts). */
export const ledgerLimits = {
  /** Callers remembered, 400 bytes each: a cluster of 1,000 nodes has about as many kubelets, kube-proxies and agents. */
  callers: 5000,
  /** Callers that one eviction checks to find an idle one. */
  callerTurns: 32,
  /** How long a caller counts as new. */
  callerNewMs: 600_000,
  /** A caller with fewer requests is not judged. */
  callerRequests: 20,
  callerRelists: 10,
  /** Watched resources remembered per caller: a controller-manager watches 60. */
  callerResources: 100,
  /** Most programs that get a metric label of their own. */
  agents: 50,
  /** The number of leases remembered, about 600 bytes each: each node has one, and each controller. */
  leases: 8000,
  /** Most renewers, and most changes of holder, that are remembered per lease. */
  leaseRenewers: 8,
  leaseHandovers: 8,
  /** Assumed duration of a lease whose object states none. */
  leaseLeastMs: 5000,
  /** A takeover earlier than this share of the lease's duration after the last renewal counts as wrongful. */
  leaseShare: 0.8,
  /** Two holders alternate if the lease moves there and back within this time, and neither holder releases it. */
  leaseTurnsMs: 120_000,
  /** A lease needs this many renewals before a first-time holder counts as a stranger. */
  leaseRenewals: 3,
  /** Shortest pause between two reports on one lease. */
  leaseReportMs: 15_000,
  /** Most pods remembered that sent requests, and most pods that were deleted. */
  pods: 10_000,
  /** How long a renewal by a deleted pod may have been on its way to the proxy, in ms. */
  podGoneMs: 1000,
  /** Characters read of a token's claims, and kept of a lease's holder name. */
  claimsChars: 16 * 1024,
  holderChars: 256,
} as const;
