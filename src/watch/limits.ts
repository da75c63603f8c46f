/** Limits of watches, of caches and of moves, each with its reason (see src/base/limits.ts). */
export const watchLimits = {
  /** Minimum ms that a watch without events lasts: client-go relists after a watch of under a second (watch.md §7). */
  shortWatchMs: 1100,
  /** An end at most this many ms before the client's deadline counts as caused by the deadline (watch.md §5.5). */
  watchDueMs: 2000,
  /** Maximum number of attempts, within `resumeMs`, to continue a watch that has lost its stream (watch.md §5.2). */
  resumeAttempts: 3,
  /** Maximum number of attempts that are not counted because they lost their connection: several backends may fail. */
  resumeLosses: 3,
  resumeMs: 15_000,
  /** A resume counts as successful if no ERROR event comes within this many ms after the response. */
  settledMs: 1000,
  /** A watch ends after this many resumes within `noProgressMs` that brought no new event: no backend can serve it. */
  noProgressResumes: 3,
  noProgressMs: 60_000,
  /** A resume counts as served if its stream stays open this long: a quiet watch may see three faults a minute. */
  servedMs: 5000,
  /** Ms that a backend has to answer a request to continue a watch, before another backend is asked. */
  resumeAnswerMs: 5000,
  /** Ms until the next attempt to continue a watch if no backend can be asked now. */
  parkedMs: 250,
  /** The pause before the next attempt grows by this many ms with each attempt that found no connection. */
  unsentPauseMs: 50,
  /** Ms until a second stream of a watch is requested again after a backend has refused it for a temporary reason. */
  declinedMs: 2000,
  /** A hedged watch drops its first stream in favour of the second if the first is suspect for this many ms. */
  hedgedMs: 5000,
  /** A client is slow if data has waited for it for this many ms. Apiservers wait as long (watch.md §5.5). */
  slowWatchMs: 1000,
  /** Maximum number of watches that move at once, before `movesPerSecond` limits them (D6). */
  moveBurst: 100,
  /** Moves per second at first. The rate rises while backends accept moved watches promptly (move-pace.ts). */
  movesPerSecond: 1000,
  /** Maximum number of moves per second: a move takes 0.1 ms, and one core needs time for other requests, too. */
  movesPerSecondMost: 5000,
  /** Maximum number of control-plane watches that move at once. A control plane of three machines has about 400. */
  firstMoveBurst: 500,
  /** Ms between two changes of the rate of moves. */
  paceLookMs: 200,
  /** The rate of moves rises if backends accept watches within fewer ms on average, and falls if they take more. */
  promptAcceptMs: 50,
  slowAcceptMs: 250,
  paceRise: 1.5,
  paceFall: 0.75,
  /** A 429 halves the rate of moves, but not below this rate. */
  movesPerSecondLeast: 50,
  movePauseMs: 10,
  /** Average ms between two moves that are not urgent. An apiserver that shuts down ends its watches at this rate. */
  leavePauseMs: 5,
  /** All moves within this many ms that have the same reason and the same backends make one journal entry. */
  logMs: 1000,
  /** Number of state changes that are kept for all watches together (about 2 MB): three for each of 5,000 watches. */
  lifeEntries: 16_384,
  /** Ms between two checks of all watches (hung-watch.ts). */
  hungLookMs: 5000,
  /** If the backend does not end a watch, the proxy ends it this many ms after the client's deadline. */
  overdueMs: 5000,
  /** A watch without an event for this many ms hangs: two bookmarks are missing, each due in 62.3 s (watch.md §6.3). */
  hungMs: 130_000,
  stallLookMs: 1000,
  /** Ms between two searches for lagging caches: an eighth of the default time for which a PING may stay unanswered. */
  lagLookMs: 125,
  /** Minimum ms between two marks (cache-progress.ts) of a scope while one of its caches lacks the last mark. */
  lagMarkMs: 250,
  /** After a lag of fewer ms, the cache is ignored for `lagPauseMs`: hedges burden an apiserver that lacks CPU. */
  lagMomentMs: 2000,
  lagPauseMs: 30_000,
  /**
   * Maximum number of marks (cache-progress.ts) of a resource or scope. A resource gets one mark a second, so its marks
   * cover `caughtUpMs`. A scope gets four a second, so its marks cover `sightMs`.
   */
  cacheMarks: 90,
  /** Within this many ms, each watch of a working cache gets a bookmark: one is due every 62.3 s (watch.md §6.4). */
  caughtUpMs: 70_000,
  /** Timeout of a stream for one bookmark, which the apiserver sends 2 s before the timeout (watch.md §5.5). */
  bookmarkRefreshMs: 3000,
  /** Ms between two streams for one bookmark: when an apiserver comes back, many watches need a bookmark at once. */
  bookmarkRefreshPauseMs: 5,
  /** Ms until the next try for a watch that could not open a stream for one bookmark, mostly because it is moving. */
  bookmarkRefreshAgainMs: 1000,
  /** Ms between two checks that each resource has a sentinel (D13, sentinels.ts). */
  sentinelLookMs: 500,
  /** Maximum number of sentinels that one check requests. */
  sentinelsAtOnce: 100,
  /** Maximum number of watches of a resource among which one check looks for a sentinel. */
  sentinelTries: 500,
  /** Ms until a backend that refused a sentinel's second stream is asked again: filling a cache takes a second. */
  sentinelPauseMs: 1000,
  /** Maximum number of sentinels: one for each of `comparedResources`. */
  sentinels: 1000,
  /** Maximum number of events that a sentinel's second stream has delivered and its first stream has not. */
  aheadEvents: 1000,
  /** Maximum size in bytes of the events that a sentinel's second stream has delivered and its first has not. */
  aheadBytes: 1024 * 1024,
  /** Ms between two lists from a backend whose etcd history differs, or that did not answer the last list. */
  historyLookMs: 1000,
  /** Ms between two lists from each ready backend, to check its etcd history (forked-histories.ts). */
  historyMs: 5000,
  historyAnswerMs: 5000,
  /** Maximum number of resources that one check of an etcd history tries, and of watches of each resource. */
  historyTries: 20,
  /** Ms for which the checks of etcd histories skip a resource that could not be listed. */
  historyUnreadMs: 60_000,
  /** Minimum ms for which a backend counts as forked (another etcd history) after its events differed from a peer's. */
  historyUnlikeMs: 300_000,
  /**
   * Another etcd history is accepted if no backend with the right history answers for this many ms: longer than a
   * restart takes.
   */
  historyAloneMs: 30_000,
  /** An event that comes within this many ms after its stream was opened may be part of the initial state. */
  sightMs: 2000,
  /** Ms for which a stalled cache is avoided, doubled for each further stall, up to `stallSpellMostMs`. */
  stallSpellMs: 60_000,
  stallSpellMostMs: 600_000,
  /** Maximum number of resources, and of scopes, whose caches are compared. A large cluster has 300 resources. */
  comparedResources: 1000,
  /** Minimum ms after which an apiserver ends a watch whose client set no timeout (--min-request-timeout). */
  watchServerMs: 1_800_000,
  /** Minimum ms between two lists that make a backend's watch cache of a resource follow etcd (watch.md §6.6). */
  progressRequestMs: 1000,
  /**
   * If a list that makes a cache follow etcd takes more ms than this, the cache counts as stalled: the apiserver waits
   * 3 s for its cache.
   */
  progressWaitMs: 2500,
  progressAnswerMs: 4500,
  /** Maximum number of clients whose identity is tried for one list, because a client may lack the permission. */
  progressTries: 4,
  /** Maximum number of pairs of backend and resource that progress-requests.ts remembers, at 200 bytes each. */
  progressRecords: 2000,
  /** Ms between two attempts to find out an API's origin, doubled each time: a new CRD's OpenAPI appears after 1 s. */
  originPauseMs: 1000,
  /** Ms until the origin of an aggregated API is checked again, because the API may become a CRD's. */
  originAgainMs: 600_000,
  /**
   * Budget for the lists of one object that limit the versions of a watch's initial events (initial-events.ts). Such a
   * list costs the apiserver less than the watch, but 5,000 clients may open watches at once.
   */
  initialListBurst: 100,
  initialListsPerSecond: 20,
  /**
   * Maximum number of undelivered writes of a resource that are measured (write-delays.ts), at 80 bytes each. While
   * more than `writeMarksClose` of them are undelivered, only one write in `writeMarkEveryMs` is measured, so that they
   * cover 6 s.
   */
  writeMarks: 64,
  writeMarksClose: 16,
  writeMarkEveryMs: 125,
  /** Ms after which an undelivered write is no longer measured: the backend's cache counts as stalled by then. */
  writeMarkMs: 60_000,
  /** Maximum number of API groups with a histogram each, per backend. A cluster has 25 and the groups of its CRDs. */
  delayGroups: 32,
  /** Interval in ms. The longest delay of a write is kept for the present interval and the previous one. */
  recentDelayMs: 10_000,
  /** Ms between two checks for backends that deliver writes late (watch-delay.ts). */
  delayLookMs: 500,
  /** A watch that delivers a write this many ms after the write's response is late. Apiservers take milliseconds. */
  lateMs: 2000,
  /** A late backend stays late until it delivers all writes in fewer ms than this. */
  stillLateMs: 1000,
  /** Number of checks in a row that must find a backend late. A garbage collection of an apiserver is shorter. */
  lateLooks: 4,
  /** Maximum number of watches of a resource in which a check looks for proof that the backend is late. */
  delayTries: 500,
  /** Minimum ms between two journal entries of a backend that is late. */
  lateReportMs: 5000,
  /** Ms until the next check of a cache that has not advanced within `progressCheckMs`. */
  progressAgainMs: 60_000,
} as const;
