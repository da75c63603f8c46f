/** Limits of the measurement of backends' load, each with its reason (see src/base/limits.ts). */

export const loadLimits = {
  /** Ms between two updates of the averages. */
  lookMs: 1000,
  /** Ms in which an average follows two thirds of a change: so many that one slow LIST does not count. */
  averageMs: 10_000,
  /** Number of reads in `lookMs` from which on their mean has its full weight in the average. */
  fullReads: 5,
  /** Averages of fewer reads are not compared with those of other backends. */
  comparedReads: 20,
  /** A read that takes at most this many ms more than at other backends is not slow: the backend may be far away. */
  slowReadMs: 5,
  /** Maximum ms for which a Retry-After keeps new clients away from its backend. kube-apiserver says 1 s. */
  mostPauseMs: 30_000,
  /** Ms after which a load report is too old: the backend gets no requests, or no longer reports. */
  reportMs: 30_000,
  /** Minimum ms between two load reports that are parsed, because each response may carry one. */
  reportPauseMs: 250,
  /** Maximum length of a load report. A text report with all named fields has 200 characters. */
  reportChars: 2048,
} as const;
