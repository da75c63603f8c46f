/** Limits of watches, their caches and migrations, each with its reason (see src/base/limits.ts). */
export const watchLimits = {
  /** client-go relists when a watch without events ends within a second (watch.md §7). */
  shortWatchMs: 1100,
  /** An end this close to the client's deadline counts as that deadline: the last bookmarks come so early (watch.md §5.5). */
  watchDueMs: 2000,
  /** For one watch that lost its backend: how often and how long other backends are asked before it ends (watch.md §5.2). */
  resumeAttempts: 3,
  /**
   * This many attempts that were lost with their connection before any answer are repeated (three faults within a
   * second).
   */
  resumeLosses: 3,
  resumeMs: 15_000,
  /** A resume counts as successful if no ERROR follows the answer within this time. */
  settledMs: 1000,
  /** After this many resumes within this time without anything new, no backend of the cluster can serve the watch. */
  noProgressResumes: 3,
  noProgressMs: 60_000,
  /** The time that a backend has to answer a resume before another backend is asked. */
  resumeAnswerMs: 5000,
  /** No backend can be asked: the pause before the next try. */
  parkedMs: 250,
  /** Each backend without a connection delays the next attempt by this much more. */
  unsentPauseMs: 50,
  /** A second stream that was refused for a temporary reason is requested again after this time, if it is still needed. */
  declinedMs: 2000,
  /** A hedge that is needed for this long replaces the first stream: the backend answers PING and is faulty all the same. */
  hedgedMs: 5000,
  /** A client with data pending for this long counts as slow: the apiserver allows about as much (§5.5). */
  slowWatchMs: 1000,
  /** Watches that are requested elsewhere (D6): the burst, and the pace; a 429 halves the pace, down to the least. */
  moveBurst: 100,
  movesPerSecond: 1000,
  movesPerSecondLeast: 50,
  movePauseMs: 10,
  /**
   * The average pause between watches whose move is not urgent: 200/s, as fast as an apiserver ends its own
   * (genericapiserver.go).
   */
  leavePauseMs: 5,
  /** Moves within this time are one journal entry. */
  logMs: 1000,
  /** Between two looks at all watches. */
  hungLookMs: 5000,
  /** A server that has not ended a watch this long after its client's deadline never will. */
  overdueMs: 5000,
  /** Two periods between bookmarks, each at most 62.3 s, and some room (watch.md §6.3). */
  hungMs: 130_000,
  /** Between two comparisons of all caches for stalled ones. */
  stallLookMs: 1000,
  /**
   * Between two comparisons for lagging caches: an eighth of the suspicious silence. While a cache lacks something, the
   * versions that it is compared by are `lagMarkMs` apart. A cache that lagged for a moment only is ignored for a while,
   * so that an apiserver short of CPU does not get more work.
   */
  lagLookMs: 125,
  lagMarkMs: 250,
  lagMomentMs: 2000,
  lagPauseMs: 30_000,
  /**
   * The number of missing versions that are kept: of a resource one a second, enough for the longest wait below; of a
   * scope four a second, for more than the 2 s in which a new watch is no evidence. 5 KB each.
   */
  cacheMarks: 90,
  /** The same where only bookmarks are evidence: one comes within 62.3 s (watch.md §6.4). */
  caughtUpMs: 70_000,
  /**
   * The timeout of a stream that is opened for a bookmark: the apiserver sends one 2 s before the end (watch.md §5.5).
   * And the pause between two of those, since every apiserver that comes back makes the versions of all watches elsewhere
   * too old at once.
   */
  bookmarkRefreshMs: 3000,
  bookmarkRefreshPauseMs: 5,
  /**
   * Between two looks at whether each resource has its sentinel; how many are requested in one look, and how many watches
   * of a resource are tried. A backend that refused one is asked again after the pause: filling a cache takes a second
   * (Retry-After). One stream a resource, and as many resources as are compared.
   */
  sentinelLookMs: 500,
  sentinelsAtOnce: 100,
  sentinelTries: 500,
  sentinelPauseMs: 1000,
  sentinels: 1000,
  /**
   * How much a sentinel's second stream may deliver before the first does: a large list of pods being written, in the
   * half second after which the first stream is suspect. Beyond that the second stream is dropped and requested again
   * when it is needed.
   */
  aheadEvents: 1000,
  aheadBytes: 1024 * 1024,
  /**
   * Each backend is asked for a list of one object, to check that its etcd has the history that clients have seen: when
   * it becomes ready and then every few seconds; once a second if its history differs or it did not answer. A list takes
   * 3 s at most (progressAnswerMs). `historyTries` bounds the resources that are tried for one with a known version, and
   * the watches that are tried for valid credentials. A resource that could not be listed is skipped for a while.
   */
  historyLookMs: 1000,
  historyMs: 5000,
  historyAnswerMs: 5000,
  historyTries: 20,
  historyUnreadMs: 60_000,
  /**
   * A backend whose events differed although its versions are new enough is trusted again after this time without a
   * difference.
   */
  historyUnlikeMs: 300_000,
  /**
   * If the only backend that answers has another history, that one is accepted after this time: as long as an apiserver
   * restarts.
   */
  historyAloneMs: 30_000,
  /** A stream opened less than this before an event may have got that event in its initial state. */
  sightMs: 2000,
  /** A stalled cache is avoided for this long; the time doubles each time that it is found stalled again. */
  stallSpellMs: 60_000,
  stallSpellMostMs: 600_000,
  /**
   * The number of resources, and of scopes, whose caches are compared: a large cluster has 300, at some 200 bytes for
   * each backend.
   */
  comparedResources: 1000,
  /** Shortest duration of a watch whose client sets no timeout (--min-request-timeout). */
  watchServerMs: 1_800_000,
  /**
   * Before `behindMs` is over, a list of one object makes the backend's cache catch up with etcd (docs/watch.md §6.6):
   * at most one per second for each backend and resource. The apiserver waits 3 s for its cache and then asks etcd
   * itself. One client that may not list does not prove that none may, so up to `progressTries` clients are used. Each
   * pair of backend and resource takes about 200 bytes.
   */
  progressRequestMs: 1000,
  progressWaitMs: 2500,
  progressAnswerMs: 4500,
  progressTries: 4,
  progressRecords: 2000,
  /**
   * Pause between requests for the origin of an unknown API, doubled each time (a new CRD's OpenAPI appears after 1 s);
   * and between those for an API that an aggregated server serves.
   */
  originPauseMs: 1000,
  originAgainMs: 600_000,
  /** A cache that has not advanced by `progressCheckMs` is checked again after this time. */
  progressAgainMs: 60_000,
} as const;
