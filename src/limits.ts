/**
 * Every number that bounds something, with its reason. What an operator may change is in config; what is here keeps
 * the process alive whatever the config says. Row names (A1 ...) are those of the attack tests.
 */
const KiB = 1024;
const MiB = 1024 * KiB;

export const limits = {
  /** A8's honest user (400 groups, a 12 KiB token) needs 40 KiB; the apiserver itself would take 1 MiB (A7). */
  headerListBytes: 128 * KiB,
  headerFields: 1024,
  /** Compressed octets of one block, and CONTINUATION frames: decoding stops at either (A5). */
  headerBlockBytes: 144 * KiB,
  continuationFrames: 8,
  /** From a block's first octet to its last (A6). */
  headerBlockMs: 10_000,
  /** RFC 7541's default; more only helps an attacker (A9). */
  hpackTableBytes: 4096,
  hpackSizeUpdates: 2,
  /** Beyond it a field is sent literally: it would push everything else out of the table. */
  hpackIndexedBytes: 2048,
  /** 64 backends with long names take 10 KiB; the nastiest text of this size takes the parser 0.1 s, of 256 KiB 2 s. */
  configBytes: 64 * KiB,
  /** Our own shape is five levels deep; deeper only tries the parser's stack. */
  configDepth: 16,
  /** More lines than this are not read by anyone. */
  configProblems: 50,
  /** A certificate and its key, or a bundle of authorities: a hundred RSA certificates are 200 KiB. */
  certificateBytes: 512 * KiB,
  /** A refused certificate is looked at again this often, in case its date was the problem. */
  certificateRetryMs: 60_000,
  /** Whoever signs may be ahead of our clock by this much (Kerberos' tolerance). */
  clockSkewMs: 300_000,

  /** Streams that a client may have open at once: what the apiserver itself advertises (A3). */
  downstreamStreams: 100,
  /** Streams refused for being too many, outstanding within a second, before the session goes. */
  refusedStreams: 100,
  /** Peer resets before an answer, and our own resets: client-go cancels about 100 watches at once (A1, A2). */
  resetBurst: 200,
  resetsPerSecond: 33,
  /** SETTINGS and PING (A12, A14); a settings frame of more entries is no honest one. */
  controlBurst: 100,
  controlPerSecond: 10,
  settingsEntries: 32,
  /** PRIORITY is parsed and thrown away (A15). */
  priorityBurst: 100,
  priorityPerSecond: 10,
  /** WINDOW_UPDATE beyond two for each active stream and each DATA frame sent (A15). */
  updateBurst: 1000,
  updatesPerSecond: 100,
  /** Empty DATA without END_STREAM, per session (A16). */
  emptyDataBurst: 100,
  emptyDataPerSecond: 10,
  /** Octets of frames that nobody knows (A17): 1 MiB per 10 s. */
  unknownBurst: MiB,
  unknownPerSecond: MiB / 10,
  /** Heads before the final one (A37). */
  interimHeads: 16,

  /** A stream's first receive window; it grows while its reader keeps up (D2). */
  streamWindowBytes: 256 * KiB,
  streamWindowMostBytes: 4 * MiB,
  streamWindowTightBytes: 64 * KiB,
  /** What one client's uploads may hold in our hands (A19). */
  downstreamWindowBytes: MiB,
  /** A lane's session window is given back on arrival, so it never shuts: a slow client stalls nobody. */
  laneWindowBytes: 16 * MiB,
  /** Written but not yet taken by the kernel: beyond it DATA waits in its stream. */
  socketBacklogBytes: 512 * KiB,
  /** Of the heap's limit, what may wait for slow readers altogether; past half of it windows shrink (D2). */
  bufferShare: 0.25,
  /**
   * Answers that a client does not take, beyond which its requests are not read. Twice what DATA alone can come to,
   * so only heads get here, for which HTTP/2 has no window (CVE-2019-9517).
   */
  unreadBytes: 2 * MiB,
  /** A socket that has ended: time to read what was said last, and how often it may pass without one octet taken. */
  lingerMs: 1000,
  lingerLooks: 5,
  /** A body up to this long is kept until it is answered, so that a stream that was refused can be asked again. */
  repeatableBodyBytes: 64 * KiB,
  /** Half an event of a watch, client-go's own limit (D3). */
  eventBytes: 16 * MiB,

  /** TLS done to first SETTINGS (A22), a frame begun to its end (A18). */
  prefaceMs: 10_000,
  frameMs: 30_000,
  /** A session without a stream is sent away in two steps (A25). */
  idleSessionMs: 300_000,

  /** How long an accepted bearer may share lanes, and how many are remembered (a hash and a time each, D2). */
  provenMs: 600_000,
  bearers: 10_000,
  /** A backend's lanes: 1,000 of 80 streams are 80,000 watches. Lanes of the unproven are few and come slowly. */
  lanes: 1000,
  unprovenLanes: 16,
  unprovenDialsPerSecond: 20,
  dialsPerSecond: 50,
  /** What is read of an answer that nobody wants, before it is reset after all. */
  drainedBytes: MiB,
  /** TCP, TLS and the first SETTINGS of a backend. */
  dialMs: 2000,
  /** Between failed dials of one backend: doubles from the first to the last. */
  redialFirstMs: 100,
  redialMostMs: 1000,
  /** Between fresh sockets to a doubted backend that has tunnels: a mass of them shares one (D6). */
  tunnelProbeMs: 250,
  /** Requests that wait for a lane of one backend; more are told to come back. */
  waitingExchanges: 10_000,
  /** How long each waits: a dial that fails and some room to spare. Then the next attempt begins. */
  laneWaitMs: 2500,
  /** A lane beyond the warm ones that has had no stream for so long is sent away. */
  idleLaneMs: 60_000,
  /** Backends that one request is tried on before its client is told. */
  attempts: 3,
  /** client-go relists when a watch without events ends within a second (watch.md §7). */
  shortWatchMs: 1100,
  /** TLS done, and the first octets that tell which protocol is spoken (A22). */
  handshakeMs: 10_000,
  /** Of the descriptors that the process may have: an upgraded client takes two (A24). */
  connectionShare: 0.45,

  /** The embedded apiserver takes what a real one takes (k8s.io/apiserver pkg/server/config.go). */
  demoBodyBytes: 3 * 1024 * KiB,
  /** Far above any real object (a CRD's schema nests some 60 deep), far below what writing JSON recursively can take. */
  demoJsonLevels: 500,
  /** How far back its watches may start, in changes; a real one keeps 100 to 102,400 per resource. */
  demoHistoryChanges: 10_000,
  /** A watcher this far behind is ended, as a real one is after about a second of events. */
  demoWatchQueueBytes: 4 * 1024 * KiB,

  /** HTTP/1.1: from a request's first octet to the end of its head (A22), also for an upload that outlives its answer. */
  h1HeadMs: 10_000,
  /** How long a refused client may take to read why. */
  h1LingerMs: 1000,
  /** Parsed requests behind the one being answered: no Kubernetes client pipelines at all (A33). */
  h1Waiting: 16,
  /** Of an upload, in the exchange's hands; with node's own buffer and one read it stays under 200 KiB (A19). */
  h1HeldBytes: 32 * KiB,
  /** A chunk's size line with its extensions, or one trailer, of an answer that refuses an Upgrade. */
  h1LineBytes: 8 * KiB,

  /**
   * Series of one metric family; what comes later is summed under "other". With 600 for requests, 12 families of 100
   * and Node's own 70 it stays below 2,000 whatever clients send (A54): 6 ms to print.
   */
  familySeries: 100,
  requestSeries: 600,
  labelChars: 64,
  /** A second scrape within this time is given the first one's text: nobody can make the data path wait for it. */
  scrapeReuseMs: 1000,
  /** The port of metrics and probes: a few Prometheus and kubelets, no bodies. */
  adminSockets: 64,
  adminHeaderBytes: 8 * KiB,
  adminRequestMs: 10_000,

  /** A field of a log line (A53); the lines of one second; what stdout has not taken yet (F20). Beyond: counted. */
  logFieldChars: 256,
  logLinesPerSecond: 1000,
  logBacklogBytes: MiB,
} as const;
