/**
 * Limits that several folders share, each with its reason. The limits of one folder are in its limits.ts. These
 * values protect the process whatever the config says. Codes such as A1 name attack tests (docs/attacks.md).
 */
const KiB = 1024;
const MiB = 1024 * KiB;

export const limits = {
  /** Largest header list in bytes. A legitimate user with 400 groups and a 12 KiB token needs 40 KiB (A8). */
  headerListBytes: 128 * KiB,
  headerFields: 1024,
  /**
   * Size of a request head in bytes above which the head counts against the buffer limit, like a body. A head stays
   * in memory as long as its request (A26).
   */
  usualHeadBytes: 16 * KiB,
  /**
   * Largest header field in bytes. An HTTP/2 peer that uses nghttp2 ends the session for a larger field, and many
   * clients share an upstream session (A7).
   */
  fieldBytes: 64 * KiB,
  /** Longest request target, in bytes, that the proxy rewrites: the rewritten target must not exceed `fieldBytes`. */
  changedTargetBytes: 63 * KiB,
  /** Largest config file in bytes. 64 backends take 10 KiB. The worst text of this size costs the YAML parser 0.1 s. */
  configBytes: 64 * KiB,
  /** Largest file in bytes with a certificate and key, or a CA bundle: 100 RSA certificates take 200 KiB. */
  certificateBytes: 512 * KiB,

  /** Number of interim (1xx) response heads that may precede the final response head (A37). */
  interimHeads: 16,

  /** Bytes written to a socket that the kernel has not taken yet. Above this number, DATA waits in its stream. */
  socketBacklogBytes: 512 * KiB,

  /** Milliseconds after which the proxy closes a session without streams, with two GOAWAYs (A25). */
  idleSessionMs: 300_000,

  /** Milliseconds that a backend has for TCP, TLS and its first SETTINGS on a new connection. */
  dialMs: 2000,
  /**
   * If a timer fires this many milliseconds late, the proxy's own event loop has stalled. Silence during a stall is
   * no evidence against a peer (F11).
   */
  stallMs: 20,
  /** Largest manifest or kubeconfig in bytes. All CustomResourceDefinitions of a large operator take 3 MiB. */
  manifestBytes: 8 * MiB,
  /** Most backends that discovery may return and a config may list. A longer discovery result is rejected. */
  discoveredBackends: 64,
  /** Largest file in bytes with a service account's token. A token with a dozen audiences takes 2 KiB. */
  tokenBytes: 64 * KiB,
  /** Number of concurrent TokenReviews, and of concurrent SubjectAccessReviews: as many as two open admin pages need. */
  reviewsAtOnce: 32,
  /** Concurrent TokenReviews for one address, so that a client that guesses tokens cannot block other addresses. */
  tokenReviewsPerAddress: 4,
  /**
   * Number of requests that may wait for one backend's connections, and number that may wait in the pending queue.
   * The proxy rejects further requests.
   */
  waitingExchanges: 10_000,
  /**
   * Burst and rate of hedged requests, over all backends. A full bucket allows two bursts at once, so that another
   * backend can take over all requests of a backend that stopped answering: an apiserver serves as many by default
   * (--max-requests-inflight). The rate is low because a suspect backend gets no new requests.
   */
  hedgeBurst: 200,
  hedgesPerSecond: 100,
  /** Number of backends that one request is sent to before its client gets an error. */
  attempts: 3,
  /** Milliseconds that a watch lasts if its client sets no timeout: twice --min-request-timeout of an apiserver. */
  watchMostMs: 3_600_000,
  /**
   * If a backend still lacks a version this many milliseconds after another backend delivered it, the backend's
   * watches are checked (watch.md §6.3). A healthy watch cache is behind for milliseconds. The check runs every
   * second, so the watches have moved within 10 s.
   */
  behindMs: 8_000,
  /**
   * Milliseconds after a list within which the backend's watch cache must reach the list's version. An etcd with
   * kubeadm's settings notifies every cache within 5.5 s, but skips one notification after an event.
   */
  progressCheckMs: 12_000,
  /** Number of watches from the same version, within `replayMs`, that make a replay loop (incident 001). */
  replays: 5,
  replayMs: 60_000,
  /** Number of watches that the proxy remembers in order to find replay loops. */
  replayKeys: 10_000,
  /** Characters of a User-Agent that are kept to recognise a client. */
  userAgentChars: 128,
  /** Characters kept of "group/resource". No real name is longer: a group has at most 253, a resource 63. */
  resourceChars: 320,
  /**
   * Length of a request target above which the proxy copies the parts that it keeps. Without the copy, a substring
   * would keep the whole target in memory.
   */
  targetChars: 1024,
  /** Milliseconds that a client has for the TLS handshake and the first bytes, which identify the protocol (A22). */
  handshakeMs: 10_000,
  /** Milliseconds between checks while memory is short. A check may run a garbage collection of 70 ms. */
  heapLookMs: 2000,
  /** Milliseconds that a process with inherited sockets waits for a ready backend before it accepts clients. */
  settleMs: 5000,

  /** HTTP/1.1: milliseconds for the head of a request (A22), or for the rest of an upload after its response. */
  h1HeadMs: 10_000,

  /**
   * Number of series of one metric family; further series are summed under "other". With 360 series for requests, 20
   * families of 60, 8 histograms of 26 and Node's 70, the total stays below 2,000 whatever clients send (A54).
   */
  familySeries: 60,
  requestSeries: 360,
  labelChars: 64,

  /** Number of clients that one incident names. */
  incidentClients: 20,
  /** Milliseconds without a suspect renewal until a lease incident ends. Usual leases last 40 s at most. */
  leaseQuietMs: 60_000,
  /** Characters kept of a caller's identity. */
  subjectChars: 256,
  /** Characters kept of a caller's program name. */
  agentChars: 64,

  /** Number of remembered anomalies of one kind, so that each is reported only once in `anomalyMs`. */
  anomalies: 1000,
  anomalyMs: 60_000,

  /** Characters to which the admin API shortens a path, User-Agent or name. */
  apiTextChars: 512,

  /** Characters of one field of a log line (A53). Longer fields are cut. */
  logFieldChars: 256,
  /** Log lines per second. Further lines are dropped and counted. */
  logLinesPerSecond: 1000,
  /** Bytes of log lines that may wait for stdout. Further lines are dropped and counted (F20). */
  logBacklogBytes: MiB,
} as const;
