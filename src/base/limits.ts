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
  /** Deepest nesting in a config file. The schema is five levels deep; anything deeper only loads the parser's stack. */
  configDepth: 16,
  /** Most problems reported for one config file. Operators do not read more lines than this. */
  configProblems: 50,
  /** Largest certificate file with its key, or CA bundle: a hundred RSA certificates are 200 KiB. */
  certificateBytes: 512 * KiB,

  /**
   * After this many resets before an answer an upstream connection takes no new streams. All of its 80 streams may
   * still be reset after that. A backend that is another watchkeeper allows 200 in all; kube-apiserver was measured to
   * bear 500 whose handlers keep running.
   */
  connectionResetBurst: 120,
  /** Most interim (1xx) heads before the final one (A37). */
  interimHeads: 16,

  streamWindowMostBytes: 4 * MiB,
  streamWindowTightBytes: 64 * KiB,
  /** One gigabit per second: a stream's window never exceeds what arrives at this rate in one round trip. */
  streamBytesPerMs: 128 * KiB,
  /** Bytes written to a socket but not yet taken by the kernel. Above it DATA waits in its stream. */
  socketBacklogBytes: 512 * KiB,
  /** Share of the heap limit that may be buffered for slow readers in total. Above half of it, windows shrink (D2). */
  bufferShare: 0.25,
  /** A request body up to this size is kept until the response, so that a refused stream can be retried. */
  repeatableBodyBytes: 64 * KiB,
  /**
   * The head of a refusal with a body up to this size waits for the body, so that a truncated one can be retried. A
   * Status is 1 KiB.
   */
  shortRefusalBytes: 16 * KiB,

  /** A session without a stream for this long is closed with two GOAWAYs (A25). */
  idleSessionMs: 300_000,

  /**
   * Most upstream connections of one backend, per trust class and kind: 1,000 with 80 streams each carry 80,000
   * watches. The two rates limit dials, separately for the unproven class.
   */
  connections: 1000,
  unprovenDialsPerSecond: 50,
  dialsPerSecond: 50,
  /**
   * Most concurrent requests, over all backends, without a bearer or with one that no backend has accepted yet: in
   * total, and from one client address. With responses in 100 ms one address gets 2,560 new bearers accepted per
   * second.
   */
  unprovenRequests: 2560,
  unprovenPerSource: 256,
  /**
   * Of these, concurrent requests with the same bearer. The rest wait for its first response, at most as long as a
   * healthy apiserver takes.
   */
  unprovenPerBearer: 2,
  unprovenHeldMs: 250,
  /**
   * How long an unproven request waits for a slot (as long as an apiserver's request timeout, since client-go would
   * only retry) and how often the queue is checked. `unprovenWaiting` bounds the queue. One address may use up to
   * `unprovenWaitingShare` times the free room: alone it gets 50,000 (5,000 pods behind one address start with ten
   * watches each) and leaves 12,500 to others; two addresses leave 2,500.
   */
  unprovenWaitMs: 60_000,
  unprovenLookMs: 50,
  unprovenWaiting: 62_500,
  unprovenWaitingShare: 4,
  /**
   * An address is rejected if it has more 401s than `rejections`, less those forgiven per second and those offset by
   * accepted bearers. A node with a few expired tokens stays below it; a flood exceeds it at once. `rejectionsMost`
   * caps the count, so that the address is forgiven a minute after the flood ends. `rejectedAddresses` bounds the
   * addresses remembered. `rejectedWaiting` requests of a rejected address may wait, so that clients with expired
   * tokens still get their 401; rejected addresses together use at most half of the queue.
   */
  rejections: 20,
  rejectionsForgivenPerSecond: 1,
  rejectionsMost: 80,
  rejectedAddresses: 10_000,
  rejectedWaiting: 8000,
  /**
   * For this long a request retried because its stream id is above a GOAWAY's last id does not use up an attempt. Each
   * 401 causes such a GOAWAY on its connection, which proves nothing about the backend. During a flood of 401s a
   * request may be sent away from dozens of connections.
   */
  sentAwayMs: 15_000,
  /** Time for TCP, TLS and the first SETTINGS of a backend. */
  dialMs: 2000,
  /**
   * Up to `pingsPerBeat` upstream connections of one backend all get a PING on every beat. Above that, a quarter of
   * them gets one on each beat, and so does each connection that opens a stream: PINGs on 600 connections on every beat
   * cost 8 % of a core. If a PING is unanswered for `rollCallShare` of the suspect deadline, all other connections get
   * one at once. A silent backend is therefore suspect within 0.88 s (0.75 s with few connections); a broken path under
   * a single idle connection is noticed within 1.5 s.
   */
  pingsPerBeat: 100,
  pingTurns: 4,
  rollCallShare: 0.25,
  /** A timer this late means that our own event loop stalled. That time does not count against any peer (F11). */
  stallMs: 20,
  /**
   * How long a silent upstream connection is kept while its backend answers on others. After an outage heals, the old
   * socket waits for its kernel's next retransmission (0.2 s, doubled each time): 3.0 s after an outage of 1.5 s, and a
   * measured 3.4 s after one of 2 s.
   */
  connectionPatienceMs: 5000,
  /**
   * Backends that fall silent within this time of each other share one cause, most likely our own network. If another
   * backend answers a PING or probe later than this after the silence began, only the silent backend is affected (D14).
   */
  togetherMs: 1000,
  /**
   * A pending dial at least this old, and three times as old as another socket took to be answered, is restarted: its
   * SYN was lost.
   */
  hurriedDialMs: 200,
  /** Pause between failed dials of one backend: doubles from the first value to the second. */
  redialFirstMs: 100,
  redialMostMs: 500,
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
  /** How often the verdicts are checked to decide whether the discovery fallback is needed. */
  fallbackLookMs: 1000,
  /** Time for a fresh socket's TCP and TLS, which take two round trips; a lost SYN is retransmitted after 1 s. */
  probeDialMs: 1000,
  /**
   * A PING that took this much longer than twice the median was lost once: TCP retransmits after 200 ms at the earliest.
   * For `lossyMs` after such a PING the path counts as lossy, and silence on it proves nothing about large packets.
   */
  latePingMs: 150,
  lossyMs: 3000,
  /**
   * A certificate's last week and last day, as the alert KubeClientCertificateExpiration uses. A loopback certificate
   * is reported a month ahead, because the operator must plan a restart of its apiserver.
   */
  expirySoonMs: 604_800_000,
  expiryNowMs: 86_400_000,
  loopbackExpirySoonMs: 2_592_000_000,
  /** Pause between checks of all certificates' expiry. */
  expiryLookMs: 1000,
  /**
   * Good answers in a row, at one every 250 ms, before a backend that fell once is ready again; the time after which
   * fewer are enough; and the gap between two falls after which they count as separate.
   */
  riseAnswers: 4,
  riseMs: 16_000,
  strikeMs: 60_000,
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
  /** How long a request waits for an upstream connection: one failed dial and a margin. Then the next attempt begins. */
  connectionWaitMs: 2500,
  /**
   * After this wait the request goes to a backend that already has an upstream connection. A TLS dial takes a tenth of
   * it.
   */
  connectionDoubtMs: 500,
  /**
   * Hedged requests over all backends: burst and rate. A full bucket gives twice its burst at once, so 400, which is
   * what an apiserver serves concurrently by default (--max-requests-inflight). Another backend can therefore take
   * everything in flight at a silent one. The rate is low because a suspect backend gets no new requests.
   */
  hedgeBurst: 200,
  hedgesPerSecond: 100,
  /**
   * Reads hedged because they are slow although their backend answers PING: one in twenty, plus a small burst for small
   * clusters, so that slow etcd does not double the load. An attempt is reported as slow for `slowToldMs`.
   */
  slowHedgeBurst: 50,
  slowHedgesPerSecond: 10,
  slowHedgeShare: 0.05,
  slowToldMs: 3000,
  /**
   * Multiple of the suspect deadline after which an unanswered PING counts as silence, even if other bytes have
   * arrived.
   */
  unansweredShare: 1.5,
  /**
   * An upstream connection whose PING, sent every 250 ms, has been unanswered for longer than this is no better than a
   * silent one.
   */
  promptMs: 100,
  /**
   * A connection that was silent is avoided for this long if another one has room: as long as a watch is retried
   * (resumeMs).
   */
  shakyConnectionMs: 15_000,
  /**
   * With two attempts open, a 429 or 5xx from one waits this long for the other's response. Its client would wait as
   * long (Retry-After).
   */
  refusalHeldMs: 1000,
  /**
   * How long a request waits in the pending queue while no backend is available. With a failed dial before it (2.25 s)
   * that stays below the 5 s that leader election allows a request (half of its 10 s renew deadline). A short outage is
   * over by then.
   */
  holdMs: 2500,
  /**
   * An upstream connection without a stream for this long is closed or replaced. The apiserver itself closes it after
   * 90 s.
   */
  idleConnectionMs: 60_000,
  /**
   * The same for an upstream connection beyond the warm ones and beyond the last of its shard: connections opened for a
   * burst are closed 5 s after it.
   */
  spareConnectionMs: 2000,
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
   * Entries of the versions that clients have seen, by client and resource (k/k 59848): about 250 bytes each; a kubelet
   * has five.
   */
  floors: 50_000,
  /**
   * Rejections in a row of one client's minimum version, 3 s each, after which an older state is better than no answer.
   */
  floorRefusals: 3,
  /** Shortest pause between two reports of stale responses to one client. */
  floorToldMs: 60_000,
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
  /** Longest Audit-ID accepted from a client. Ours and client-go's have 36 characters. */
  auditIdChars: 256,
  /**
   * The names in a longer request target are copied, so that remembering a name does not keep the whole target in
   * memory.
   */
  targetChars: 1024,
  /** Time for the TLS handshake and the first bytes, which identify the protocol (A22). */
  handshakeMs: 10_000,
  /**
   * Live heap as a share of its limit. Above `heapFull` new clients are rejected, above `heapCrowded` idle sessions are
   * closed, above `heapCritical` requests are ended, watches last. Below `heapEasy` normal operation resumes (A26).
   */
  heapFull: 0.85,
  heapCrowded: 0.92,
  heapCritical: 0.97,
  heapEasy: 0.8,
  /** Pause between checks while memory is short: a garbage collection stops the process for 70 ms. */
  heapLookMs: 2000,
  /**
   * How much the heap must shrink before its pages are returned to the kernel, and how often at most: this stops the
   * process, too.
   */
  heapPagesBytes: 48 * MiB,
  heapPagesMs: 60_000,
  /**
   * Part of the heap limit reserved for the buffers of one turn and for V8 itself. The heap counts as full without it.
   */
  heapReserveBytes: 16 * MiB,
  /** Share of the closable sessions closed at one check. Closing all at once would make all of them reconnect at once. */
  shedShare: 0.1,
  shedLeast: 10,
  /** A proxy that inherits sockets waits this long for a ready backend; its clients wait in the pending queue. */
  settleMs: 5000,
  /**
   * A backend that becomes ready again reaches full weight after this time; it starts with the weight of its first
   * second.
   */
  slowStartMs: 30_000,
  slowStartLeast: 1 / 30,
  /** Share of the clients that may be rebound to another backend per second to even out the load (F16). */
  rebalanceShare: 0.01,
  balanceMs: 5000,
  /** Share of an even load by which a backend may deviate before any client is moved. */
  rebalanceSlack: 0.1,

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

  /**
   * Active incidents, and ended ones that are kept: a bad day has a few dozen. One takes 10 KB with all its evidence
   * rows, of which the first and the last are kept.
   */
  incidentsActive: 200,
  incidentsKept: 500,
  incidentEvidence: 32,
  /** Clients named in one incident. */
  incidentClients: 20,
  incidentNameChars: 128,
  incidentTextChars: 300,
  /** Pairs of kind and backend that are counted separately; beyond that, by kind alone. */
  incidentCounts: 50,
  /** Backends whose moves and failures are collected before their incident is opened. */
  incidentBackends: 128,
  /** A backend that is suspect for less than this is no incident: its watches and requests were hedged. */
  doubtMs: 1500,
  /** The same while new sockets are answered or none has been tried yet: silence on old sockets alone may heal. */
  unprovenMs: 10_000,
  /** The same for a backend that answers but reports that it is not ready: it may be starting. */
  unreadyMs: 3000,
  /** A backend that announced its shutdown may be away this long: a restart, such as kubeadm's upgrades do. */
  restartMs: 60_000,
  /** This many falls within `flappingMs` are flapping: from ready, or from an answered fresh socket to a failed one. */
  flaps: 3,
  flappingMs: 120_000,
  /**
   * An incident of a hung watch, a version regression or an internal fault ends when it has not recurred for this long.
   */
  quietMs: 300_000,
  /** A replay loop is reported once a minute while it lasts (replayMs). */
  loopQuietMs: 150_000,
  stormQuietMs: 60_000,
  /** Leader election renews every 2 s and its lease lasts 15 s; nodes renew every 10 s and their lease lasts 40 s. */
  leaseQuietMs: 60_000,
  overloadQuietMs: 60_000,
  /** Characters kept of a subject and a User-Agent. */
  subjectChars: 256,
  agentChars: 64,
  /**
   * A relist storm: this many pairs of caller and resource listed again within this time, by at least this many
   * callers. One restarted client alone makes as many lists.
   */
  stormRelists: 40,
  stormCallers: 5,
  stormMs: 10_000,
  /** Bytes copied of a write that may be to a lock: a Lease is 1 KiB, an annotated ConfigMap little more. */
  lockBodyBytes: 16 * KiB,

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
