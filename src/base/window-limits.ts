/** Every limit of what operators see through: metrics, probes, the API, incidents, commands and the log. Part of limits.ts. */
const KiB = 1024;
const MiB = 1024 * KiB;

export const windowLimits = {
  /**
   * Series of one metric family; what comes later is summed under "other". With 360 for requests, 20
   * families of 60, 8 histograms of 26 and Node's own 70 it stays below 2,000 whatever clients send (A54).
   */
  familySeries: 60,
  requestSeries: 360,
  labelChars: 64,
  /** A second scrape within this time is given the first one's text: nobody can make the data path wait for it. */
  scrapeReuseMs: 1000,
  /** The port of metrics and probes: a few Prometheus and kubelets, no bodies. */
  adminSockets: 64,
  adminHeaderBytes: 8 * KiB,
  /** Of the API where it is asked with tokens: one of 400 groups has 12 KiB. */
  adminTokenHeaderBytes: 24 * KiB,
  adminRequestMs: 10_000,
  /**
   * Requests of one socket that are not answered yet: nobody pipelines there, and node:http makes 4 KiB of objects of each of
   * the 2,000 heads that one read may bring, of all 64 sockets in one turn.
   */
  adminWaiting: 4,
  /** Of the thread that has the port, in MiB: it needs 5, and 64 sockets with all that is allowed them take 10 more. */
  lookoutHeapMiB: 32,
  /**
   * What a probe waits for the loop's own word, before it is told what that was last time: half of what a load balancer's
   * shortest time-outs are. And how long a loop may leave a question unanswered before a restart would help: no collection
   * and no reload takes a tenth of it; a kubelet asks every ten seconds, and acts on several such answers in a row.
   */
  probePatienceMs: 50,
  standstillMs: 5000,

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
  /**
   * Callers that are remembered, some 400 bytes each: a cluster of 1,000 nodes has about as many kubelets, kube-proxies and
   * agents. Who is looked at in a row to find one that is idle.
   */
  callers: 5000,
  callerTurns: 32,
  /** New: seen first within this time. Fewer requests than these say nothing about a caller. */
  callerNewMs: 600_000,
  callerRequests: 20,
  callerRelists: 10,
  /** Resources of which it is known that one caller has watched them: a controller-manager watches 60. */
  callerResources: 100,
  /** Programs that a metric names. */
  agents: 50,
  /** What is read of a token's claims, and kept of a subject and an agent. */
  claimsChars: 16 * KiB,
  subjectChars: 256,
  agentChars: 64,
  /** So many callers and resources listed again within so long, by so many callers: one restart makes as many lists alone. */
  stormRelists: 40,
  stormCallers: 5,
  stormMs: 10_000,
  /** Locks: each node has one, each controller another; a lock takes some 600 bytes. */
  locks: 8000,
  /** What is copied of a write that may be to a lock: a Lease is 1 KiB, an annotated ConfigMap little more. */
  lockBodyBytes: 16 * KiB,
  holderChars: 256,
  /** Of one lock: who renewed it last, and its changes of holder. */
  lockRenewers: 8,
  lockHandovers: 8,
  /** A lock that names no duration. */
  lockLeastMs: 5000,
  /** Of its duration: taken earlier than that after a renewal, it was not let lapse. */
  lockShare: 0.8,
  /** Taken back within so long, twice without having been let go: by turns. */
  lockTurnsMs: 120_000,
  /** Before so many renewals nobody is known to be its usual holder. */
  lockRenewals: 3,
  /** Between two words on one lock. */
  lockToldMs: 15_000,
  /** Pods that asked, and pods that were deleted, as far as requests show. */
  pods: 10_000,
  /** A deleted pod's last renewal may have been under way. */
  podGoneMs: 1000,

  /** Anomalies of one kind that are remembered, so that each is made once a minute. */
  anomalies: 1000,
  anomalyMs: 60_000,

  /** Of the JSON API: rows of a page, and how far in one may begin. All of 50,000 watches take 100 pages. */
  apiPage: 100,
  apiPageMost: 500,
  apiOffset: 100_000,
  /** Characters of a path, an agent, a name in it. */
  apiTextChars: 512,
  /** Of our own command line: for an answer of it, and the octets of one (500 rows of 2 KiB are a MiB). */
  apiPatienceMs: 10_000,
  apiAnswerBytes: 16 * MiB,
  /** Rows that one command shows; rows of a list in a bundle, which is a file of some MB then. */
  cliRows: 50_000,
  bundleRows: 5000,
  /** Entries of the journal that whoever comes back may still be told: some minutes of a busy proxy, a MiB. */
  eventsKept: 2000,
  /** Who listens to them at once; what one has not taken yet; and how often it is shown that we are there. */
  eventStreams: 16,
  eventBacklogBytes: MiB,
  eventBeatMs: 15_000,
  /** How often `tap` comes back to a proxy that was lost, a second apart: a restart takes less. */
  tapAttempts: 10,
  /** What an operation may say: a reason. And who asks for it, and why, as the journal keeps it. */
  apiBodyBytes: 4 * KiB,
  operatorChars: 128,
  /** Between attempts to open its port, which somebody else has: an older process of ours, during an update. */
  apiRetryMs: 1000,
  /** Changes of one backend's state that are shown: an hour of one that comes and goes every two minutes. */
  backendHistory: 64,

  /** A field of a log line (A53); the lines of one second; what stdout has not taken yet (F20). Beyond: counted. */
  logFieldChars: 256,
  logLinesPerSecond: 1000,
  logBacklogBytes: MiB,
} as const;
