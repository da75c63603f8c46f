/** Limits of watches, their caches and migrations, each with its reason (see src/base/limits.ts). */
export const watchLimits = {
  /** Least ms that a watch without events lasts: client-go relists after one of less than a second (watch.md §7). */
  shortWatchMs: 1100,
  /** A watch that ends fewer ms than this before the client's deadline counts as ended by it (watch.md §5.5). */
  watchDueMs: 2000,
  /** Most attempts within `resumeMs` to continue a watch that lost its backend; then the watch ends (watch.md §5.2). */
  resumeAttempts: 3,
  /** Most attempts that do not count because their connection was lost: three backends may fail within a second. */
  resumeLosses: 3,
  resumeMs: 15_000,
  /** A resume counts as successful if no ERROR comes within this many ms after the response. */
  settledMs: 1000,
  /** A watch ends after this many resumes within `noProgressMs` without a new event: no backend can serve it. */
  noProgressResumes: 3,
  noProgressMs: 60_000,
  /** Ms that a backend has to answer a resume before another backend is asked. */
  resumeAnswerMs: 5000,
  /** Ms until the next attempt if no backend can be asked. */
  parkedMs: 250,
  /** Each attempt that found no connection makes the pause before the next attempt longer by this many ms. */
  unsentPauseMs: 50,
  /** Ms until a second stream is requested again after a backend has refused it for a temporary reason. */
  declinedMs: 2000,
  /** Ms after which the second stream of a hedged watch replaces a first stream that is still suspect. */
  hedgedMs: 5000,
  /** A client with data pending for this many ms counts as slow: the apiserver allows about as much (watch.md §5.5). */
  slowWatchMs: 1000,
  /** Pace of moves (D6): a burst, then a rate per second. A 429 halves the rate, down to `movesPerSecondLeast`. */
  moveBurst: 100,
  movesPerSecond: 1000,
  movesPerSecondLeast: 50,
  movePauseMs: 10,
  /** Average ms between two moves that are not urgent: an apiserver ends its watches as fast when it shuts down. */
  leavePauseMs: 5,
  /** Moves that happen within this many ms become one journal entry if their reason and backends are the same. */
  logMs: 1000,
  /** Ms between two checks of all watches. */
  hungLookMs: 5000,
  /** Ms after the client's deadline at which the proxy ends a watch that its backend has not ended. */
  overdueMs: 5000,
  /** Ms without an event after which a watch hangs: two bookmarks, each due in 62.3 s, are missing (watch.md §6.3). */
  hungMs: 130_000,
  /** Ms between two searches for stalled caches. */
  stallLookMs: 1000,
  /**
   * `lagLookMs`: ms between two searches for lagging caches, an eighth of the ms that a PING may stay unanswered.
   * `lagMarkMs`: ms between two marks (`Mark`) while a cache lags. A cache that lagged for less than `lagMomentMs` is
   * ignored for `lagPauseMs`, so that an apiserver that is short of CPU does not get more work.
   */
  lagLookMs: 125,
  lagMarkMs: 250,
  lagMomentMs: 2000,
  lagPauseMs: 30_000,
  /**
   * Most marks (`Mark`) kept for a resource or scope, at 5 KB. A resource gets one a second, so they cover
   * `caughtUpMs`. A scope gets four a second, so they cover `sightMs`, the time in which a new watch is no evidence.
   */
  cacheMarks: 90,
  /** Ms within which a watch gets a bookmark if its cache moves: a bookmark comes within 62.3 s (watch.md §6.4). */
  caughtUpMs: 70_000,
  /**
   * `bookmarkRefreshMs`: timeout of a stream that is opened to get one bookmark, which the apiserver sends 2 s before
   * the timeout (watch.md §5.5). `bookmarkRefreshPauseMs`: pause between two such streams, because many are due at
   * once: for an apiserver that has just come back, the versions of all watches on other backends are too old.
   */
  bookmarkRefreshMs: 3000,
  bookmarkRefreshPauseMs: 5,
  /**
   * `sentinelLookMs`: ms between two checks that each resource has a sentinel. `sentinelsAtOnce`: most sentinels that a
   * check requests. `sentinelTries`: most watches of a resource that it tries. `sentinelPauseMs`: ms until a backend
   * that refused a sentinel is asked again: filling a cache takes a second. `sentinels`: one for each compared
   * resource.
   */
  sentinelLookMs: 500,
  sentinelsAtOnce: 100,
  sentinelTries: 500,
  sentinelPauseMs: 1000,
  sentinels: 1000,
  /**
   * Most events and bytes that a sentinel's second stream may deliver before the first: the changes of many pods in the
   * half second until the first stream is suspect. Beyond that the second stream is dropped, and requested again later.
   */
  aheadEvents: 1000,
  aheadBytes: 1024 * 1024,
  /**
   * To check its etcd history, each backend is asked for a list of one object when it becomes ready and then every
   * `historyMs`. If its history differs, or it did not answer, it is asked every `historyLookMs`. `historyTries`: most
   * resources that one check considers, and most watches of a resource; the check needs a resource with a known version
   * and a watch with valid credentials. `historyUnreadMs`: ms for which a resource that could not be listed is skipped.
   */
  historyLookMs: 1000,
  historyMs: 5000,
  historyAnswerMs: 5000,
  historyTries: 20,
  historyUnreadMs: 60_000,
  /** If a backend's events differed from another backend's, it is not trusted for at least this many ms. */
  historyUnlikeMs: 300_000,
  /** Ms until another etcd history is accepted if no backend with the right one answers. A restart takes as long. */
  historyAloneMs: 30_000,
  /** A stream may get an event as part of its initial state if it opens fewer ms than this before the event. */
  sightMs: 2000,
  /** Ms for which a stalled cache is avoided, doubled each time it is found stalled, up to `stallSpellMostMs`. */
  stallSpellMs: 60_000,
  stallSpellMostMs: 600_000,
  /** Most resources, and scopes, whose caches are compared: a large cluster has 300, at 200 bytes for each backend. */
  comparedResources: 1000,
  /** Least ms after which an apiserver ends a watch whose client set no timeout (--min-request-timeout). */
  watchServerMs: 1_800_000,
  /**
   * `progressRequestMs`: least ms between two lists of one object that make a backend's cache of a resource catch up
   * with etcd (watch.md §6.6). `progressWaitMs`: a later response shows a stalled cache, because the apiserver waits 3
   * s for its cache and then asks etcd itself. `progressTries`: most clients whose identity is tried, because one may
   * list what another may not. `progressRecords`: most pairs of backend and resource, at 200 bytes each.
   */
  progressRequestMs: 1000,
  progressWaitMs: 2500,
  progressAnswerMs: 4500,
  progressTries: 4,
  progressRecords: 2000,
  /**
   * `originPauseMs`: ms between two requests for the origin of an unknown API, doubled each time (a new CRD's OpenAPI
   * appears after 1 s). `originAgainMs`: the same for an API that an aggregated server serves.
   */
  originPauseMs: 1000,
  originAgainMs: 600_000,
  /** Ms between two checks of a cache that had not advanced within `progressCheckMs`. */
  progressAgainMs: 60_000,
} as const;
