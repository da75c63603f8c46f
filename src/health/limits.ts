/** Limits of the verdicts on backends, each with its reason (see src/base/limits.ts). */
const KiB = 1024;

export const healthLimits = {
  /** Milliseconds between probes of a silent or lost backend (D6) during `urgentProbesMs`; then `slowProbeMs`. */
  urgentProbeMs: 250,
  urgentProbesMs: 10_000,
  slowProbeMs: 500,
  /** Number of probes of one backend that may wait: one every 250 ms for 1 s, and a margin. */
  probesAtOnce: 8,
  /**
   * If a TLS handshake, which takes a large packet each way, is slower than `doubtedHandshakeMs`, two more sockets are
   * tried. Large packets are lost if all three are unanswered for `lostHandshakeMs` while PINGs pass. The kernel
   * retransmits after 200 ms, so one lost packet does not matter.
   */
  doubtedHandshakeMs: 150,
  lostHandshakeMs: 250,
  handshakesAgain: 2,
  /** Bytes read of a probe's response: an apiserver's list of all checks has 5 KiB. */
  probeHeadBytes: 16 * KiB,
  probeBodyBytes: 16 * KiB,
  /** Milliseconds between two looks at a backend's loopback certificate. */
  loopbackLookMs: 3_600_000,
  /** Milliseconds between two requests for a backend's version: an upgrade is visible soon after the restart. */
  versionLookMs: 10_000,
  /** Characters kept of a version. "v1.36.1+k3s1" has 12. */
  versionChars: 64,
  probeChecks: 5,
  /**
   * Milliseconds for which a 403 counts as a starting apiserver without RBAC, which takes 150 ms to load if idle. If
   * the probe has lost its permission instead, a restarted backend becomes ready this much later.
   */
  forbiddenMs: 30_000,
  /** Number of reads in a row that must hang on a backend, and be answered elsewhere, before the backend is suspect. */
  hungReads: 3,
  /** Milliseconds after hung reads until a good /readyz lets the backend get reads again. */
  hungReadsMs: 3000,
  /** Milliseconds that /readyz may take while requests are unanswered: three times what a busy apiserver takes. */
  hastyAnswerMs: 750,
  /** Milliseconds for which the probes of a backend have the deadline `hastyAnswerMs`. */
  hastyMs: 2000,
  /** Milliseconds for TCP and TLS of a probe: two round trips. The kernel retransmits a lost SYN only after 1 s. */
  probeDialMs: 1000,
  /** Number of probes, one every 250 ms, that a backend must answer in a row to be ready again after its first fall. */
  riseAnswers: 4,
  /** Milliseconds after which answered probes make a backend ready again, however few they are. */
  riseMs: 16_000,
  /** Milliseconds between two falls after which they count as separate. */
  strikeMs: 60_000,
  /** Bytes read of the kernel's socket table: 7,000 sockets. Further sockets rely on TCP keepalive. */
  socketTableBytes: 1024 * KiB,
} as const;
