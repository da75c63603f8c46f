/** Limits of discovery, each with its reason (see src/base/limits.ts). */
const KiB = 1024;

export const discoveryLimits = {
  /**
   * Milliseconds that one lookup may take. This is also the time that the system's resolver waits for one name server
   * (2 × 5 s).
   */
  discoveryMs: 10_000,
  /**
   * Milliseconds for which a backend that still answers is kept although Kubernetes no longer lists it. An apiserver
   * renews its entry in the list every 10 s (reconcilers/lease.go), and etcd may have to elect a leader first.
   */
  unlistedKeptMs: 60_000,
  /**
   * Milliseconds from a failed lookup to the next one. Doubles with each further failure, up to the configured interval
   * between lookups.
   */
  discoveryRetryMs: 1000,
  /** Milliseconds that one apiserver has to answer before the next is asked. Three attempts fit into one lookup. */
  discoveryAskMs: 3000,
  /** Maximum number of pages of Leases that one lookup reads: eight times as many Leases as there may be apiservers. */
  leasePages: 8,
  /** Maximum number of apiservers that one lookup asks, one after the other. */
  discoveryServers: 3,
  /**
   * Maximum number of bytes of a response. 64 identity Leases take 0.1 MB, and the TokenReview of a user in 2,000 groups
   * as much. JSON.parse takes 70 ms for 256 KiB of nested lists.
   */
  discoveryBytes: 256 * KiB,
  /**
   * Maximum milliseconds for one TokenReview or SubjectAccessReview, all attempts included. The CLI's own timeout is
   * long enough for one review of each kind.
   */
  reviewMs: 4000,
  /** Maximum number of apiservers to which one TokenReview or SubjectAccessReview is sent, one after the other. */
  reviewServers: 2,
  /**
   * Milliseconds that a review may take if a child process must be started first. The start takes one or two seconds.
   */
  reviewChildMs: 6000,
  /**
   * Milliseconds without a reply after which the proxy kills the child process that uses the kubeconfig
   * (kubernetes-child.ts).
   */
  childHungMs: 20_000,
  /**
   * Heap limit, in MiB, of the child process that uses the kubeconfig. The package @kubernetes/client-node alone takes
   * 40 MB of it.
   */
  discoveryHeapMiB: 192,
} as const;
