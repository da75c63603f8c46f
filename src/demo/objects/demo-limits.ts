/** Every limit of the embedded apiserver, with its reason. Nobody but the demo and the tests is served by it. */
const MiB = 1024 * 1024;

export const demoLimits = {
  /** The embedded apiserver takes what a real one takes (k8s.io/apiserver pkg/server/config.go). */
  bodyBytes: 3 * MiB,
  /** Far above any real object (a CRD's schema nests some 60 deep), far below what writing JSON recursively can take. */
  jsonLevels: 500,
  /** How far back its watches may start, in changes; a real one keeps 100 to 102,400 per resource. */
  historyChanges: 10_000,
  /** A watcher this far behind is ended, as a real one is after about a second of events. */
  watchQueueBytes: 4 * MiB,
} as const;
