/** What bounds discovery, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const discoveryLimits = {
  /** A look that takes longer is given up: the resolver's own patience is 2 x 5 s for each of three servers. */
  discoveryMs: 10_000,
  /**
   * So long a backend that Kubernetes lists no more is kept if it answers: an apiserver renews its place every 10 s
   * (reconcilers/lease.go), its identity Lease too, and etcd may need an election first.
   */
  unlistedKeptMs: 60_000,
  /** After a failed look; doubles up to the interval. */
  discoveryRetryMs: 1000,
  /** One apiserver's time to answer the child before it asks another: three of them fit into a look. */
  discoveryAskMs: 3000,
  discoveryServers: 3,
  /** A list of 500 EndpointSlices or Leases takes 1 MB; JSON.parse of four takes 40 ms. */
  discoveryBytes: 4 * MiB,
  /** A cluster's time for one review of who asks the API, from its apiservers together; two reviews and our own CLI waits. */
  reviewMs: 4000,
  reviewServers: 2,
  /** And that of the child, which takes a second or two to start; one that says nothing for longer hangs. */
  reviewChildMs: 6000,
  reviewHungMs: 20_000,
  /** Of the child's heap; the package alone takes 40 MB of it. */
  discoveryHeapMiB: 192,
} as const;
