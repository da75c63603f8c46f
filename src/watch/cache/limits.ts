/** Limits of watches, their caches and migrations, each with its reason (see src/base/limits.ts). */
export const watchLimits = {
  /** Ms that a watch without events lasts at least: client-go relists after one of less than a second (watch.md §7). */
  shortWatchMs: 1100,
  /** An end fewer ms than this before the client's deadline counts as the deadline (watch.md §5.5). */
  watchDueMs: 2000,
  /** Most attempts, and most ms, to continue a watch that lost its backend. Then the watch ends (watch.md §5.2). */
  resumeAttempts: 3,
  /** Most lost attempts that do not count: three backends may fail within a second. */
  resumeLosses: 3,
  resumeMs: 15_000,
  /** A resume counts as successful if no ERROR comes within this many ms after the response. */
  settledMs: 1000,
  /** A watch ends after this many resumes within this time without a new event: no backend can serve it. */
  noProgressResumes: 3,
  noProgressMs: 60_000,
  /** Ms that a backend has to answer a resume before another backend is asked. */
  resumeAnswerMs: 5000,
  /** Ms before the next attempt if no backend can be asked. */
  parkedMs: 250,
  /** Each attempt that found no connection delays the next one by this many ms more. */
  unsentPauseMs: 50,
  /** Ms after which a second stream is requested again that a backend refused for a temporary reason. */
  declinedMs: 2000,
  /** Ms after which a hedge replaces a first stream that is still suspect. */
  hedgedMs: 5000,
  /** A client with data pending for this many ms counts as slow: the apiserver allows about as much (watch.md §5.5). */
  slowWatchMs: 1000,
  /** Pace of moves (D6): a burst, then a rate per second, which a 429 halves, down to the least. */
  moveBurst: 100,
  movesPerSecond: 1000,
  movesPerSecondLeast: 50,
  movePauseMs: 10,
  /** Average ms between two moves that are not urgent: as fast as an apiserver ends its watches at shutdown. */
  leavePauseMs: 5,
  /** Ms within which moves become one journal entry. */
  logMs: 1000,
  /** Ms between two checks of all watches. */
  hungLookMs: 5000,
  /** Ms after the client's deadline at which the proxy ends a watch that its backend has not ended. */
  overdueMs: 5000,
  /** Ms without an event after which a watch hangs: it lacks two bookmarks, each due after 62.3 s (watch.md §6.3). */
  hungMs: 130_000,
  /** Ms between two searches for stalled caches. */
  stallLookMs: 1000,
  /**
   * Ms between two searches for lagging caches: an eighth of the silence that makes a PING suspicious. While a cache
   * lags, marks are `lagMarkMs` apart. A cache that lagged for less than `lagMomentMs` is ignored for `lagPauseMs`, so
   * that an apiserver that is short of CPU does not get more work.
   */
  lagLookMs: 125,
  lagMarkMs: 250,
  lagMomentMs: 2000,
  lagPauseMs: 30_000,
  /**
   * Most missing versions that are kept for a resource or scope, at 5 KB. A resource gets one a second, enough for
   * `caughtUpMs`. A scope gets four a second, enough for the `sightMs` in which a new watch is no evidence.
   */
  cacheMarks: 90,
  /** Ms after which a watch has had a bookmark if its cache moves: one comes within 62.3 s (watch.md §6.4). */
  caughtUpMs: 70_000,
  /**
   * Timeout in ms of a stream that is opened for one bookmark, which the apiserver sends 2 s before a timeout (watch.md
   * §5.5); and the pause between two such streams, because a returned apiserver makes the versions of all watches on
   * other backends too old at once.
   */
  bookmarkRefreshMs: 3000,
  bookmarkRefreshPauseMs: 5,
  /**
   * Ms between two checks whether each resource has a sentinel; most sentinels that a check requests, and most watches
   * of a resource that it tries. `sentinelPauseMs`: ms until a backend that refused a sentinel is asked again, because
   * filling a cache takes a second. `sentinels`: one for each compared resource.
   */
  sentinelLookMs: 500,
  sentinelsAtOnce: 100,
  sentinelTries: 500,
  sentinelPauseMs: 1000,
  sentinels: 1000,
  /**
   * How much a sentinel's second stream may deliver before the first: the changes of a large list of pods in the half
   * second until the first stream is suspect. Beyond that the second stream is dropped, and requested again later.
   */
  aheadEvents: 1000,
  aheadBytes: 1024 * 1024,
  /**
   * To check its etcd history, each backend is asked for a list of one object when it becomes ready and then every
   * `historyMs`; every `historyLookMs` if its history differs or it did not answer. `historyTries`: most resources that
   * are tried for one with a known version, and most watches for one with valid credentials. `historyUnreadMs`: how
   * long a resource is skipped that could not be listed.
   */
  historyLookMs: 1000,
  historyMs: 5000,
  historyAnswerMs: 5000,
  historyTries: 20,
  historyUnreadMs: 60_000,
  /** Ms without a difference after which a backend is trusted again whose events had differed. */
  historyUnlikeMs: 300_000,
  /** Ms after which another history is accepted if no right one answers: as long as an apiserver restarts. */
  historyAloneMs: 30_000,
  /** A stream opened fewer than this many ms before an event may have got the event in its initial state. */
  sightMs: 2000,
  /** Ms for which a stalled cache is avoided, doubled each time that it is found stalled again, up to the most. */
  stallSpellMs: 60_000,
  stallSpellMostMs: 600_000,
  /** Most resources, and scopes, that are compared: a large cluster has 300, at 200 bytes for each backend. */
  comparedResources: 1000,
  /** Least ms after which an apiserver ends a watch whose client set no timeout (--min-request-timeout). */
  watchServerMs: 1_800_000,
  /**
   * Least ms between two lists of one object that make a backend's cache of a resource catch up with etcd (watch.md
   * §6.6). The apiserver waits 3 s for its cache and then asks etcd itself, so a response after `progressWaitMs` shows
   * a stalled cache. `progressTries`: most clients whose identity is tried, because one that may not list does not
   * prove that none may. `progressRecords`: most pairs of backend and resource, at 200 bytes each.
   */
  progressRequestMs: 1000,
  progressWaitMs: 2500,
  progressAnswerMs: 4500,
  progressTries: 4,
  progressRecords: 2000,
  /**
   * Ms between two requests for the origin of an unknown API, doubled each time (a new CRD's OpenAPI appears after 1
   * s). `originAgainMs`: the same for an API that an aggregated server serves.
   */
  originPauseMs: 1000,
  originAgainMs: 600_000,
  /** Ms after which a cache is checked again that had not advanced after `progressCheckMs`. */
  progressAgainMs: 60_000,
} as const;
