/** Limits of the embedded apiserver, with their reasons. Only the demo and the tests use it. */
const MiB = 1024 * 1024;

export const demoLimits = {
  /** The same as a real apiserver's (k8s.io/apiserver pkg/server/config.go). */
  bodyBytes: 3 * MiB,
  /**
   * Far above any real object (a CRD's schema nests about 60 levels), far below what recursive JSON serialisation can
   * take.
   */
  jsonLevels: 500,
  /** How far back watches may start, in changes; a real apiserver keeps 100 to 102,400 per resource. */
  historyChanges: 10_000,
  /** A watcher this far behind is ended, as a real apiserver does after about a second of events. */
  watchQueueBytes: 4 * MiB,
} as const;
