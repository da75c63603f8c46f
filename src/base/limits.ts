/**
 * Limits that several parts share, each with its reason. The limits of one part are in that part's own limits.ts.
 * Operators change what is in config; the values here keep the process alive whatever the config says. Codes such as A1
 * name attack tests (docs/attacks.md).
 */
const KiB = 1024;
const MiB = 1024 * KiB;

export const limits = {
  /**
   * Largest header list of one message. The honest user of attack test A8 (400 groups, a 12 KiB token) needs 40 KiB;
   * the apiserver accepts 1 MiB (A7).
   */
  headerListBytes: 128 * KiB,
  headerFields: 1024,
  /**
   * A head above this size counts against the buffer limit like waiting body bytes, because it stays in memory as long
   * as its request (A26).
   */
  usualHeadBytes: 16 * KiB,
  /**
   * Largest name or value of one field. Above it nghttp2 and everything built on it ends the session, which may be an
   * upstream connection that many clients share (A7).
   */
  fieldBytes: 64 * KiB,
  /**
   * A request whose target is longer than this is forwarded unchanged: a rewrite could make the field exceed
   * `fieldBytes`.
   */
  changedTargetBytes: 63 * KiB,
  /**
   * Largest config file. 64 backends with long names take 10 KiB. The worst text of this size costs the parser 0.1 s;
   * 256 KiB would cost 2 s.
   */
  configBytes: 64 * KiB,
  /** Largest certificate file with its key, or CA bundle: a hundred RSA certificates are 200 KiB. */
  certificateBytes: 512 * KiB,

  /** Most interim (1xx) heads before the final one (A37). */
  interimHeads: 16,

  /** Bytes written to a socket but not yet taken by the kernel. Above it DATA waits in its stream. */
  socketBacklogBytes: 512 * KiB,

  /** A session without a stream for this long is closed with two GOAWAYs (A25). */
  idleSessionMs: 300_000,

  /** Time for TCP, TLS and the first SETTINGS of a backend. */
  dialMs: 2000,
  /** A timer this late means that our own event loop stalled. That time does not count against any peer (F11). */
  stallMs: 20,
  /** Largest manifest or kubeconfig: a file with all CustomResourceDefinitions of a large operator is 3 MiB. */
  manifestBytes: 8 * MiB,
  /**
   * Most backends that discovery may return, equal to what a configuration may list. A longer answer is a mistake, and
   * the previous result stays.
   */
  discoveredBackends: 64,
  /** Largest service account token file: a token with a dozen audiences is 2 KiB. */
  tokenBytes: 64 * KiB,
  /**
   * Most concurrent reviews of each kind: as many as two admin pages ask for. The second limit applies to TokenReviews
   * from one address, so that a client that guesses tokens cannot lock others out.
   */
  reviewsAtOnce: 32,
  tokenReviewsPerAddress: 4,
  /**
   * How much of the kernel's socket table is read (7,000 sockets), and how often. Sockets beyond that rely on TCP
   * keepalive.
   */
  socketTableBytes: MiB,
  /**
   * Most requests that wait for an upstream connection of one backend, and in the pending queue. More are rejected with
   * a retry hint.
   */
  waitingExchanges: 10_000,
  /**
   * Hedged requests over all backends: burst and rate. A full bucket gives twice its burst at once, so 400, which is
   * what an apiserver serves concurrently by default (--max-requests-inflight). Another backend can therefore take
   * everything in flight at a silent one. The rate is low because a suspect backend gets no new requests.
   */
  hedgeBurst: 200,
  hedgesPerSecond: 100,
  /** Most backends that one request is sent to before its client gets an error. */
  attempts: 3,
  /** Longest duration of a watch whose client sets no timeout: twice --min-request-timeout. */
  watchMostMs: 3_600_000,
  /**
   * If another backend has delivered a version that this one has not, this one's watches are checked after this time
   * (watch.md §6.3 starts with 10 s). With one check per second and a dial they have moved within 10 s. A healthy cache
   * is behind for milliseconds only.
   */
  behindMs: 8_000,
  /**
   * An etcd as kubeadm starts it notifies every cache within 5.5 s, requested or not, and skips one notification after
   * an event.
   */
  progressCheckMs: 12_000,
  /**
   * This many watches from the same version within this time are a replay loop (incident 001); and how many loops are
   * remembered.
   */
  replays: 5,
  replayMs: 60_000,
  replayKeys: 10_000,
  /** Characters of a User-Agent that are kept to recognise a client. */
  userAgentChars: 128,
  /**
   * A group's name has at most 253 characters and a resource's 63. A longer name cannot exist and is truncated before
   * it is remembered.
   */
  resourceChars: 320,
  /**
   * The names in a longer request target are copied, so that remembering a name does not keep the whole target in
   * memory.
   */
  targetChars: 1024,
  /** Time for the TLS handshake and the first bytes, which identify the protocol (A22). */
  handshakeMs: 10_000,
  /** Pause between checks while memory is short: a garbage collection stops the process for 70 ms. */
  heapLookMs: 2000,
  /** A proxy that inherits sockets waits this long for a ready backend; its clients wait in the pending queue. */
  settleMs: 5000,

  /**
   * HTTP/1.1: time from a request's first byte to the end of its head (A22), and for an upload that continues after its
   * response.
   */
  h1HeadMs: 10_000,

  // Observability: metrics, incidents, commands and the log.
  /**
   * Series of one metric family; more are summed under "other". With 360 for requests, 20 families of 60, 8 histograms
   * of 26 and Node's own 70, the total stays below 2,000 whatever clients send (A54).
   */
  familySeries: 60,
  requestSeries: 360,
  labelChars: 64,

  /** Clients named in one incident. */
  incidentClients: 20,
  incidentNameChars: 128,
  incidentTextChars: 300,
  /** Leader election renews every 2 s and its lease lasts 15 s; nodes renew every 10 s and their lease lasts 40 s. */
  leaseQuietMs: 60_000,
  overloadQuietMs: 60_000,
  /** Characters kept of a subject and a User-Agent. */
  subjectChars: 256,
  agentChars: 64,

  /** Anomalies of one kind that are remembered, so that each is reported once a minute. */
  anomalies: 1000,
  anomalyMs: 60_000,

  /** Longest path, User-Agent or name in the admin API. */
  apiTextChars: 512,

  /**
   * Longest field of a log line (A53); lines per second; bytes that stdout has not taken yet (F20). Everything beyond
   * is dropped and counted.
   */
  logFieldChars: 256,
  logLinesPerSecond: 1000,
  logBacklogBytes: MiB,
} as const;
