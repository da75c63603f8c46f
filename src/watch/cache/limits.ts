/** What bounds watches, their caches and migrations, each with its reason (see src/base/limits.ts). */
export const watchLimits = {
  /** client-go relists when a watch without events ends within a second (watch.md §7). */
  shortWatchMs: 1100,
  /** An end this close to the client's deadline is that deadline: the last bookmarks come so early (watch.md §5.5). */
  watchDueMs: 2000,
  /** One watch that lost its backend: how often and for how long others are asked before it ends (watch.md §5.2). */
  resumeAttempts: 3,
  /** Attempts that were lost with their connection before any answer: so many more are made (three faults within a second). */
  resumeLosses: 3,
  resumeMs: 15_000,
  /** A resume that was answered, and not refused by an ERROR within this time, has held. */
  settledMs: 1000,
  /** Resumes in this time after which nothing new came: the cluster cannot serve this watch, whoever is asked. */
  fruitlessResumes: 3,
  fruitlessMs: 60_000,
  /** A backend that was asked to go on with a watch and says nothing: somebody else is asked. */
  resumeAnswerMs: 5000,
  /** Nobody can be asked to: how soon it is tried again. */
  parkedMs: 250,
  /** Each backend that has no upstream connection to be asked on puts the next attempt off by so much more. */
  unsentPauseMs: 50,
  /** A second leg that was refused for what may pass is asked for again after so long, if it is needed still. */
  declinedMs: 2000,
  /** A hedge that has been needed for so long is the watch: its backend answers PING and is ill all the same. */
  hedgedMs: 5000,
  /** What waits for a client for so long makes its watch a slow one: the apiserver gives it about as much (§5.5). */
  slowWatchMs: 1000,
  /** Watches that are asked for elsewhere (D6): so many at once, and at this pace; halved by a 429, to no less than. */
  moveBurst: 100,
  movesPerSecond: 1000,
  movesPerSecondLeast: 50,
  movePauseMs: 10,
  /** And those that have time, on average: 200/s, as fast as an apiserver lets go of its own (genericapiserver.go). */
  leavePauseMs: 5,
  /** Moves that the journal tells as one. */
  waveMs: 1000,
  /** Between two looks at all watches. */
  hungLookMs: 5000,
  /** A server that has not ended a watch so long after its client's deadline never will. */
  overdueMs: 5000,
  /** Two periods between bookmarks, each at most 62.3 s, and some room (watch.md §6.3). */
  hungMs: 130_000,
  /** Between two comparisons of all caches for stalled ones. */
  stallLookMs: 1000,
  /**
   * And for lagging ones: an eighth of the silence that is suspicious. While a cache lacks something, the versions that it is
   * compared by are so far apart. One that lagged for a moment only is left alone for a while, so that an apiserver short of
   * CPU has no more to do for it.
   */
  lagLookMs: 125,
  lagMarkMs: 250,
  lagMomentMs: 2000,
  lagPauseMs: 30_000,
  /**
   * The newest versions that a cache lacks: of a resource one a second, enough for the longest wait below; of a scope four,
   * for more than the 2 s in which a new watch shows nothing. 5 KB each.
   */
  cacheMarks: 90,
  /** As above, where only bookmarks can tell: one comes within 62.3 s (watch.md §6.4). */
  caughtUpMs: 70_000,
  /**
   * For so long a watch is asked for once more where it is, to be shown a bookmark: one is sent 2 s before the end (watch.md
   * §5.5). And between two of those, since every apiserver that comes back makes all watches elsewhere old at once.
   */
  bookmarkRefreshMs: 3000,
  bookmarkRefreshPauseMs: 5,
  /**
   * Between two looks at whether each resource has its sentinel; how many are asked for in one look, and how many watches of
   * a resource are tried. A backend that refused one is asked again after the pause: a cache that is being filled takes a
   * second (Retry-After). One stream a resource, and as many resources as are compared.
   */
  sentinelLookMs: 500,
  sentinelsAtOnce: 100,
  sentinelTries: 500,
  sentinelPauseMs: 1000,
  sentinels: 1000,
  /**
   * What a sentinel's second leg may show before the first does: a large list of pods being written, in the half second
   * after which the first is in doubt. Beyond that it is asked anew when it is needed.
   */
  aheadEvents: 1000,
  aheadBytes: 1024 * 1024,
  /**
   * Each backend is asked for a list of one object, to see whether its etcd has the history that clients have seen: when it
   * becomes ready and then every few seconds; one that has not, or did not answer, once a second. A list takes 3 s at
   * most (progressAnswerMs). So many resources are tried for one that was shown and may be listed, one that could not be
   * is left alone for a while; and so many watches of it for an identity that is not over.
   */
  historyLookMs: 1000,
  historyMs: 5000,
  historyAnswerMs: 5000,
  historyTries: 20,
  historyUnreadMs: 60_000,
  /** One whose events have differed although its versions are new enough is believed again after so long, if it has not since. */
  historyUnlikeMs: 300_000,
  /** With no backend ready but one of another history, that is taken for right after so long: as long as an apiserver restarts. */
  historyAloneMs: 30_000,
  /** A leg that was opened so shortly before may have been given the event in its initial state. */
  sightMs: 2000,
  /** A cache that stood still and shows nothing since is avoided for so long; doubles each time that it still does. */
  stallSpellMs: 60_000,
  stallSpellMostMs: 600_000,
  /** Resources, and scopes, whose caches are compared: a large cluster has 300, and each takes some 200 bytes for each backend. */
  comparedResources: 1000,
} as const;
