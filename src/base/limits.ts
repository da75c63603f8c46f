/**
 * Limits that several folders share, each with its reason. No configuration changes them. The limits of a single folder
 * are in its limits.ts. Codes such as A1 name attack tests (docs/attacks.md).
 */
const KiB = 1024;
const MiB = 1024 * KiB;

export const limits = {
  /**
   * Maximum size of a header list in bytes, and maximum number of its fields. A user with 400 groups and a 12 KiB token
   * needs 40 KiB (A8).
   */
  headerListBytes: 128 * KiB,
  /**
   * Maximum number of fields in an HTTP/1.1 head, as in kube-apiserver 1.38. An HTTP/2 head reaches `headerListBytes`
   * with fewer fields, because HPACK counts each as 32 bytes more.
   */
  headerFields: 16_384,
  /**
   * Maximum number of paths whose watches share one classification (`sharedInfo`). Clients watch a few dozen resources,
   * and single namespaces of them.
   */
  watchPaths: 2000,
  /**
   * A request head of more bytes than this counts against the buffer limit, because the head stays in memory as long as
   * the request (A26).
   */
  usualHeadBytes: 16 * KiB,
  /**
   * Maximum size in bytes of a watch's request head that the watches of a connection share. The connection keeps the last
   * such head while it is idle (A26).
   */
  sharedHeadBytes: 4 * KiB,
  /**
   * Maximum size of a header field in bytes. An HTTP/2 peer that uses nghttp2 ends the session for a larger field, and
   * many clients share an upstream session (A7).
   */
  fieldBytes: 64 * KiB,
  /**
   * The proxy does not rewrite a request target that has more bytes than this, because the result might exceed
   * `fieldBytes`.
   */
  changedTargetBytes: 63 * KiB,
  /** Maximum size of a config file in bytes. 64 backends take 10 KiB. The worst file is parsed within 0.1 s. */
  configBytes: 64 * KiB,
  /** Maximum size in bytes of a certificate file, a key file or a CA bundle. 100 RSA certificates take 200 KiB. */
  certificateBytes: 512 * KiB,

  /** Maximum number of interim (1xx) response heads before the final response head (A37). */
  interimHeads: 16,

  /** While more bytes than this wait in Node for the kernel to accept them, further DATA stays queued in its stream. */
  socketBacklogBytes: 512 * KiB,

  /** Milliseconds after which the proxy closes a session without streams, with two GOAWAYs (A25). */
  idleSessionMs: 300_000,

  /** Milliseconds that a backend has for TCP, TLS and its first SETTINGS on a new connection. */
  dialMs: 2000,
  /**
   * If a timer fires more than this many ms late, the event loop was stalled. A peer's silence during a stall is no
   * evidence (F11).
   */
  stallMs: 20,
  /**
   * Maximum size of a manifest or kubeconfig in bytes. All CustomResourceDefinitions of a large operator take 3 MiB.
   */
  manifestBytes: 8 * MiB,
  /** Maximum number of backends in a config or a discovery result. A longer discovery result is rejected. */
  discoveredBackends: 64,
  /** Maximum size in bytes of a service account's token file. A token with a dozen audiences takes 2 KiB. */
  tokenBytes: 64 * KiB,
  /**
   * Maximum number of concurrent reviews of each kind (TokenReview, SubjectAccessReview). That is enough for two admin
   * pages.
   */
  reviewsAtOnce: 32,
  /**
   * Maximum number of concurrent TokenReviews for one address, so that a client that guesses tokens does not block
   * others.
   */
  tokenReviewsPerAddress: 4,
  /** Maximum number of requests that wait for one backend's connections, and of requests in the pending queue. */
  waitingExchanges: 10_000,
  /**
   * Burst, and rate per second, of the token bucket for hedged requests to all backends together. After a pause, the
   * bucket allows two bursts. That is enough for all requests of a failed apiserver, 400 by default
   * (--max-requests-inflight). A low rate is enough, because a suspect backend gets no new requests.
   */
  hedgeBurst: 200,
  hedgesPerSecond: 100,
  /** Maximum number of attempts of one request before the proxy reports an error. Two of them may go to one backend. */
  attempts: 3,
  /** Maximum ms that a watch lasts if its client sets no timeout: twice the default of --min-request-timeout. */
  watchMostMs: 3_600_000,
  /**
   * If a backend has not delivered a version within this many ms after another backend, the proxy checks whether its
   * cache is stalled (watch.md §6.3). A healthy watch cache is only milliseconds behind. The check runs every second,
   * so the watches have moved within 10 s.
   */
  behindMs: 8_000,
  /**
   * After a list that was read from etcd, the backend's watch cache must reach the list's version within this many ms.
   * With kubeadm's settings, etcd notifies every cache within 5.5 s, but skips one notification after an event, so a
   * cache may wait twice as long.
   */
  progressCheckMs: 12_000,
  /**
   * If one client starts this many watches of a resource from the same version within `replayMs`, they count as a
   * replay loop (incident 001).
   */
  replays: 5,
  replayMs: 60_000,
  /** Number of watches remembered to find replay loops. */
  replayKeys: 10_000,
  /** Number of characters that are kept of a User-Agent, to recognise a client by it. */
  userAgentChars: 128,
  /** Number of characters kept of "group/resource": a group has at most 253, a resource 63. */
  resourceChars: 320,
  /**
   * If a request target has more characters than this, its parts are copied, because a substring would keep the whole
   * target in memory.
   */
  targetChars: 1024,
  /** Milliseconds that a client has for the TLS handshake and the first bytes, which identify the protocol (A22). */
  handshakeMs: 10_000,
  /** Milliseconds between checks of the heap while memory is short. A check may run a garbage collection of 70 ms. */
  heapLookMs: 2000,
  /** Milliseconds that a process with inherited sockets waits for a ready backend before it accepts clients. */
  settleMs: 5000,

  /**
   * Milliseconds that an HTTP/1.1 client has for the head of a request (A22). If the response ends before the request's
   * body, the client has the same time again for the rest of the body.
   */
  h1HeadMs: 10_000,

  /**
   * Maximum number of series of one metric family; further series are summed under "other". With a few backends, all
   * families together stay below 2,200 series, whatever clients send (A54), and with 64 backends below 5,600. In a
   * process with several clusters, this applies to each cluster.
   */
  familySeries: 60,
  /**
   * Maximum number of clusters with series of their own in one metric, as many as a configuration may have. Further
   * clusters, which reloads have added, share the cluster "other".
   */
  clusterNames: 16,
  /** Maximum number of series for requests by program and verb: 30 programs that use four verbs. */
  programSeries: 120,
  /** Maximum number of series for watches by backend and resource: 40 resources at three backends. */
  watchSeries: 120,
  /** Maximum number of series for requests by verb, status code and backend. */
  requestSeries: 360,
  /** Number of characters that are kept of a label's value. */
  labelChars: 64,

  /** Maximum number of clients that one incident names. */
  incidentClients: 20,
  /** Milliseconds after a lease's last suspect renewal until its incident ends. A lease usually lasts 40 s at most. */
  leaseQuietMs: 60_000,
  /** Number of characters that are kept of a user's name. */
  subjectChars: 256,
  /** Number of characters that are kept of a program's name in a User-Agent. */
  agentChars: 64,

  /** Maximum number of remembered anomalies of one kind. Each is reported only once in `anomalyMs`. */
  anomalies: 1000,
  anomalyMs: 60_000,

  /** Number of characters that are kept of a path, or of a text in the admin API. */
  apiTextChars: 512,

  /** Maximum number of characters in one field of a log line (A53). Longer fields are cut. */
  logFieldChars: 256,
  /** Minimum number of ms between two log lines that report dropped lines. */
  logDropsMs: 1000,
  /** Maximum number of bytes of log lines that wait for stdout. Further lines are dropped and counted (F20). */
  logBacklogBytes: MiB,
} as const;
