/** What bounds what is remembered of callers, locks and pods, each with its reason (see src/base/limits.ts). */
export const ledgerLimits = {
  /**
   * Callers that are remembered, some 400 bytes each: a cluster of 1,000 nodes has about as many kubelets, kube-proxies and
   * agents. Who is looked at in a row to find one that is idle.
   */
  callers: 5000,
  callerTurns: 32,
  /** New: seen first within this time. Fewer requests than these say nothing about a caller. */
  callerNewMs: 600_000,
  callerRequests: 20,
  callerRelists: 10,
  /** Resources of which it is known that one caller has watched them: a controller-manager watches 60. */
  callerResources: 100,
  /** Programs that a metric names. */
  agents: 50,
  /** Locks: each node has one, each controller another; a lock takes some 600 bytes. */
  locks: 8000,
  /** Of one lock: who renewed it last, and its changes of holder. */
  lockRenewers: 8,
  lockHandovers: 8,
  /** A lock that names no duration. */
  lockLeastMs: 5000,
  /** Of its duration: taken earlier than that after a renewal, it was not let lapse. */
  lockShare: 0.8,
  /** Taken back within so long, twice without having been let go: by turns. */
  lockTurnsMs: 120_000,
  /** Before so many renewals nobody is known to be its usual holder. */
  lockRenewals: 3,
  /** Between two words on one lock. */
  lockToldMs: 15_000,
  /** Pods that asked, and pods that were deleted, as far as requests show. */
  pods: 10_000,
  /** A deleted pod's last renewal may have been under way. */
  podGoneMs: 1000,
} as const;
