/**
 * Limits of the admin ports, the JSON API and the commands that use it, each with its reason (see src/base/limits.ts).
 */
const KiB = 1024;
const MiB = 1024 * KiB;

export const adminLimits = {
  /** How long the result of a TokenReview is cached: as in the apiserver's delegated authentication. */
  tokenReviewedMs: 10_000,
  /** How long the result of a SubjectAccessReview is cached: as in the kubelet. */
  accessAllowedMs: 300_000,
  accessDeniedMs: 30_000,
  /** Maximum number of cached results of each kind of review: enough for the token of every operator at every path. */
  reviewsKept: 2000,
  /** A second scrape within this time gets the text of the first, to spare the data path's thread. */
  scrapeReuseMs: 1000,
  /** Limits of both ports. Their clients are a few Prometheus servers, kubelets and operators. */
  adminSockets: 64,
  adminHeaderBytes: 8 * KiB,
  /** Header limit of the API with authorization: a token with 400 groups takes 12 KiB. */
  adminTokenHeaderBytes: 24 * KiB,
  adminRequestMs: 10_000,
  /**
   * Maximum number of unanswered requests on one socket. No known client pipelines requests here. Without this limit,
   * one read of 2,000 pipelined heads would allocate 8 MiB, on up to 64 sockets in one turn of the event loop.
   */
  adminWaiting: 4,
  /** Heap limit of the probe thread in MiB: the thread needs 5, and 64 sockets at their limits take 10 more. */
  probeThreadHeapMiB: 32,
  /** How long a probe waits for the event loop: half of the shortest timeout of common load balancers. */
  probePatienceMs: 50,
  /**
   * How long the event loop may leave a probe unanswered before the probe fails. No garbage collection and no reload takes
   * a tenth of that. A kubelet probes every ten seconds, and restarts the container only after several failures in a row.
   */
  standstillMs: 5000,
  /** Rows of a page (default, maximum), and the highest offset. A list of 50,000 watches takes 100 pages. */
  apiPage: 100,
  apiPageMost: 500,
  apiOffset: 100_000,
  /** Number of journal entries kept for clients that reconnect: some minutes of a busy proxy, about 1 MiB. */
  eventsKept: 2000,
  /** Event streams: maximum number, maximum backlog for a slow client, interval of heartbeats. */
  eventStreams: 16,
  eventBacklogBytes: MiB,
  eventBeatMs: 15_000,
  /** Operations: maximum size of the body; maximum length of the operator's name and of the reason. */
  apiBodyBytes: 4 * KiB,
  operatorChars: 128,
  /** Interval of attempts to open the API's port while another process uses it, such as a predecessor. */
  apiRetryMs: 1000,
  /** Failed attempts until they are reported. A predecessor closes its port about a second after the handover. */
  apiFailures: 4,
  /** State changes kept for each backend: an hour of a backend that fails and recovers every two minutes. */
  backendHistory: 64,
} as const;
