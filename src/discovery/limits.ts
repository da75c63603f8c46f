/** Limits of discovery, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const discoveryLimits = {
  /** Milliseconds that one lookup may take. The system's resolver waits 2 × 5 s for each of three servers. */
  discoveryMs: 10_000,
  /**
   * Milliseconds that an answering backend is kept although Kubernetes no longer lists it. An apiserver renews its
   * entry every 10 s (reconcilers/lease.go), and etcd may have to elect a leader first.
   */
  unlistedKeptMs: 60_000,
  /** Milliseconds after which a failed lookup is repeated. The pause doubles up to the interval. */
  discoveryRetryMs: 1000,
  /** Milliseconds that one apiserver may take to answer before the next one is asked: three fit into a lookup. */
  discoveryAskMs: 3000,
  discoveryServers: 3,
  /** Bytes of the largest response: 500 EndpointSlices or Leases take 1 MB. JSON.parse takes 40 ms for 4 MB. */
  discoveryBytes: 4 * MiB,
  /** Milliseconds that one review may take, over all apiservers of the cluster. The CLI waits for two reviews. */
  reviewMs: 4000,
  reviewServers: 2,
  /** Milliseconds that one review may take with the start of a child process, which takes a second or two. */
  reviewChildMs: 6000,
  /** Milliseconds without a reply after which a child is killed. */
  childHungMs: 20_000,
  /** Heap limit of the child; the npm package alone takes 40 MB. */
  discoveryHeapMiB: 192,
} as const;
