/** Limits of incidents, each with its reason (see src/base/limits.ts). */
export const incidentLimits = {
  /** Milliseconds before expiry that a certificate is reported, as by the alert KubeClientCertificateExpiration. */
  expirySoonMs: 604_800_000,
  expiryNowMs: 86_400_000,
  /** The same for an apiserver's loopback certificate, because a restart of the apiserver must be planned. */
  loopbackExpirySoonMs: 2_592_000_000,
  expiryLookMs: 1000,
  /** Number of active incidents: a bad day has a few dozen. One takes 10 KB with all its evidence. */
  incidentsActive: 200,
  incidentsKept: 500,
  /** Number of evidence rows of one incident; the first and the last are kept. */
  incidentEvidence: 32,
  /** Number of pairs of kind and backend that are counted separately. Further backends are counted by kind only. */
  incidentCounts: 50,
  incidentBackends: 128,
  /** Milliseconds that a backend may be suspect without an incident: its watches and requests are hedged. */
  doubtMs: 1500,
  /** The same while new sockets are answered or none was tried: a connection that falls silent may recover. */
  unprovenMs: 10_000,
  /** The same for a backend that answers but reports that it is not ready, because it may be starting. */
  unreadyMs: 3000,
  /** The same for a backend that announced its shutdown: an upgrade by kubeadm may take that long. */
  restartMs: 60_000,
  /** Number of falls within `flappingMs`: from ready, or from an answered fresh socket to a failed one. */
  flaps: 3,
  flappingMs: 120_000,
  /** Milliseconds without recurrence that end an incident of watches, versions or internal errors. */
  quietMs: 300_000,
  /** The same for a replay loop, which is reported once a minute while it lasts (`replayMs`). */
  loopQuietMs: 150_000,
  /** The same for a relist storm. */
  stormQuietMs: 60_000,
} as const;
