/** Limits of the admin port, its API and the commands that use it, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const adminLimits = {
  /** Time to live of reviews: of a token as in the apiserver's delegated authentication, of an access as in the kubelet. */
  tokenReviewedMs: 10_000,
  accessAllowedMs: 300_000,
  accessDeniedMs: 30_000,
  /** Capacity for each kind of review: every operator's token at every path. */
  reviewsKept: 2000,
  /** A second scrape within this time gets the same text: scrapes must not occupy the data path's thread. */
  scrapeReuseMs: 1000,
  /** The port of metrics and probes: its clients are a few Prometheus servers and kubelets, and send no bodies. */
  adminSockets: 64,
  adminHeaderBytes: 8 * KiB,
  /** For the API with authorization: a token with 400 groups takes 12 KiB. */
  adminTokenHeaderBytes: 24 * KiB,
  adminRequestMs: 10_000,
  /**
   * Pending requests of one socket. No known client pipelines here, and node:http allocates 4 KiB for each of the 2,000
   * heads that one read may contain, on up to 64 sockets in one turn.
   */
  adminWaiting: 4,
  /** Heap of the probe thread in MiB: it needs 5, and 64 sockets at their limits take 10 more. */
  probeThreadHeapMiB: 32,
  /**
   * probePatienceMs: how long a probe waits for the event loop before it gets the last known answer; half of the shortest
   * timeout of common load balancers. standstillMs: how long the event loop may leave a probe unanswered before the probe
   * fails. No garbage collection and no reload takes a tenth of that; a kubelet probes every ten seconds, and restarts
   * only after several failures in a row.
   */
  probePatienceMs: 50,
  standstillMs: 5000,
  /** The JSON API: rows of a page, and the highest offset. All of 50,000 watches take 100 pages. */
  apiPage: 100,
  apiPageMost: 500,
  apiOffset: 100_000,
  /** Journal entries kept for clients that reconnect: some minutes of a busy proxy, 1 MiB. */
  eventsKept: 2000,
  /** Event streams: their number, the backlog of one that reads slowly, and the interval of heartbeats. */
  eventStreams: 16,
  eventBacklogBytes: MiB,
  eventBeatMs: 15_000,
  /** An operation's request body, which contains a reason; and the operator's name and reason in the journal. */
  apiBodyBytes: 4 * KiB,
  operatorChars: 128,
  /** Interval of attempts to open the API's port while another process uses it, such as an older one during an update. */
  apiRetryMs: 1000,
  /** Failed attempts until that is reported: the predecessor closes its port about a second after its successor is ready. */
  apiFailures: 4,
  /** State changes kept for each backend: an hour of one that fails and recovers every two minutes. */
  backendHistory: 64,
} as const;
