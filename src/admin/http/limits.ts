/** What bounds the admin port, its API and the commands that ask it, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const adminLimits = {
  /** How long an answer counts: a token's as at the apiserver's delegated authentication, the others as at a kubelet. */
  tokenReviewedMs: 10_000,
  accessAllowedMs: 300_000,
  accessDeniedMs: 30_000,
  /** Answers that are kept, of each kind: every operator's token at every path. */
  reviewsKept: 2000,
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
  /** Of the JSON API: rows of a page, and how far in one may begin. All of 50,000 watches take 100 pages. */
  apiPage: 100,
  apiPageMost: 500,
  apiOffset: 100_000,
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
} as const;
