/** Limits of the callers, locks and pods that are remembered, each with its reason (see src/base/limits.ts). */
export const ledgerLimits = {
  /**
   * Callers that are remembered, about 400 bytes each: a cluster of 1,000 nodes has about as many kubelets,
   * kube-proxies and agents. And how many of them are checked in a row to find an idle one.
   */
  callers: 5000,
  callerTurns: 32,
  /** A caller is new for this long. A caller with fewer requests than the second value is not judged. */
  callerNewMs: 600_000,
  callerRequests: 20,
  callerRelists: 10,
  /** Watched resources remembered per caller: a controller-manager watches 60. */
  callerResources: 100,
  /** Programs that get their own metric label. */
  agents: 50,
  /** Locks: each node has one, each controller another; a lock takes about 600 bytes. */
  locks: 8000,
  /** Per lock: the clients that renewed it last, and its changes of holder. */
  lockRenewers: 8,
  lockHandovers: 8,
  /** Duration of a lock that states none. */
  lockLeastMs: 5000,
  /** Share of a lock's duration: a takeover earlier than this after a renewal did not wait for expiry. */
  lockShare: 0.8,
  /** Two takeovers back within this time without a release mean that two holders alternate. */
  lockTurnsMs: 120_000,
  /** A client needs this many renewals to count as the usual holder. */
  lockRenewals: 3,
  /** Shortest pause between two reports on one lock. */
  lockReportMs: 15_000,
  /** Pods that sent requests, and pods that were deleted, as far as requests reveal it. */
  pods: 10_000,
  /** A deleted pod's last renewal may still have been in flight for this long. */
  podGoneMs: 1000,
  /** Characters read of a token's claims, and kept of a lock's holder. */
  claimsChars: 16 * 1024,
  holderChars: 256,
} as const;
