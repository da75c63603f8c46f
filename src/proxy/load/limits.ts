/** Limits of the measurement of backends' load, each with its reason (see src/base/limits.ts). */

export const loadLimits = {
  /** Ms between two updates of the averages. */
  lookMs: 1000,
  /** Ms in which an average takes over two thirds of a change: long enough that one slow LIST does not count. */
  averageMs: 10_000,
  /** Number of reads in `lookMs` at which their mean gets full weight in the average. */
  fullReads: 5,
  /** Averages of fewer reads are not compared with those of other backends. */
  comparedReads: 20,
  /** A read that takes fewer ms more than at other backends is not slow: the difference may be distance. */
  slowReadMs: 5,
  /** A backend with a Retry-After gets new clients again after this many ms at most. kube-apiserver says 1 s. */
  mostPauseMs: 30_000,
  /** Ms after which a load report counts no more: the backend gets no requests, or sends no reports any more. */
  reportMs: 30_000,
  /** Minimum ms between two load reports that are parsed, because each response may carry one. */
  reportPauseMs: 250,
  /** Maximum length of a load report. A text report with all named fields has 200 characters. */
  reportChars: 2048,
} as const;
