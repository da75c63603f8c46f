/**
 * Limits that several folders share, each with its reason; limits of one folder are in its limits.ts. The values keep
 * the process alive whatever the config says. Codes such as A1 name attack tests (docs/attacks.md).
 */
const KiB = 1024;
const MiB = 1024 * KiB;

export const limits = {
  /** Largest header list: an honest user with 400 groups and a 12 KiB token needs 40 KiB (A8). */
  headerListBytes: 128 * KiB,
  headerFields: 1024,
  /** A larger request head counts against the buffer limit like a body, because it stays as long as its request (A26). */
  usualHeadBytes: 16 * KiB,
  /** Largest header field. nghttp2 ends the session for a larger one, and many clients share an upstream session (A7). */
  fieldBytes: 64 * KiB,
  /** Longest request target that the proxy rewrites, because a rewrite must not make the field exceed `fieldBytes`. */
  changedTargetBytes: 63 * KiB,
  /** Largest config file: 64 backends take 10 KiB. The worst text of this size costs the YAML parser 0.1 s. */
  configBytes: 64 * KiB,
  /** Largest certificate file with its key, or CA bundle: a hundred RSA certificates take 200 KiB. */
  certificateBytes: 512 * KiB,

  /** Number of interim (1xx) heads that may precede the final one (A37). */
  interimHeads: 16,

  /** Bytes written to a socket but not yet taken by the kernel. Above this, DATA waits in its stream. */
  socketBacklogBytes: 512 * KiB,

  /** Milliseconds after which a session without streams is closed with two GOAWAYs (A25). */
  idleSessionMs: 300_000,

  /** Milliseconds that TCP, TLS and the first SETTINGS of a backend may take. */
  dialMs: 2000,
  /** Milliseconds by which a late timer shows a stall of our own event loop, which counts against no peer (F11). */
  stallMs: 20,
  /** Largest manifest or kubeconfig: all CustomResourceDefinitions of a large operator take 3 MiB. */
  manifestBytes: 8 * MiB,
  /** Number of backends that discovery may return; a config may list as many. A longer result is taken for a mistake. */
  discoveredBackends: 64,
  /** Largest service account token file: a token with a dozen audiences takes 2 KiB. */
  tokenBytes: 64 * KiB,
  /** Number of concurrent reviews of each kind: as many as two open admin pages need. */
  reviewsAtOnce: 32,
  /** Number of concurrent TokenReviews for one address, so that a client that guesses tokens does not lock others out. */
  tokenReviewsPerAddress: 4,
  /** Number of requests that may wait for one backend's connections, or in the pending queue; more are rejected. */
  waitingExchanges: 10_000,
  /**
   * Burst and rate of hedged requests, over all backends. A full bucket allows two bursts at once, as many requests as
   * an apiserver serves by default (--max-requests-inflight), so that another backend can take over all that a silent
   * one had. The rate is low because a suspect backend gets no new requests.
   */
  hedgeBurst: 200,
  hedgesPerSecond: 100,
  /** Number of backends that one request is sent to before its client gets an error. */
  attempts: 3,
  /** Milliseconds that a watch lasts if its client sets no timeout: twice --min-request-timeout. */
  watchMostMs: 3_600_000,
  /**
   * Milliseconds after which the watches of a backend are checked if it lacks a version that another backend has
   * delivered (watch.md §6.3). A healthy cache is behind for milliseconds; checked each second, watches have moved
   * within 10 s.
   */
  behindMs: 8_000,
  /**
   * Milliseconds after a list until the backend's cache must have reached its version. An etcd as kubeadm starts it
   * notifies every cache within 5.5 s, but skips one notification after an event.
   */
  progressCheckMs: 12_000,
  /** Number of watches from the same version, within `replayMs`, that make a replay loop (incident 001). */
  replays: 5,
  replayMs: 60_000,
  /** Number of watches that are remembered to find replay loops. */
  replayKeys: 10_000,
  /** Characters of a User-Agent that are kept to recognise a client. */
  userAgentChars: 128,
  /** Characters of "group/resource". A group has at most 253 and a resource 63, so that no real name is truncated. */
  resourceChars: 320,
  /** Characters of a request target above which parts of it are copied, because a substring keeps the whole target. */
  targetChars: 1024,
  /** Milliseconds for the TLS handshake and the first bytes, which identify the protocol (A22). */
  handshakeMs: 10_000,
  /** Milliseconds between checks while memory is short. A check may collect garbage, which takes 70 ms. */
  heapLookMs: 2000,
  /** Milliseconds that a process with inherited sockets waits for a ready backend before it accepts clients. */
  settleMs: 5000,

  /** HTTP/1.1: milliseconds for the head of a request (A22), and for the rest of an upload after its response. */
  h1HeadMs: 10_000,

  /**
   * Series of one metric family; further ones are summed under "other". With 360 for requests, 20 families of 60, 8
   * histograms of 26 and Node's 70, the total stays below 2,000 whatever clients send (A54).
   */
  familySeries: 60,
  requestSeries: 360,
  labelChars: 64,

  /** Number of clients that one incident names. */
  incidentClients: 20,
  /** Milliseconds without a suspect renewal after which a lease incident ends; the longest usual lease lasts 40 s. */
  leaseQuietMs: 60_000,
  /** Characters kept of a caller's identity. */
  subjectChars: 256,
  /** Characters kept of a caller's program name. */
  agentChars: 64,

  /** Number of anomalies of one kind that are remembered, to report each once in `anomalyMs`. */
  anomalies: 1000,
  anomalyMs: 60_000,

  /** Characters to which the admin API shortens a path, User-Agent or name. */
  apiTextChars: 512,

  /** Characters of one field of a log line (A53). Longer fields are cut. */
  logFieldChars: 256,
  /** Log lines per second. Further lines are dropped and counted. */
  logLinesPerSecond: 1000,
  /** Bytes of log lines that stdout has not taken yet. Further lines are dropped and counted (F20). */
  logBacklogBytes: MiB,
} as const;
