/**
 * Numbers that bound what several parts do, each with its reason; the limits of one part stand in its own limits.ts. What an operator may change is in config; what is here keeps
 * the process alive whatever the config says. Row names (A1 ...) are those of the attack tests.
 */
const KiB = 1024;
const MiB = 1024 * KiB;

export const limits = {
  /** A8's honest user (400 groups, a 12 KiB token) needs 40 KiB; the apiserver itself would take 1 MiB (A7). */
  headerListBytes: 128 * KiB,
  headerFields: 1024,
  /** A longer head waits as octets do, against the same bound: it is kept for as long as its request lives (A26). */
  usualHeadBytes: 16 * KiB,
  /** One name or value: beyond it nghttp2, and what is built on it, ends the session, which may be an upstream connection of many (A7). */
  fieldBytes: 64 * KiB,
  /** Of a longer target nothing is asked for in other words: what they add may not make it a field beyond the bound. */
  changedTargetBytes: 63 * KiB,
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
  /**
   * A client is sent away this long before its certificate ends: who has another by then shows it on the next connection,
   * and is never told 401 for the old one. Kubelets have another after 70 to 90 % of its life.
   */
  certificateLeaveMs: 5000,
  /** A backend that says nothing of a new certificate in this time has nothing against it. */
  proofMs: 3000,
  /** Contexts for dials kept ready: each of 16 clusters' CAs, alone and with either certificate of ours. */
  tlsContexts: 48,
  /** Whoever signs may be ahead of our clock by this much (Kerberos' tolerance). */
  clockSkewMs: 300_000,

  /** Peer resets before an answer, and our own resets: client-go cancels about 100 watches at once (A1, A2). */
  resetBurst: 200,
  resetsPerSecond: 33,
  /**
   * Resets before an answer after which an upstream connection takes no new streams. All 80 that it has may be reset after that, and a backend
   * that is another watchkeeper allows 200 in all; kube-apiserver bears 500 whose handlers run on, as measured.
   */
  connectionResetBurst: 120,
  /** Heads before the final one (A37). */
  interimHeads: 16,

  /** A stream's first receive window; it grows while its reader keeps up (D2). */
  streamWindowBytes: 256 * KiB,
  streamWindowMostBytes: 4 * MiB,
  streamWindowTightBytes: 64 * KiB,
  /** A gigabit a second: no stream's window becomes larger than what comes at this pace in one round trip. */
  streamBytesPerMs: 128 * KiB,
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
  /** A refusal's body for which its head waits, so that one that is cut off can be asked for again: a Status has 1 KiB. */
  shortRefusalBytes: 16 * KiB,
  /** Half an event of a watch, client-go's own limit (D3). */
  eventBytes: 16 * MiB,
  /** Events that are parsed whole are bookmarks and errors: a Table's first one, with its columns, is about 10 KiB. */
  parsedEventBytes: 256 * KiB,

  /**
   * Between a PONG to the first GOAWAY and the second, as long as Go's server waits in all: a client whose process had no
   * time to read the first would have its next request refused. And how long a PONG is waited for.
   */
  goAwayGraceMs: 1000,
  goAwayPongMs: 3000,
  /** A session without a stream is sent away in two steps (A25). */
  idleSessionMs: 300_000,

  /** How long an accepted bearer may share upstream connections, and how many are remembered (a hash and a time each, D2). */
  provenMs: 600_000,
  bearers: 10_000,
  /** A backend's upstream connections, of each class and kind: 1,000 of 80 streams are 80,000 watches. Those of the unproven come slowly. */
  connections: 1000,
  unprovenDialsPerSecond: 50,
  dialsPerSecond: 50,
  /**
   * Requests under way, for all backends together, whose bearer no backend has accepted yet, or that have none: in all, and
   * of one client address. At 100 ms for an answer one address has 2,560 new bearers accepted in a second.
   */
  unprovenRequests: 2560,
  unprovenPerSource: 256,
  /** Of one bearer; the others wait for its first answer, for as long as an apiserver that is well takes at most. */
  unprovenPerBearer: 2,
  unprovenHeldMs: 250,
  /**
   * How long one waits for a place (as long as an apiserver lets a request take, since client-go would only ask again) and
   * how often that is looked at. How many wait in all, and how many times the free room one address may have: alone it
   * has 50,000 (5,000 pods behind one address begin with ten watches each), and leaves 12,500 to others, two leave 2,500.
   */
  unprovenWaitMs: 60_000,
  unprovenLookMs: 50,
  unprovenWaiting: 62_500,
  unprovenWaitingShare: 4,
  /**
   * An address with more 401s than this, less what was forgiven and the bearers that were accepted, is rejected: a node with a
   * few expired tokens is not, a flood is at once. The most that is counted, so that it is forgiven a minute after its end; of
   * how many addresses; and how many of one that is rejected may wait, so that a storm of expired tokens is told 401:
   * all of them together take half of the room at most.
   */
  rejections: 20,
  rejectionsForgivenPerSecond: 1,
  rejectionsMost: 80,
  rejectedAddresses: 10_000,
  rejectedWaiting: 8000,
  /**
   * For so long a stream above a GOAWAY's last id is no attempt: each 401 brings one upon its connection, and says nothing of
   * the backend. A flood of 401s may send a request away from dozens of connections.
   */
  sentAwayMs: 15_000,
  /** A JWT is accepted for a minute after its end (go-jose's leeway), and proves for so long then. */
  bearerLeewayMs: 60_000,
  endedBearerMs: 5000,
  /** TCP, TLS and the first SETTINGS of a backend. */
  dialMs: 2000,
  /**
   * Upstream connections of one backend that are all sent a PING every time. Of more, a quarter has its turn each time, and whoever a
   * stream was opened on: PINGs on 600 all the time cost 8 % of a core. One that has not answered within this share of
   * its deadline has all others asked at once, so that a backend's silence is suspected within 0.88 s, with few upstream connections
   * within 0.75; a hole under one upstream connection on which nothing is asked within 1.5 s.
   */
  pingsPerBeat: 100,
  pingTurns: 4,
  rollCallShare: 0.25,
  /** A timer this late means that our own loop stood still: nobody else is charged for that time (F11). */
  stallMs: 20,
  /**
   * How long a silent upstream connection is kept while its backend answers elsewhere: after a hole that heals, the old socket waits for
   * its kernel to send again, 0.2 s doubled each time: 3.0 s after a hole of 1.5 s, 3.4 s as measured for one of 2 s.
   */
  connectionPatienceMs: 5000,
  /**
   * Backends that fall silent within this time of each other have one cause, most likely our own network: one that has
   * answered a question asked so much later shows that the silence is the other's alone (D14).
   */
  togetherMs: 1000,
  /** A dial this old is begun again when another socket was answered in a third of its age: its SYN fell into the hole. */
  hurriedDialMs: 200,
  /** Between failed dials of one backend: doubles from the first to the last. */
  redialFirstMs: 100,
  redialMostMs: 500,
  /** Of a manifest, or a kubeconfig: a file with every CustomResourceDefinition of a large operator has 3 MiB. */
  manifestBytes: 8 * MiB,
  /** A credential plugin may open a browser and wait for its user. */
  execCredentialMs: 60_000,
  /** After a plugin that failed, or whose certificate is short-lived. */
  execRetryMs: 30_000,
  /** As many as a configuration may list: an answer with more is a mistake, and the last one stays. */
  discoveredBackends: 64,
  /** A service account's token; with a dozen audiences it has 2 KiB. */
  tokenBytes: 64 * KiB,
  /** Reviews of each kind under way at once: as many as two pages ask for; and of tokens from one address, so that
   * whoever guesses them keeps nobody else out. */
  reviewsAtOnce: 32,
  tokenReviewsPerAddress: 4,
  /** Is a fallback needed, now that a verdict may have changed? */
  fallbackLookMs: 1000,
  /** A fresh socket's TCP and TLS take two round trips; a lost SYN is sent again after 1 s. */
  probeDialMs: 1000,
  /**
   * A PING that took longer, beyond twice what they usually take, was lost once: TCP sends again after 200 ms at the earliest.
   * For so long after one the path is taken for lossy, and what is silent there proves nothing of large packets.
   */
  latePingMs: 150,
  lossyMs: 3000,
  /**
   * A certificate's last week and its last day, as KubeClientCertificateExpiration alerts. A loopback certificate needs a
   * restart of its apiserver, which somebody has to plan: a month.
   */
  expirySoonMs: 604_800_000,
  expiryNowMs: 86_400_000,
  loopbackExpirySoonMs: 2_592_000_000,
  /** Between looks at how long all certificates last. */
  expiryLookMs: 1000,
  /** Good answers in a row after a first fall, at one each 250 ms; how long they are enough; and how far apart falls are not the same trouble. */
  riseAnswers: 4,
  riseMs: 16_000,
  strikeMs: 60_000,
  /** What is read of the kernel's table of sockets, and how often: 7,000 of them. Those beyond have keepalive only. */
  socketTableBytes: MiB,
  socketTableMs: 1000,
  /**
   * A tunnel whose socket has sent the same so often, twice looked at: four times take 3.0 s, so a hole of less is never
   * noticed, and one that begins 5 s before kubectl's next ping ends its exec within 10 s.
   */
  hungRetransmits: 4,
  /** The same of a client's socket, whose network may be away for a while as it may be on a direct connection: 51 s. */
  hungClientRetransmits: 8,
  hungLooks: 2,
  /** Requests that wait for an upstream connection of one backend; more are told to come back. */
  waitingExchanges: 10_000,
  /** How long each waits: a dial that fails and some room to spare. Then the next attempt begins. */
  connectionWaitMs: 2500,
  /** After so long the request goes to a backend that has an upstream connection at once: a TLS dial takes a tenth of it. */
  connectionDoubtMs: 500,
  /**
   * Requests that may be asked twice, for all backends together. A bucket that was full gives twice its burst at once,
   * so 400, as many as an apiserver serves at once unless told otherwise (--max-requests-inflight): what was under way
   * at a silent one is a load that another can take. After that few: nothing new goes to whom is suspected.
   */
  hedgeBurst: 200,
  hedgesPerSecond: 100,
  /**
   * Reads asked twice because they are slow, though their backend answers PING: one in twenty, and a few for the small
   * cluster, so that one whose etcd is slow is not asked for twice as much. For so long each is told of to be slow.
   */
  slowHedgeBurst: 50,
  slowHedgesPerSecond: 10,
  slowHedgeShare: 0.05,
  slowToldMs: 3000,
  /** Of a suspicious silence, after which a PING that waits counts as silence too, whatever octets have come. */
  unansweredShare: 1.5,
  /** An upstream connection whose PING has waited longer, of those sent every 250 ms, is no better than one that is silent. */
  promptMs: 100,
  /** One that was silent is passed over for so long after, where another has room: as long as a watch is tried (resumeMs). */
  shakyConnectionMs: 15_000,
  /** A 429 or 5xx from one of two legs waits so long for the other's answer; its client would wait as long (Retry-After). */
  refusalHeldMs: 1000,
  /**
   * How long a request waits while no backend can be asked. With a dial that failed before it (2.25 s) that is less than
   * the 5 s that leader election gives a request (half of its 10 s to renew in); a hole that heals is over by then.
   */
  holdMs: 2500,
  /** An upstream connection that has had no stream for so long is sent away, or replaced: the apiserver itself ends it after 90 s. */
  idleConnectionMs: 60_000,
  /** The same for an upstream connection beyond the warm ones and beyond the last of its row: what a burst has opened is closed 5 s after it. */
  spareConnectionMs: 2000,
  /** Backends that one request is tried on before its client is told. */
  attempts: 3,
  /** A watch whose client sets no deadline: the server ends it after 30 to 60 minutes (--min-request-timeout). */
  watchServerMs: 1_800_000,
  watchMostMs: 3_600_000,
  /**
   * What one walk over all watches, requests or clients may take of one loop turn: three at the same time, with what else a
   * turn does, stay below 10 ms. A visit takes 0.1 to 5 µs.
   */
  sliceMs: 2,
  sliceEntries: 1000,
  /**
   * Another backend has shown what this one has not: after so long its watches are asked (watch.md §6.3, which begins with
   * 10 s). With a look a second and a dial they have moved within 10 s; a cache in health is behind for milliseconds.
   */
  behindMs: 8_000,
  /**
   * Before it the backend's cache is made to follow etcd, by a list of one object (docs/watch.md §6.6): one a second at
   * most for each backend and resource. A cache is waited for 3 s by the apiserver, which then asks etcd itself. A client
   * that may not list is no proof that none may. Of each pair some 200 bytes are kept.
   */
  progressRequestMs: 1000,
  progressWaitMs: 2500,
  progressAnswerMs: 4500,
  progressTries: 4,
  progressFacts: 2000,
  /** APIs (a group and version each) of which it is remembered whether they are a CRD's: large clusters have 500. */
  apiOrigins: 2000,
  /** How its OpenAPI begins; the title stands within the first 60 octets (1.24 to 1.36). */
  openApiTitleBytes: 512,
  /** An API whose kind is not known is asked for so often at first, each time half as often (a new CRD's OpenAPI comes after 1 s); one that is another server's so often. */
  originPauseMs: 1000,
  originAgainMs: 600_000,
  /**
   * An etcd as kubeadm starts it notifies every cache within 5.5 s, asked or not, and leaves one notification out after an
   * event. A cache that has not come so far by then is looked at again once a minute.
   */
  progressCheckMs: 12_000,
  progressAgainMs: 60_000,
  /** What clients have seen, by client and resource (k/k 59848): some 250 bytes each, of kubelets five a node. */
  floors: 50_000,
  /** Refusals of one client's floor in a row, of 3 s each, after which an old state is better than none. */
  floorRefusals: 3,
  /** Between two reports of one client's answers from the past. */
  floorToldMs: 60_000,
  /** Where a list's version stands: behind its kind, or before its end; and what a packed beginning may come to. */
  listHeadBytes: 512,
  listTailBytes: 512,
  listUnzippedBytes: MiB,
  /** A watch asked for again from one version so often in this time is a loop (incident 001); and those remembered. */
  replays: 5,
  replayMs: 60_000,
  replayKeys: 10_000,
  /** What is kept of a User-Agent, to know a client again. */
  userAgentChars: 128,
  /** A group's name has 253 at most and a resource's 63; what is longer is nobody's, and is remembered cut. */
  resourceChars: 320,
  /** A client's own; ours, and client-go's, have 36. */
  auditIdChars: 256,
  /** Of a longer target the names are copied, so that none keeps all of it for as long as it is remembered. */
  targetChars: 1024,
  /** TLS done, and the first octets that tell which protocol is spoken (A22). */
  handshakeMs: 10_000,
  /** Handshakes that begin in one turn of the loop: 1.3 ms each with P-256 on a slow core, so 5 ms of a turn (A51). */
  handshakesPerTurn: 4,
  /**
   * What is live of the heap, as a share of its limit: from the first on nobody new is let in, from the second on idle
   * sessions go, from the third on requests end, watches last; below the least all is well again (A26).
   */
  heapFull: 0.85,
  heapCrowded: 0.92,
  heapCritical: 0.97,
  heapEasy: 0.8,
  /** How often it is looked again while memory is short: a collection stops everything for 70 ms. */
  heapLookMs: 2000,
  /** By how much a heap has to become smaller for its pages to go back, and how often: that stops everything, too. */
  heapPagesBytes: 48 * MiB,
  heapPagesMs: 60_000,
  /** What of the heap is for the octets of one turn, and for V8 itself: it is full without them. */
  heapReserveBytes: 16 * MiB,
  /** Of those that may go, how many do so at one look: all of them at once would come back at once. */
  shedShare: 0.1,
  shedLeast: 10,
  /**
   * A PROXY header: version 1 has 107 octets at most, version 2 a length of its own. What clouds add to it (link and
   * endpoint names, a client certificate's subject) stays under 1 KiB.
   */
  introductionBytes: 4 * KiB,
  /** First words that are not whole, of all new sockets together; whoever says them in one packet never waits there. */
  peekedBytes: 16 * MiB,
  /** A ClientHello: Go's own limit, so the apiserver's. Records: one is usual, post-quantum keys make it two or three. */
  helloBytes: 64 * KiB,
  helloRecords: 16,
  /** Between attempts to bind a port that somebody took while a reload failed. */
  rebindMs: 1000,
  /** A proxy that was given sockets waits so long for its backends: clients wait in their queues meanwhile. */
  settleMs: 5000,
  /** From a successor's start to its word that it serves: Node and our code take 1 s of a slow machine. */
  successorMs: 30_000,
  /** A backend that comes back counts for a whole one after this time; the least is a second's part of it. */
  slowStartMs: 30_000,
  slowStartLeast: 1 / 30,
  /** Of the clients, a second, that may be bound to another backend to even the load (F16). */
  rebalanceShare: 0.01,
  balanceMs: 5000,
  /** Of an even part, by which a backend may be off before anybody is moved for it. */
  rebalanceSlack: 0.1,
  /** Of the descriptors that the process may have: an upgraded client takes two (A24). */
  connectionShare: 0.45,
  /**
   * /readyz says that new clients are let in again once their number is below this share of the most, and none has been
   * refused for so long: as long as a kubelet's probe takes to notice (every 10 s).
   */
  intakeEasy: 0.9,
  intakeCalmMs: 10_000,

  /** HTTP/1.1: from a request's first octet to the end of its head (A22), also for an upload that outlives its answer. */
  h1HeadMs: 10_000,
  /** Parsers that nobody uses: each keeps the longest head that it has read, and Node would keep a thousand. */
  h1IdleParsers: 16,
  /** From the last answers of a listener that is cut to the end of its sockets; the process ends 100 ms after that cut. */
  cutLingerMs: 50,
  /** How long a refused client may take to read why. */
  h1LingerMs: 1000,
  /** Parsed requests behind the one being answered: no Kubernetes client pipelines at all (A33). Their heads: one usual one. */
  h1Waiting: 16,
  /** Of an upload, in the exchange's hands; with node's own buffer and one read it stays under 200 KiB (A19). */
  h1HeldBytes: 32 * KiB,
  /** A chunk's size line with its extensions, or one trailer, of an answer that refuses an Upgrade. */
  h1LineBytes: 8 * KiB,

  // What operators see through: metrics, incidents, commands and the log.
  /**
   * Series of one metric family; what comes later is summed under "other". With 360 for requests, 20
   * families of 60, 8 histograms of 26 and Node's own 70 it stays below 2,000 whatever clients send (A54).
   */
  familySeries: 60,
  requestSeries: 360,
  labelChars: 64,

  /**
   * Incidents that last, and of those that are over: a bad day has some dozens. One takes 10 KB with all its rows, which
   * are its first and its last ones.
   */
  incidentsActive: 200,
  incidentsKept: 500,
  incidentEvidence: 32,
  /** Of its clients, those that are named. */
  incidentClients: 20,
  incidentNameChars: 128,
  incidentTextChars: 300,
  /** Kinds and backends that are counted apart; beyond it by kind alone. */
  incidentCounts: 50,
  /** Moves and failures that are told before their backend's incident is. */
  incidentBackends: 128,
  /** A doubt that is over within this time is no incident: its watches had hedges, its requests were hedged. */
  doubtMs: 1500,
  /** As above while new sockets are answered, or none has met anything yet: silence on old ones alone may heal. */
  unprovenMs: 10_000,
  /** As above for one that answers and says that it is not ready: it may be starting. */
  unreadyMs: 3000,
  /** A backend that has announced its going may be away for so long: a restart, as kubeadm's upgrades make them. */
  restartMs: 60_000,
  /** So many falls from ready, or from a fresh socket that was answered, within so long are flapping. */
  flaps: 3,
  flappingMs: 120_000,
  /** Over when not seen again: hung watches, versions that went back, faults. */
  quietMs: 300_000,
  /** A loop is told once a minute while it goes on (replayMs). */
  loopQuietMs: 150_000,
  stormQuietMs: 60_000,
  /** Leader election renews every 2 s and a lease lasts 15 s; nodes renew every 10 s and theirs last 40 s. */
  lockQuietMs: 60_000,
  overloadQuietMs: 60_000,
  /** What is read of a token's claims, and kept of a subject and an agent. */
  claimsChars: 16 * KiB,
  subjectChars: 256,
  agentChars: 64,
  /** So many callers and resources listed again within so long, by so many callers: one restart makes as many lists alone. */
  stormRelists: 40,
  stormCallers: 5,
  stormMs: 10_000,
  /** What is copied of a write that may be to a lock: a Lease is 1 KiB, an annotated ConfigMap little more. */
  lockBodyBytes: 16 * KiB,
  holderChars: 256,

  /** Anomalies of one kind that are remembered, so that each is made once a minute. */
  anomalies: 1000,
  anomalyMs: 60_000,

  /** Characters of a path, an agent, a name in it. */
  apiTextChars: 512,

  /** A field of a log line (A53); the lines of one second; what stdout has not taken yet (F20). Beyond: counted. */
  logFieldChars: 256,
  logLinesPerSecond: 1000,
  logBacklogBytes: MiB,
} as const;
