/** Limits of the admin ports, the JSON API and the commands that use it (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const adminLimits = {
  /** Milliseconds that the result of a TokenReview is cached, as in the apiserver's delegated authentication. */
  tokenReviewedMs: 10_000,
  /**
   * Milliseconds that the result of a SubjectAccessReview is cached, if it allows (`accessAllowedMs`) or denies access
   * (`accessDeniedMs`), as in the kubelet.
   */
  accessAllowedMs: 300_000,
  accessDeniedMs: 30_000,
  /** Maximum number of cached results of each kind of review: enough for each operator's token at each path. */
  reviewsKept: 2000,
  /** Milliseconds for which all scrapes get the same text, because producing the text delays requests. */
  scrapeReuseMs: 1000,
  /** Maximum number of sockets on each admin port. A few Prometheus servers, kubelets and operators connect. */
  adminSockets: 64,
  /** Maximum bytes of a request's headers on a port without authorization, where requests contain no token. */
  adminHeaderBytes: 8 * KiB,
  /** Maximum bytes of a request's headers on a port with authorization. A token with 400 groups takes 12 KiB. */
  adminTokenHeaderBytes: 24 * KiB,
  /**
   * Maximum milliseconds for a request to arrive, for an idle connection to stay open, and for the answer to a scrape.
   */
  adminRequestMs: 10_000,
  /** Maximum number of unanswered requests on one socket, because 2,000 pipelined requests would allocate 8 MiB. */
  adminWaiting: 4,
  /** Maximum number of unanswered requests to the JSON API: 64 sockets with four each. */
  queuedReplies: 256,
  /** Heap limit of the thread that answers probes. It needs 5 MiB, and 64 sockets at their limits take 10 MiB more. */
  probeThreadHeapMiB: 32,
  /**
   * Milliseconds that a probe waits for an answer from the main thread's event loop: half of the shortest common
   * timeout of load balancers' health checks.
   */
  probePatienceMs: 50,
  /**
   * Probes fail if the main thread's event loop has not answered for this many milliseconds. A reload keeps the loop
   * busy for less than 500 ms.
   */
  standstillMs: 5000,
  /** Default number of rows on a page of a list. */
  apiPage: 100,
  /** Maximum number of rows on a page. A list of 50,000 watches then takes 100 pages. */
  apiPageMost: 500,
  /** Maximum number of rows that a request to a list can skip (parameter `offset`). */
  apiOffset: 100_000,
  /**
   * Maximum number of groups (values of a column) whose rows one request to a list counts: enough for resources, nodes
   * or programs of a large cluster.
   */
  apiGroups: 10_000,
  /**
   * Maximum number of journal entries kept for readers of the event stream that reconnect: of those that clients cannot
   * cause, the last hours, and of the others, the last minutes of a busy proxy.
   */
  eventsKept: 1000,
  clientEventsKept: 1000,
  /** Maximum number of open event streams. */
  eventStreams: 16,
  /** Maximum number of bytes that wait for one slow client of an event stream. */
  eventBacklogBytes: MiB,
  /** Milliseconds between two heartbeats of an event stream. Each one checks again whether the client may read. */
  eventBeatMs: 15_000,
  /** Maximum bytes of the body of a request for an operation. */
  apiBodyBytes: 4 * KiB,
  /** Maximum length of the operator's name, and of the reason for an operation. */
  operatorChars: 128,
  /**
   * Milliseconds between attempts to open an admin port while another process, such as the predecessor, listens on it.
   */
  portRetryMs: 1000,
  /**
   * Number of failed attempts to open an admin port for the first time after which the failure is reported. During an
   * update, the predecessor closes the port within a second.
   */
  portFailures: 4,
  /** Duration of a step of the history in ms, and number of steps that are kept (`historySteps`): one hour. */
  historyStepMs: 5000,
  historySteps: 720,
  /** Maximum number of backends with a history: all that a cluster may have. Each takes 49 KB. */
  historyBackends: 64,
  /** Maximum number of state changes kept for each backend: enough for an hour of failures every two minutes. */
  backendHistory: 64,
} as const;
