/** Limits of the verdicts on backends, each with its reason (see src/base/limits.ts). */
const KiB = 1024;

export const healthLimits = {
  /**
   * Pause between fresh sockets to a backend whose upstream connections are silent or lost (D6), and for how long.
   * After that the pause doubles, so that a backend that was away for hours is still back within a second.
   */
  urgentProbeMs: 250,
  urgentProbesMs: 10_000,
  slowProbeMs: 500,
  /** Most of these that wait at a time: one every 250 ms for the 1 s that a near backend may take, and a margin. */
  probesAtOnce: 8,
  /**
   * A TLS handshake takes a large packet each way. If one has waited `doubtedHandshakeMs` on a connected socket
   * although it usually takes a few ms, it is tried on two more sockets. If all three stay unanswered for
   * `lostHandshakeMs` while PINGs pass, large packets are lost. The kernel retransmits after 200 ms, which makes up for
   * a single lost packet.
   */
  doubtedHandshakeMs: 150,
  lostHandshakeMs: 250,
  handshakesAgain: 2,
  /** Bytes read of a probe's response: an apiserver's list of all checks has 5 KiB. */
  probeHeadBytes: 16 * KiB,
  probeBodyBytes: 16 * KiB,
  /** Pause between checks of a backend's loopback certificate. */
  loopbackLookMs: 3_600_000,
  /** Failing checks named in a reason. */
  probeChecks: 5,
  /**
   * A booting apiserver answers 403 until its RBAC is loaded: 150 ms measured on an idle one; it depends on etcd. If
   * the probe has lost its permission for good, the backend is ready only this long after its next restart.
   */
  forbiddenMs: 30_000,
  /**
   * Reads in a row that hung here and were answered elsewhere. Reads are tried again if /readyz is good this long
   * after.
   */
  hungReads: 3,
  hungReadsMs: 3000,
  /** Time for an answer of /readyz while requests are unanswered: three times what a busy apiserver usually takes. */
  hastyAnswerMs: 750,
  hastyMs: 2000,
  /** Time for a fresh socket's TCP and TLS, which take two round trips; a lost SYN is retransmitted after 1 s. */
  probeDialMs: 1000,
  /**
   * Good answers in a row, at one every 250 ms, before a backend that fell once is ready again; the time after which
   * fewer are enough; and the gap between two falls after which they count as separate.
   */
  riseAnswers: 4,
  riseMs: 16_000,
  strikeMs: 60_000,
} as const;
