/** Limits of discovery, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const discoveryLimits = {
  /** Milliseconds that one lookup may take. The system's resolver waits 2 × 5 s for each name server. */
  discoveryMs: 10_000,
  /**
   * Milliseconds for which a backend that still answers is kept although Kubernetes no longer lists it. An apiserver
   * renews its entry in the list every 10 s (reconcilers/lease.go), and etcd may have to elect a leader first.
   */
  unlistedKeptMs: 60_000,
  /** Milliseconds after a failed lookup until the next. Doubles with each further failure, up to the interval. */
  discoveryRetryMs: 1000,
  /** Milliseconds that one apiserver has to answer before the next is asked. Three attempts fit into one lookup. */
  discoveryAskMs: 3000,
  /** Maximum number of servers that one lookup asks. */
  discoveryServers: 3,
  /** Maximum number of bytes of a response. 500 EndpointSlices take 1 MB, and JSON.parse takes 40 ms for 4 MB. */
  discoveryBytes: 4 * MiB,
  /**
   * Milliseconds for one TokenReview or SubjectAccessReview, with all attempts. The CLI waits long enough for one of
   * each.
   */
  reviewMs: 4000,
  /** Maximum number of servers that one review asks. */
  reviewServers: 2,
  /** Milliseconds that a review may take if a child process must be started first, which takes one or two seconds. */
  reviewChildMs: 6000,
  /** Milliseconds without a reply after which the proxy kills the child process. */
  childHungMs: 20_000,
  /** Heap limit of the child process in MiB; its npm package alone takes 40 MB. */
  discoveryHeapMiB: 192,
} as const;
