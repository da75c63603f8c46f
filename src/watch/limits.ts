/** Limits of watches, their caches and migrations, each with its reason (see src/base/limits.ts). */
export const watchLimits = {
  /** Minimum ms that a watch without events lasts: client-go relists after a watch of under a second (watch.md §7). */
  shortWatchMs: 1100,
  /** A watch that ends fewer ms before the client's deadline counts as ended by the deadline (watch.md §5.5). */
  watchDueMs: 2000,
  /** Maximum number of attempts to continue a watch within `resumeMs`; then the watch ends (watch.md §5.2). */
  resumeAttempts: 3,
  /** Maximum number of lost connections that do not count as attempts: three backends may fail within a second. */
  resumeLosses: 3,
  resumeMs: 15_000,
  /** A resume counts as successful if no ERROR comes within this many ms after the response. */
  settledMs: 1000,
  /** A watch ends after this many resumes within `noProgressMs` without a new event: no backend can serve it. */
  noProgressResumes: 3,
  noProgressMs: 60_000,
  /** Ms after which another backend is asked if a backend has not answered the request for a resume. */
  resumeAnswerMs: 5000,
  /** Ms until the next attempt if no backend can be asked. */
  parkedMs: 250,
  /** Each attempt that found no connection makes the pause before the next attempt longer by this many ms. */
  unsentPauseMs: 50,
  /** Ms until a second stream is requested again after a backend has refused it for a temporary reason. */
  declinedMs: 2000,
  /** Ms after which the second stream of a hedged watch replaces a first stream that is still suspect. */
  hedgedMs: 5000,
  /** A client with data pending for this many ms counts as slow: the apiserver allows as much (watch.md §5.5). */
  slowWatchMs: 1000,
  /** Maximum number of watches that move at once, before `movesPerSecond` limits them (D6). */
  moveBurst: 100,
  movesPerSecond: 1000,
  /** A 429 halves the rate of moves, but not below this rate. */
  movesPerSecondLeast: 50,
  movePauseMs: 10,
  /** Average ms between two moves that are not urgent: an apiserver that shuts down ends its watches at this pace. */
  leavePauseMs: 5,
  /** Moves that happen within this many ms become one journal entry if their reason and backends are the same. */
  logMs: 1000,
  /** Ms between two checks of all watches (hung-watch.ts). */
  hungLookMs: 5000,
  /** Ms after the client's deadline at which the proxy ends a watch that its backend has not ended. */
  overdueMs: 5000,
  /** Ms without an event after which a watch hangs: two bookmarks, each due in 62.3 s, are missing (watch.md §6.3). */
  hungMs: 130_000,
  stallLookMs: 1000,
  /** Ms between two searches for lagging caches: an eighth of the ms that a PING may stay unanswered. */
  lagLookMs: 125,
  /** Minimum ms between two marks (cache-progress.ts) of a scope while one of its caches lags. */
  lagMarkMs: 250,
  /** A cache that lagged for fewer ms is ignored for `lagPauseMs`: an apiserver short of CPU must not get more work. */
  lagMomentMs: 2000,
  lagPauseMs: 30_000,
  /**
   * Maximum number of marks (cache-progress.ts) of a resource or scope. A resource gets one mark a second, so its marks
   * cover `caughtUpMs`. A scope gets four a second, so its marks cover `sightMs`.
   */
  cacheMarks: 90,
  /** Ms within which a watch of a working cache gets a bookmark: one is due every 62.3 s (watch.md §6.4). */
  caughtUpMs: 70_000,
  /** Timeout of a stream for one bookmark, which the apiserver sends 2 s before the timeout (watch.md §5.5). */
  bookmarkRefreshMs: 3000,
  /** Ms between two streams for one bookmark: when an apiserver comes back, many watches need a bookmark at once. */
  bookmarkRefreshPauseMs: 5,
  /** Ms after which a watch that had no room for such a stream is looked at again: most moves take less. */
  bookmarkRefreshAgainMs: 1000,
  /** Ms between two checks that each resource has a sentinel (sentinels.ts). */
  sentinelLookMs: 500,
  /** Maximum number of sentinels that one check requests. */
  sentinelsAtOnce: 100,
  /** Maximum number of watches of a resource that one check considers as its sentinel. */
  sentinelTries: 500,
  /** Ms until a backend that refused a sentinel is asked again, because filling a cache takes a second. */
  sentinelPauseMs: 1000,
  /** Maximum number of sentinels: one for each of `comparedResources`. */
  sentinels: 1000,
  /** Maximum number of events that wait because a sentinel's second stream has delivered them before the first. */
  aheadEvents: 1000,
  /** Maximum size in bytes of the events that a sentinel's second stream has delivered before the first. */
  aheadBytes: 1024 * 1024,
  /** Ms between two lists from a backend whose etcd history differs, or that did not answer the last list. */
  historyLookMs: 1000,
  /** Ms between two lists from each ready backend, to check its etcd history (histories.ts). */
  historyMs: 5000,
  historyAnswerMs: 5000,
  /** Maximum number of resources that one check of a history considers, and of watches of each resource. */
  historyTries: 20,
  /** Ms for which the check of a history skips a resource that could not be listed. */
  historyUnreadMs: 60_000,
  /** Minimum ms for which a backend is not trusted after its events differed from another backend's. */
  historyUnlikeMs: 300_000,
  /** Ms until another etcd history is accepted if no backend with the right one answers: a restart takes as long. */
  historyAloneMs: 30_000,
  /** A stream that opens fewer ms than this before an event may get the event as part of its initial state. */
  sightMs: 2000,
  /** Ms for which a stalled cache is avoided, doubled for each further stall, up to `stallSpellMostMs`. */
  stallSpellMs: 60_000,
  stallSpellMostMs: 600_000,
  /** Maximum number of resources, and of scopes, whose caches are compared. A large cluster has 300 resources. */
  comparedResources: 1000,
  /** Minimum ms after which an apiserver ends a watch whose client set no timeout (--min-request-timeout). */
  watchServerMs: 1_800_000,
  /** Minimum ms between two lists that make a backend's cache of a resource catch up with etcd (watch.md §6.6). */
  progressRequestMs: 1000,
  /** A slower response to such a list shows a stalled cache: the apiserver waits 3 s for its cache, then asks etcd. */
  progressWaitMs: 2500,
  progressAnswerMs: 4500,
  /** Maximum number of clients with whose identity one list is tried: one client may lack the permission. */
  progressTries: 4,
  /** Maximum number of pairs of backend and resource that progress-requests.ts records, at 200 bytes each. */
  progressRecords: 2000,
  /** Ms between two requests for an unknown API's origin, doubled each time: a new CRD's OpenAPI appears after 1 s. */
  originPauseMs: 1000,
  /** Ms between two requests for the origin of an API that an aggregated server serves. */
  originAgainMs: 600_000,
  /**
   * Lists of one object that are sent to bound the initial events of watches without a version: the burst, and the
   * number per second. A list costs the apiserver less than the watch, but 5,000 clients may open watches at once.
   */
  initialListBurst: 100,
  initialListsPerSecond: 20,
  /** Ms between two checks of a cache that had not advanced within `progressCheckMs`. */
  progressAgainMs: 60_000,
} as const;
