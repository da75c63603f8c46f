/** Limits of incidents, each with its reason (see src/base/limits.ts). */
export const incidentLimits = {
  /** Milliseconds before expiry at which a certificate is reported, as by KubeClientCertificateExpiration. */
  expirySoonMs: 604_800_000,
  expiryNowMs: 86_400_000,
  /** Milliseconds before expiry at which a loopback certificate is reported: its renewal needs a planned restart. */
  loopbackExpirySoonMs: 2_592_000_000,
  expiryLookMs: 1000,
  /** Number of active incidents: a bad day has a few dozen. One takes 10 KB with all its evidence. */
  incidentsActive: 200,
  incidentsKept: 500,
  /** Number of evidence rows of one incident; the first and the last are kept. */
  incidentEvidence: 32,
  /** Number of pairs of kind and backend that are counted; incidents beyond are counted by kind only. */
  incidentCounts: 50,
  incidentBackends: 128,
  /** Milliseconds that a backend may be suspect without an incident: its watches and requests are hedged. */
  doubtMs: 1500,
  /** Milliseconds that a backend may be suspect while no new socket has failed, because old connections may recover. */
  unprovenMs: 10_000,
  /** Milliseconds that a backend may report "not ready" without an incident, because it may be starting. */
  unreadyMs: 3000,
  /** Milliseconds that a backend may be away after it announced its shutdown, as in an upgrade by kubeadm. */
  restartMs: 60_000,
  /** Number of falls within `flappingMs` that make a backend flapping. */
  flaps: 3,
  flappingMs: 120_000,
  /** Milliseconds without recurrence after which incidents of watches, versions or internal errors end. */
  quietMs: 300_000,
  /** Milliseconds without recurrence after which a replay loop has ended: while it lasts, it is reported each minute. */
  loopQuietMs: 150_000,
  /** Milliseconds without recurrence after which a relist storm, or overload, has ended. */
  stormQuietMs: 60_000,
  overloadQuietMs: 60_000,
  /** Characters of a client's name, and of a subject, summary or sentence; the rest is cut. */
  nameChars: 128,
  textChars: 300,
} as const;
