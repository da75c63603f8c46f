/** Limits of the backends' health, each with its reason (see src/base/limits.ts). */
const KiB = 1024;

export const healthLimits = {
  /**
   * Milliseconds between two probes of a silent backend (D6): `urgentProbeMs` at first, and `slowProbeMs` once the
   * backend has been silent for `urgentProbesMs`.
   */
  urgentProbeMs: 250,
  urgentProbesMs: 10_000,
  slowProbeMs: 500,
  /**
   * Maximum number of concurrent probes of one backend. With a new probe every 250 ms, four probes run within the
   * deadline of a dial (1 s). The other four are spare.
   */
  probesAtOnce: 8,
  /**
   * A TLS handshake takes a large packet each way. If a probe's handshake takes longer than `doubtedHandshakeMs`, the
   * prober opens two more sockets. Large packets are lost if all three handshakes are unanswered for `lostHandshakeMs`
   * while small packets pass: PINGs, or requests on the kept socket (small-packets.ts). The kernel retransmits a single
   * lost packet after 200 ms.
   */
  doubtedHandshakeMs: 150,
  lostHandshakeMs: 250,
  handshakesAgain: 2,
  /**
   * Maximum number of bytes read from the head of a probe's response, and from its body. An apiserver's list of all
   * checks has 5 KiB.
   */
  probeHeadBytes: 16 * KiB,
  probeBodyBytes: 16 * KiB,
  /** Milliseconds between two requests for a backend's loopback certificate. */
  loopbackLookMs: 3_600_000,
  /** Milliseconds between two requests for a backend's version, so that an upgrade soon becomes visible. */
  versionLookMs: 10_000,
  /** Number of characters kept of a version. "v1.36.1+k3s1" has 12. */
  versionChars: 64,
  /** Maximum number of failing checks of /readyz that are named in the reason for a state. */
  probeChecks: 5,
  /**
   * Milliseconds for which a 403 of /readyz means that the apiserver is starting: an idle apiserver loads its RBAC
   * rules within 150 ms. If the real cause is that the probe has no permission, a restarted backend becomes ready this
   * many ms too late.
   */
  forbiddenMs: 30_000,
  /** Number of consecutive reads that a backend must leave unanswered, while others answer them, to become suspect. */
  hungReads: 3,
  /**
   * Once reads were found to hang, they count as hanging for at least this many ms. After that, a good /readyz ends
   * this. Reads cannot end it, because a suspect backend gets no reads.
   */
  hungReadsMs: 3000,
  /**
   * Minimum deadline in ms for the answer to a probe of /readyz while requests are unanswered. It is three times as
   * long as a busy apiserver takes.
   */
  hastyAnswerMs: 750,
  /**
   * For this many ms after requests were found unanswered, probes have a short deadline of at least `hastyAnswerMs`.
   */
  hastyMs: 2000,
  /**
   * Minimum deadline in ms for the TCP and TLS handshakes of a probe, which together take two round trips. The kernel
   * repeats a lost SYN after 1 s.
   */
  probeDialMs: 1000,
  /** Number of consecutive probes, one every 250 ms, that make a backend ready again after its first failure. */
  riseAnswers: 4,
  /**
   * A failed backend that has answered all its probes for this many ms is ready again, even if it has answered fewer
   * probes than needed.
   */
  riseMs: 16_000,
  /** Milliseconds after a backend's failure within which another failure counts as repeated. */
  strikeMs: 60_000,
  /**
   * Maximum number of bytes read from the kernel's socket table, which is enough for 7,000 sockets. If there are more,
   * only TCP keepalive finds dead peers on the remaining sockets.
   */
  socketTableBytes: 1024 * KiB,
} as const;
