/**
 * Limits of watches, of watch caches, and of moves of watches between backends, each with its reason
 * (src/base/limits.ts).
 */
export const watchLimits = {
  /**
   * Minimum age in ms at which the proxy ends a watch without events. If such a watch ends within a second, client-go
   * relists (watch.md §7).
   */
  shortWatchMs: 1100,
  /**
   * If a watch ends at most this many ms before the client's deadline, the deadline counts as the cause (watch.md
   * §5.5).
   */
  watchDueMs: 2000,
  /** Maximum number of attempts, within `resumeMs`, to continue a watch that has lost its stream (watch.md §5.2). */
  resumeAttempts: 3,
  /**
   * Maximum number of attempts that do not count towards `resumeAttempts` because their connection was lost before a
   * response. Without this allowance, several backends that fail at once could use up all attempts.
   */
  resumeLosses: 3,
  /**
   * After the loss of a watch's stream, the proxy tries for this many ms to continue the watch. Then it ends the watch.
   */
  resumeMs: 15_000,
  /** A resume counts as successful if no ERROR event follows the response within this many ms. */
  settledMs: 1000,
  /**
   * If a watch is resumed this many times within `noProgressMs` ms without a new event, the proxy ends the watch,
   * because apparently no backend can serve it.
   */
  noProgressResumes: 3,
  noProgressMs: 60_000,
  /**
   * A resume whose stream stays open for this many ms is not counted in `noProgressResumes`. A quiet watch gets no
   * events, so it could lose its stream three times within a minute without having made progress.
   */
  servedMs: 5000,
  /** Timeout in ms of a request to continue a watch. After it, the proxy asks another backend. */
  resumeAnswerMs: 5000,
  /** Ms until the next attempt to continue a watch if no backend can be asked now. */
  parkedMs: 250,
  /** After each attempt that found no connection, the pause until the next attempt grows by this many ms. */
  unsentPauseMs: 50,
  /**
   * After a backend has refused a watch's second stream for a temporary reason, ms until the proxy requests one again.
   */
  declinedMs: 2000,
  /** If the first stream of a hedged watch stays suspect for this many ms, the proxy drops it and keeps the second. */
  hedgedMs: 5000,
  /**
   * A client is slow if data has waited for this many ms to be sent to it. An apiserver waits for the same time before
   * it ends the watch of a slow client (watch.md §5.5).
   */
  slowWatchMs: 1000,
  /** Burst of the token bucket that limits the moves of watches; its rate is `movesPerSecond` (D6). */
  moveBurst: 100,
  /**
   * Maximum rate in moves per second. A move takes 0.2 ms of CPU time on the core that also serves all other requests.
   */
  movesPerSecond: 5000,
  /**
   * Burst of the separate token bucket for the moves of the control plane's watches. A control plane of three machines
   * has about 400 watches.
   */
  firstMoveBurst: 500,
  /**
   * The number of requests for watches that may be unanswered at the same time (move-pace.ts). With `most` requests and
   * an answer after 20 ms, the rate reaches `movesPerSecond`. An answer that comes at most `promptMs` later than the
   * fastest one of the same backend adds `growth`, so the window can double in four round trips. An answer that comes
   * more than `slowMs` later takes 1 away. A kube-apiserver with spare CPU accepts a watch within 2 ms. If acceptance
   * takes 6 ms on average, `least` requests still move 1,000 watches a second. While the window is full,
   * `beyondPerSecond` watches a second still move, which cost a kube-apiserver a third of a core at most. Every
   * `renewMs`, the window is `initial` again, and the fastest answers are measured anew. Lost watches avoid a backend
   * that holds half of the window and has accepted no watch for `silentMs`.
   */
  moveWindow: {
    initial: 6,
    least: 6,
    most: 100,
    growth: 0.25,
    promptMs: 2,
    slowMs: 4,
    beyondBurst: 10,
    beyondPerSecond: 200,
    renewMs: 10_000,
    silentMs: 500,
  },
  /** Minimum rate in moves per second. Each 429 halves the rate of moves, but not below this. */
  movesPerSecondLeast: 50,
  /** While the pace allows no further move, ms until the next look at the waiting watches. */
  movePauseMs: 2,
  /**
   * Average ms between two moves that are not urgent. The pace need not be slower, because an apiserver that drains
   * with --shutdown-watch-termination-grace-period ends its watches at least as fast.
   */
  leavePauseMs: 5,
  /**
   * Moves that have the same reason and the same two backends share one journal entry if they occur within this many
   * ms.
   */
  logMs: 1000,
  /** Number of state changes that are kept for all watches together (about 2 MB): three for each of 5,000 watches. */
  lifeEntries: 16_384,
  /** Ms between two checks of all watches (hung-watch.ts). */
  hungLookMs: 5000,
  /** If the backend does not end a watch, the proxy ends it this many ms after the client's deadline. */
  overdueMs: 5000,
  /**
   * A watch that gets nothing for this many ms counts as hung. It has then missed two bookmarks, which come at most
   * 62.3 s apart (watch.md §6.3).
   */
  hungMs: 130_000,
  /** Ms between two searches for stalled caches (stalled-cache.ts). */
  stallLookMs: 1000,
  /**
   * Ms between two searches for lagging caches (lagging-cache.ts): an eighth of the default time for which a PING may
   * stay unanswered.
   */
  lagLookMs: 125,
  /**
   * Minimum ms between two marks of a scope while one of its caches lacks the last mark. A mark is a version that all
   * caches should reach (cache-progress.ts).
   */
  lagMarkMs: 250,
  /**
   * If a cache has lagged for fewer ms than `lagMomentMs`, lagging-cache.ts ignores it for the next `lagPauseMs`. An
   * apiserver that lacks CPU causes such short lags, and hedges would burden it further.
   */
  lagMomentMs: 2000,
  lagPauseMs: 30_000,
  /**
   * Maximum number of marks (versions that all caches should reach, cache-progress.ts) of a resource or scope. A
   * resource gets one mark a second, so this many marks cover `caughtUpMs`. A scope gets four marks a second, so they
   * cover `sightMs`.
   */
  cacheMarks: 90,
  /**
   * Within this many ms, each watch of a working cache gets a bookmark, because a bookmark is due every 62.3 s
   * (watch.md §6.4).
   */
  caughtUpMs: 70_000,
  /**
   * Timeout in ms of a stream that the proxy opens to get one bookmark. An apiserver sends a bookmark 2 s before the
   * timeout of a stream (watch.md §5.5).
   */
  bookmarkRefreshMs: 3000,
  /**
   * Ms between the streams that the proxy opens to get bookmarks for different watches. The pause spreads the load,
   * because many watches need a bookmark at the same time when an apiserver comes back.
   */
  bookmarkRefreshPauseMs: 5,
  /**
   * If the proxy cannot open a stream to get a watch's bookmark, mostly because the watch is moving, ms until it tries
   * again.
   */
  bookmarkRefreshAgainMs: 1000,
  /** Ms between two checks that each resource has a sentinel (D13, sentinels.ts). */
  sentinelLookMs: 500,
  /** Maximum number of sentinels for which one check requests a second stream. */
  sentinelsAtOnce: 100,
  /** Maximum number of a resource's watches that one check considers when it chooses a sentinel. */
  sentinelTries: 500,
  /**
   * Ms until a backend that refused a sentinel's second stream is asked again. An apiserver initialises a watch cache
   * within about a second.
   */
  sentinelPauseMs: 1000,
  /**
   * Maximum number of sentinels. There is one sentinel for each resource, and `comparedResources` limits the resources.
   */
  sentinels: 1000,
  /** Maximum number of events that a sentinel's second stream may deliver before its first stream does. */
  aheadEvents: 1000,
  /** Maximum size in bytes of the events that a sentinel's second stream may deliver before its first stream does. */
  aheadBytes: 1024 * 1024,
  /** Ms between two lists from one backend if its etcd history differs, or if its last list returned no version. */
  historyLookMs: 1000,
  /**
   * Ms between two lists that the proxy requests from a ready backend to check its etcd history (forked-histories.ts).
   */
  historyMs: 5000,
  /**
   * If a list that checks a backend's etcd history has no result this many ms after its request, the proxy requests the
   * next list.
   */
  historyAnswerMs: 5000,
  /**
   * Two maximums for one check of a backend's etcd history: the number of resources that the proxy tries to list, and
   * for each resource the number of clients whose identity it tries. A client that watches a resource may lack the
   * permission to list it.
   */
  historyTries: 20,
  /** Ms for which the checks of etcd histories skip a resource that could not be listed. */
  historyUnreadMs: 60_000,
  /** Minimum ms for which a backend counts as forked (another etcd history) after its events differed from a peer's. */
  historyUnlikeMs: 300_000,
  /**
   * How often in a row lists must show that a forked backend has the right etcd history again. If the versions of two
   * histories cross, lists may agree once by chance, but not again a second later.
   */
  historyConfirmations: 2,
  /**
   * A confirmation counts only if its three lists took at most this many ms in all. Lists of one object take
   * milliseconds. During a longer time, the versions of two histories are more likely to cross.
   */
  historyConfirmMs: 1000,
  /**
   * If no backend with the right etcd history is ready for this many ms, the proxy accepts another history. The
   * restart of an apiserver takes less time.
   */
  historyAloneMs: 30_000,
  /**
   * If no process could check a backend with another etcd history for this many ms, because no client that may list is
   * left, an incident says so. Controllers watch for longer than this.
   */
  historyUncheckedMs: 600_000,
  /** An event that comes within this many ms after its stream was opened may be part of the initial state. */
  sightMs: 2000,
  /** Ms for which a stalled cache is avoided, doubled for each further stall, up to `stallSpellMostMs`. */
  stallSpellMs: 60_000,
  stallSpellMostMs: 600_000,
  /** Maximum number of resources, and of scopes, whose caches are compared. A large cluster has 300 resources. */
  comparedResources: 1000,
  /** Minimum ms after which an apiserver ends a watch whose client set no timeout (--min-request-timeout). */
  watchServerMs: 1_800_000,
  /**
   * Minimum ms between two lists of one resource that the proxy requests from one backend to make the backend's watch
   * cache follow etcd (watch.md §6.6).
   */
  progressRequestMs: 1000,
  /**
   * Some lists make the apiserver's watch cache follow etcd. The apiserver delays the response to such a list until the
   * cache has caught up, but for at most 3 s. If the response takes more ms than this limit, the cache counts as
   * stalled.
   */
  progressWaitMs: 2500,
  /** Timeout in ms of each request of list-request.ts. */
  progressAnswerMs: 4500,
  /**
   * Maximum number of clients whose identity is tried for one list request. A client may lack the permission to list, so
   * several are tried.
   */
  progressTries: 4,
  /** Maximum number of pairs of backend and resource that progress-requests.ts remembers, at 200 bytes each. */
  progressRecords: 2000,
  /**
   * Ms between the first two attempts to find out whether a CRD or an aggregated server defines an API. The pause
   * doubles after each attempt. The OpenAPI document of a new CRD appears after about 1 s.
   */
  originPauseMs: 1000,
  /**
   * Ms until the proxy checks again whether an aggregated server serves an API. By then, a CRD may define the API
   * instead.
   */
  originAgainMs: 600_000,
  /**
   * Burst, and rate per second, of the token bucket for the lists of initial-events.ts. Each list shows an upper limit
   * for the versions of one watch's initial events. It returns one object, so it costs the apiserver less than the
   * watch. The bucket limits these lists when thousands of clients open watches at once.
   */
  initialListBurst: 100,
  initialListsPerSecond: 20,
  /**
   * Maximum number of writes of a resource whose delay is being measured (write-delays.ts): the time until the watches
   * have delivered the write. Each write takes 80 bytes. While `writeMarksClose` writes or more are being measured, the
   * measurement of another write begins only every `writeMarkEveryMs`. So the measured writes span at least 6 s.
   */
  writeMarks: 64,
  writeMarksClose: 16,
  writeMarkEveryMs: 125,
  /**
   * Ms from the response to a write until the proxy stops waiting for its delivery. By then, a backend's cache that has
   * not delivered the write counts as stalled.
   */
  writeMarkMs: 60_000,
  /**
   * Maximum number of API groups that have a histogram of their own, for each backend. A cluster has 25 built-in
   * groups, plus the groups of its CRDs.
   */
  delayGroups: 32,
  /** Interval in ms. The longest delay of a write is kept for the present interval and the previous one. */
  recentDelayMs: 10_000,
  /** Ms between two checks for backends whose watches deliver writes late (watch-delay.ts). */
  delayLookMs: 500,
  /**
   * A watch is late if it delivers a write more than this many ms after the response to the write. A working apiserver
   * takes milliseconds.
   */
  lateMs: 2000,
  /** A late backend counts as late until it delivers all writes in fewer ms than this. */
  stillLateMs: 1000,
  /**
   * A backend is reported only after this many checks in a row have found it late. The garbage collection of an
   * apiserver takes less time than that.
   */
  lateLooks: 4,
  /** Maximum number of watches of a resource in which a check looks for proof that the backend is late. */
  delayTries: 500,
  /** Minimum ms between two journal entries that report the same backend's watches as late. */
  lateReportMs: 5000,
  /** After a check has found that a cache did not advance within `progressCheckMs`, ms until the next check. */
  progressAgainMs: 60_000,
} as const;
