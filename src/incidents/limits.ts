/** Limits of incidents, each with its reason (see src/base/limits.ts). */
export const incidentLimits = {
  /**
   * A certificate's last week and last day, as the alert KubeClientCertificateExpiration uses. A loopback certificate
   * is reported a month ahead, because the operator must plan a restart of its apiserver.
   */
  expirySoonMs: 604_800_000,
  expiryNowMs: 86_400_000,
  loopbackExpirySoonMs: 2_592_000_000,
  /** Pause between checks of all certificates' expiry. */
  expiryLookMs: 1000,
  /**
   * Active incidents, and ended ones that are kept: a bad day has a few dozen. One takes 10 KB with all its evidence
   * rows, of which the first and the last are kept.
   */
  incidentsActive: 200,
  incidentsKept: 500,
  incidentEvidence: 32,
  /** Pairs of kind and backend that are counted separately; beyond that, by kind alone. */
  incidentCounts: 50,
  /** Backends whose moves and failures are collected before their incident is opened. */
  incidentBackends: 128,
  /** A backend that is suspect for less than this is no incident: its watches and requests were hedged. */
  doubtMs: 1500,
  /** The same while new sockets are answered or none has been tried yet: silence on old sockets alone may heal. */
  unprovenMs: 10_000,
  /** The same for a backend that answers but reports that it is not ready: it may be starting. */
  unreadyMs: 3000,
  /** A backend that announced its shutdown may be away this long: a restart, such as kubeadm's upgrades do. */
  restartMs: 60_000,
  /** This many falls within `flappingMs` are flapping: from ready, or from an answered fresh socket to a failed one. */
  flaps: 3,
  flappingMs: 120_000,
  /**
   * An incident of a hung watch, a version regression or an internal fault ends when it has not recurred for this long.
   */
  quietMs: 300_000,
  /** A replay loop is reported once a minute while it lasts (replayMs). */
  loopQuietMs: 150_000,
  stormQuietMs: 60_000,
} as const;
