/** Limits of discovery, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const discoveryLimits = {
  /** Longest lookup. The resolver itself waits 2 x 5 s for each of three servers. */
  discoveryMs: 10_000,
  /**
   * How long a backend that Kubernetes no longer lists is kept if it answers. An apiserver renews its entry every 10 s
   * (reconcilers/lease.go), its identity Lease too, and etcd may need an election first.
   */
  unlistedKeptMs: 60_000,
  /** Pause after a failed lookup; doubles up to the interval. */
  discoveryRetryMs: 1000,
  /** Time for one apiserver's response to the child before it tries another: three fit into a lookup. */
  discoveryAskMs: 3000,
  discoveryServers: 3,
  /** Largest response: 500 EndpointSlices or Leases take 1 MB; JSON.parse of four MB takes 40 ms. */
  discoveryBytes: 4 * MiB,
  /** Time for one review by a cluster, over all its apiservers. Our own CLI waits for two reviews. */
  reviewMs: 4000,
  reviewServers: 2,
  /**
   * The same with the child's start, which takes a second or two. A child that is silent for longer than the second value
   * hangs.
   */
  reviewChildMs: 6000,
  childHungMs: 20_000,
  /** The child's heap limit; the package alone takes 40 MB of it. */
  discoveryHeapMiB: 192,
} as const;
