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
  /** A utilisation that differs by less from that of the other backends does not count. */
  alikeUtilization: 0.1,
  /** Number of `lookMs` between two changes of a capacity: until then moved clients have changed the averages. */
  capacityLooks: 15,
  /** A backend whose reads take this many times longer than at the others has too many clients (capacity.ts). */
  highPressure: 2,
  /** Below this, a backend may get more clients. Between both limits its capacity stays. */
  lowPressure: 1.25,
  /** Share by which one step changes a capacity at first: clients move as fast, at 1 % of all a second. */
  capacityStep: 0.15,
  /** Smallest step: several steps in a row are less than the balance ignores (balance.ts). */
  leastCapacityStep: 0.01,
  /** Number of steps with full capacity (10 minutes) after which the steps are large again. */
  calmSteps: 40,
  /** A slow backend keeps this share of its weight, so that a wrong comparison does little harm. */
  leastCapacity: 0.25,
  /** Maximum ms for which a Retry-After keeps new clients away from its backend. kube-apiserver says 1 s. */
  mostPauseMs: 30_000,
  /** Ms after which a load report is too old: the backend gets no requests, or no longer reports. */
  reportMs: 30_000,
  /** Minimum ms between two load reports that are parsed, because each response may carry one. */
  reportPauseMs: 250,
  /** Maximum length of a load report. A text report with all named fields has 200 characters. */
  reportChars: 2048,
} as const;
