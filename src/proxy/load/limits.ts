/** Limits of the measurement of backends' load, each with its reason (see src/base/limits.ts). */

export const loadLimits = {
  /** Ms between two updates of the averages. */
  lookMs: 1000,
  /**
   * Time constant of the averages in ms: after this time, an average has followed two thirds of a change. It is so
   * large that one slow LIST changes an average only a little.
   */
  averageMs: 10_000,
  /** If a period of `lookMs` has at least this many reads, their mean has its full weight in the average. */
  fullReads: 5,
  /** An average is compared with those of other backends only if it was measured on at least this many reads. */
  comparedReads: 20,
  /**
   * A read that takes at most this many ms more than at other backends is not slow, because the backend may be far
   * away.
   */
  slowReadMs: 5,
  /** A utilisation that differs by less than this from the other backends' utilisation counts as equal. */
  alikeUtilization: 0.1,
  /**
   * Number of periods of `lookMs` between two changes of a backend's capacity. A change moves clients, and only after
   * this time do the averages show the effect.
   */
  capacityLooks: 15,
  /**
   * A backend gets fewer clients if its read times, or its utilisation, exceed this multiple of the other backends'
   * median (capacity.ts).
   */
  highPressure: 2,
  /**
   * If a backend's read times or utilisation are below this multiple of the other backends' median, the backend may get
   * more clients again. Between `lowPressure` and `highPressure`, nothing changes.
   */
  lowPressure: 1.25,
  /**
   * The first steps change a capacity by this share. 15 % of the clients can move in the 15 s until the next step,
   * because 1 % may move per second.
   */
  capacityStep: 0.15,
  /**
   * Smallest share by which a step changes a capacity. It is so small that the balance ignores the effect of several
   * steps in a row (balance.ts).
   */
  leastCapacityStep: 0.01,
  /** After this many checks with full capacity (10 minutes), the next step is large again (`capacityStep`). */
  calmSteps: 40,
  /** Minimum capacity. Even if the comparison was wrong, the backend still gets this share of its weight. */
  leastCapacity: 0.25,
  /** Maximum ms for which a backend that has sent Retry-After gets no new clients. kube-apiserver sends 1 s. */
  mostPauseMs: 30_000,
  /**
   * Ms after which a load report is no longer used. If no newer report has come, the backend gets no requests or no
   * longer sends reports.
   */
  reportMs: 30_000,
  /** Minimum ms between two load reports that are parsed, because each response may carry one. */
  reportPauseMs: 250,
  /** Maximum length of a load report. A text report with all named fields has 200 characters. */
  reportChars: 2048,
} as const;
