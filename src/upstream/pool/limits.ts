/** Limits of upstream connections and their pools, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const upstreamLimits = {
  /**
   * Size of the token bucket for resets of unanswered streams, which refills at `h2Limits.resetsPerSecond`. Once the
   * bucket is empty, an upstream connection takes no new streams, but its 80 open streams may still be reset. The burst
   * and the open streams together are the 200 resets that a backend allows if it is another watchkeeper. A
   * kube-apiserver tolerated 500 resets of requests whose handlers still ran (measured).
   */
  connectionResetBurst: 120,
  /**
   * Maximum size in bytes of a stream's receive window for responses from a backend. A fast client with a distant
   * backend needs it.
   */
  streamWindowMostBytes: 4 * MiB,
  /** Size in bytes of a stream's receive window for responses from a backend, while memory is short. */
  streamWindowTightBytes: 64 * KiB,
  /** Bytes per ms of a gigabit network. A stream's window never exceeds what arrives at this rate in one round trip. */
  streamBytesPerMs: 128 * KiB,
  /**
   * Maximum number of connections to one backend for each trust class and `ConnectionKind`. With 80 streams each, they
   * carry 80,000 watches.
   */
  connections: 1000,
  /**
   * Maximum number of dials to one backend per second for unproven credentials. Dials for addresses whose tokens get
   * 401 have a separate budget of the same size.
   */
  unprovenDialsPerSecond: 50,
  /** Maximum number of dials to one backend per second for all requests except those with unproven credentials. */
  dialsPerSecond: 50,
  /**
   * Up to this many connections to one backend all send a PING at every tick. If there are more, each connection sends
   * a PING only in every `pingTurns`th tick, and in a tick after it has opened a stream. The reason: 600 PINGs in each
   * tick cost 8 % of a core.
   */
  pingsPerBeat: 100,
  pingTurns: 4,
  /**
   * If a PING is unanswered for this fraction of the silence that makes a connection suspect, all other connections to
   * the backend get a PING at once. A backend is therefore suspect within 0.88 s after it falls silent (0.75 s with few
   * connections). If only the path of a single idle connection breaks, that connection is suspect within 1.5 s.
   */
  rollCallShare: 0.25,
  /**
   * While its backend answers on other connections, a silent connection is kept for this many ms with requests that can
   * go on nowhere else: writes, and responses whose head the client has got. If large packets are lost for 15 s, the
   * kernel's next retransmission comes 25.4 s after the first loss.
   */
  boundPatienceMs: 30_000,
  /**
   * Ms for which a silent connection keeps all requests while its backend answers on other connections. After an outage, a silent
   * connection waits for the next TCP retransmission (the pause is 0.2 s at first, and doubles each time). After an
   * outage of 1.5 s, the retransmission comes 3.0 s after the outage's start; after an outage of 2 s, 3.4 s after its
   * start (measured).
   */
  connectionPatienceMs: 5000,
  /**
   * If bytes have waited in Node for this many ms, the kernel's buffer is full. Node reports bytes that the kernel has
   * taken within a few turns of the event loop.
   */
  fullBufferMs: 50,
  /**
   * Backends that fall silent within this many ms of each other probably have a common cause, such as the proxy's own
   * network. If another backend answers a PING that was sent more than this many ms after the silence began, only the
   * silent backend is affected (D14).
   */
  togetherMs: 1000,
  /**
   * A dial is restarted only if it has taken at least this many ms, and at least three times as long as a newer socket
   * took to be answered.
   */
  hurriedDialMs: 200,
  /** Ms until a failed dial to a backend is repeated. The pause doubles with each failure, up to `redialMostMs`. */
  redialFirstMs: 100,
  redialMostMs: 500,
  /** Minimum ms between two dials to a backend that announces MAX_CONCURRENT_STREAMS 0. */
  barredDialMs: 1200,
  /**
   * If a PING's answer took more than twice the median round-trip time plus this many ms, a packet was lost: TCP
   * retransmits after 200 ms at the earliest. For `lossyMs` after that, the path counts as lossy, and a silent
   * connection is no sign that only large packets are lost.
   */
  latePingMs: 150,
  lossyMs: 3000,
  /** Ms that a request waits for a connection before its attempt fails: the time of one failed dial and a margin. */
  connectionWaitMs: 2500,
  /** Ms that a request waits for a connection before it goes to another backend. A TLS dial takes a tenth of this. */
  connectionDoubtMs: 500,
  /**
   * A connection counts as silent, even if bytes arrive, once its PING has been unanswered for this multiple of the
   * silence that makes a connection suspect.
   */
  unansweredShare: 1.5,
  /**
   * A connection gets no hedges while its PING has been unanswered for more than this many ms. A PING is sent every 250
   * ms.
   */
  promptMs: 100,
  /**
   * For this many ms after its silence has ended, a connection is used only if no other connection has room. An
   * interrupted watch tries to resume for the same time.
   */
  shakyConnectionMs: 15_000,
  /** A connection without a stream for this many ms is closed or replaced. The apiserver would close it after 90 s. */
  idleConnectionMs: 60_000,
  /** A connection that is neither warm nor the only one of its shard closes after this many ms without a stream. */
  spareConnectionMs: 2000,
  /** Ms until a backend that has become ready again gets its full share of the load. */
  slowStartMs: 30_000,
  /** Share of its full load that a backend gets in the first second after it has become ready again. */
  slowStartLeast: 1 / 30,
  /**
   * A backend in another zone gets a client only if the candidate in the proxy's own zone has a load of more than
   * `spillRatio` × that backend's load + `spillFloor` streams. A proxy on a node has a few dozen streams, so its
   * clients stay in their zone.
   */
  spillRatio: 2,
  spillFloor: 100,
  /**
   * Ms between two lookups of the DNS name in a backend's URL, and the number of answers that must all lack an address
   * before its connections are replaced: together 40 s, so that a connection drains within a minute. A resolver that
   * returns one of three addresses at random omits one in 4 % of such series.
   */
  nameLookMs: 5000,
  nameAnswers: 8,
  /** For this many ms after an attempt has become slow, its owner is notified at every tick. */
  slowToldMs: 3000,
} as const;
