/**
 * Limits of the admin ports, the JSON API and the commands that use it, each with its reason (see src/base/limits.ts).
 */
const KiB = 1024;
const MiB = 1024 * KiB;

export const adminLimits = {
  /** Milliseconds that the result of a TokenReview is cached, as in the apiserver's delegated authentication. */
  tokenReviewedMs: 10_000,
  /** Milliseconds that an allowing and a denying SubjectAccessReview are cached, as in the kubelet. */
  accessAllowedMs: 300_000,
  accessDeniedMs: 30_000,
  /** Number of cached results of each kind of review: enough for each operator's token at each path. */
  reviewsKept: 2000,
  /** Milliseconds in which all scrapes get the text of the first, to spare the data path's thread. */
  scrapeReuseMs: 1000,
  /** Most sockets, and bytes of headers, on each admin port. A few Prometheus servers, kubelets and operators use it. */
  adminSockets: 64,
  adminHeaderBytes: 8 * KiB,
  /** Bytes of headers on the API's port with authorization. A token with 400 groups takes 12 KiB. */
  adminTokenHeaderBytes: 24 * KiB,
  adminRequestMs: 10_000,
  /**
   * Number of unanswered requests on one socket. No known client pipelines requests here. Without this limit, one read
   * of 2,000 pipelined heads would allocate 8 MiB, on up to 64 sockets in one turn of the event loop.
   */
  adminWaiting: 4,
  /** Heap limit of the probe thread in MiB: the thread needs 5, and 64 sockets at their limits take 10 more. */
  probeThreadHeapMiB: 32,
  /** Milliseconds that a probe waits for the event loop: half of the shortest usual timeout of load balancers. */
  probePatienceMs: 50,
  /**
   * Milliseconds that the event loop may leave a probe unanswered before the probe fails. Garbage collections and
   * reloads take less than a tenth of this. A kubelet probes every ten seconds, and restarts the container only after
   * several failures in a row.
   */
  standstillMs: 5000,
  /** Number of rows on a page (default and maximum), and the highest offset. A list of 50,000 watches takes 100 pages. */
  apiPage: 100,
  apiPageMost: 500,
  apiOffset: 100_000,
  /** Number of journal entries kept for clients that reconnect: some minutes of a busy proxy, about 1 MiB. */
  eventsKept: 2000,
  /** Event streams: their number, bytes that may wait for a slow client, and milliseconds between heartbeats. */
  eventStreams: 16,
  eventBacklogBytes: MiB,
  eventBeatMs: 15_000,
  /** Operations: bytes of a request body, and characters of the operator's name and of the reason. */
  apiBodyBytes: 4 * KiB,
  operatorChars: 128,
  /** Milliseconds between attempts to open the API's port while another process, such as a predecessor, uses it. */
  apiRetryMs: 1000,
  /** Failed attempts to open the port before a report: a predecessor closes it about a second after the handover. */
  apiFailures: 4,
  /** Number of state changes kept for each backend: enough for an hour of failures every two minutes. */
  backendHistory: 64,
} as const;
