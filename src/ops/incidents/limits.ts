/** Limits of incidents, each with its reason (see src/base/limits.ts). */
export const incidentLimits = {
  /**
   * Milliseconds before expiry at which a certificate is reported, first as "soon" and then as "now". The alert
   * KubeClientCertificateExpiration uses the same times.
   */
  expirySoonMs: 604_800_000,
  expiryNowMs: 86_400_000,
  /**
   * Milliseconds before expiry at which a loopback certificate is reported. This is longer than for other certificates,
   * because only a restart of the apiserver renews a loopback certificate.
   */
  loopbackExpirySoonMs: 2_592_000_000,
  /** Ms between two checks of all certificates. */
  expiryLookMs: 1000,
  /**
   * Maximum number of active incidents. Each takes about 10 KB with the maximum amount of evidence. Even many
   * simultaneous problems cause only a few dozen incidents.
   */
  incidentsActive: 200,
  /** Maximum number of ended incidents that are kept. */
  incidentsKept: 500,
  /** Maximum number of evidence rows of one incident. */
  incidentEvidence: 32,
  /**
   * Maximum number of incident counters. There is one for each pair of a kind and a backend. Once the limit is reached,
   * further incidents are counted by kind only.
   */
  incidentCounts: 50,
  /** Maximum number of backends whose failures are followed. The backends of all clusters count. */
  incidentBackends: 128,
  /**
   * Milliseconds that a backend may be in the state "suspect" before an incident is opened. Clients hardly notice this
   * time, because reads that the backend does not answer are also sent to another backend.
   */
  doubtMs: 1500,
  /**
   * Used instead of `doubtMs` if no new connection to the backend has failed. In that case, the backend may be healthy.
   */
  unprovenMs: 10_000,
  /** Milliseconds that a backend may report "not ready" before an incident is opened, because it may be starting. */
  unreadyMs: 3000,
  /**
   * Milliseconds that a backend may be unavailable before an incident is opened, if it has announced its shutdown. An
   * upgrade by kubeadm restarts an apiserver in this way.
   */
  restartMs: 60_000,
  /** A backend counts as flapping after this many failures within `flappingMs`. */
  flaps: 3,
  flappingMs: 120_000,
  /** Milliseconds without new evidence after which incidents about watches, versions or internal errors end. */
  quietMs: 300_000,
  /**
   * Milliseconds after the last report of a replay loop until its incident ends. While a loop lasts, a report is
   * written every minute, so the incident stays active even if one report is missing.
   */
  loopQuietMs: 150_000,
  /** Milliseconds without new evidence after which an incident about a relist storm ends. */
  stormQuietMs: 60_000,
  /** Milliseconds without new evidence after which an incident about overload ends. */
  overloadQuietMs: 60_000,
  /** Milliseconds without a refused request after which an incident about a configured limit ends. */
  limitQuietMs: 60_000,
  /**
   * Milliseconds after the last report of late events until an incident about late watches ends. While watches are
   * late, a report is written every 5 s.
   */
  delayQuietMs: 30_000,
  /** Maximum number of characters of a client's name; the rest is cut off. */
  nameChars: 128,
  /** Maximum number of characters of a subject, of a summary, and of an evidence row's text. */
  textChars: 300,
} as const;
