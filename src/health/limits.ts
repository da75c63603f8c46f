/** What bounds the verdicts on backends, each with its reason (see src/base/limits.ts). */
const KiB = 1024;

export const healthLimits = {
  /**
   * Between fresh sockets to a backend whose upstream connections are silent or lost (D6), and for how long so often; then half as often,
   * so that one that was away for hours is still back within a second.
   */
  urgentProbeMs: 250,
  urgentProbesMs: 10_000,
  patientProbeMs: 500,
  /** Of them, those that wait at a time: one each 250 ms, for the 1 s that a near one may take and some to spare. */
  probesAtOnce: 8,
  /**
   * A TLS handshake takes a large packet each way; one that has waited so long on a connected socket, of those that take a few
   * ms, is tried on two more sockets, and three that stay unanswered for so long have lost large packets, if PINGs pass. The
   * kernel sends again after 200 ms: within that time a lost packet is made good.
   */
  doubtedHandshakeMs: 150,
  lostHandshakeMs: 250,
  handshakesAgain: 2,
  /** What is read of a probe's answer: an apiserver's list of all checks has 5 KiB. */
  probeHeadBytes: 16 * KiB,
  probeBodyBytes: 16 * KiB,
  /** Between looks at a backend's loopback certificate. */
  loopbackLookMs: 3_600_000,
  /** Checks that are named in a reason. */
  probeChecks: 5,
  /**
   * A booting apiserver answers 403 until its RBAC is loaded: 150 ms seen on an idle one, which depends on etcd. One that
   * has lost the right to be asked for good is ready only so long after its next restart.
   */
  forbiddenMs: 30_000,
  /** Reads in a row that hung here and were answered elsewhere; the next is tried when /readyz is well so long after. */
  hungReads: 3,
  hungReadsMs: 3000,
  /** An answer of /readyz while requests wait in vain: three times what a busy apiserver usually takes. */
  hastyAnswerMs: 750,
  hastyMs: 2000,
} as const;
