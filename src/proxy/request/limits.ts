/** Limits of requests, their retries and hedges, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const requestLimits = {
  /**
   * A request body up to this size is kept until the response, so that the body can be sent again if a backend refuses
   * the request.
   */
  repeatableBodyBytes: 64 * KiB,
  /**
   * A refusal with a body up to this size is held back until it is complete: if its backend is lost before that,
   * another backend can still be asked. A Status is about 1 KiB long.
   */
  shortRefusalBytes: 16 * KiB,
  /**
   * The body of a read's response is held until it is complete, up to this size: if the backend is lost before that,
   * another one is asked, and the client gets no response that is cut off. The size is below the window of a stream, so
   * a held body needs no more memory than a body that waits for a slow client.
   */
  heldBodyBytes: 192 * KiB,
  /**
   * Discovery and OpenAPI documents are held up to this size, for the same reason as other bodies up to
   * `heldBodyBytes`. The largest document, /openapi/v2, is 4 MB long in Kubernetes 1.36.
   */
  heldDocumentBytes: 8 * MiB,
  /**
   * Ms after which an incomplete body is forwarded, unless its backend is suspect. A silent backend becomes suspect
   * before that.
   */
  heldBodyMs: 1500,
  /**
   * For this many ms after a request's arrival, an attempt that a GOAWAY refused does not count as one of the request's
   * attempts. Any client's 401 makes the apiserver send GOAWAY on the connection, so a GOAWAY proves nothing about the
   * backend. During a flood of 401s, dozens of connections may refuse one request.
   */
  sentAwayMs: 15_000,
  /**
   * Ms for which a 429 or 5xx is held back while the request's other attempt may still succeed. A client that got the
   * refusal at once and obeyed Retry-After would wait just as long.
   */
  refusalHeldMs: 1000,
  /**
   * Ms that a request waits while no backend is available. Together with the time of a failed dial (2.25 s), this is
   * less than the 5 s that a leader election allows for a request (half of its renew deadline of 10 s).
   */
  pendingMs: 2500,
  /**
   * Token bucket for hedges of reads that are slow although their backend answers PINGs: its size, its tokens per
   * second, and the tokens that each answered read adds (one for twenty reads). With the bucket, a slow etcd does not
   * get twice the load.
   */
  slowHedgeBurst: 50,
  slowHedgesPerSecond: 10,
  slowHedgeShare: 0.05,
  /**
   * Ms for which requests avoid a backend that does not serve their resource, unless a read confirms it. After that, the
   * backend probably serves it: an upgraded apiserver serves new APIs within seconds of its start, and every apiserver
   * serves a new CRD within seconds.
   */
  missingMs: 30_000,
  /** Ms after which a read may confirm it. It is shorter than `missingMs`, so that no write is placed wrongly meanwhile. */
  missingTestMs: 15_000,
  /** Ms until an unanswered read of an aggregated API is hedged. Servers of such APIs are slower than apiservers. */
  foreignHedgeMs: 2000,
  /** Maximum number of remembered resources that some backend does not serve. An upgrade adds a few dozen. */
  missingResources: 256,
  /**
   * Token bucket for reads that are repeated at another backend after a 404 or an unreachable API: its size, and its
   * tokens per second. The bucket limits them because any wrong path causes a 404.
   */
  missingAskBurst: 50,
  missingAsksPerSecond: 10,
  /**
   * A read counts as much work as this many bytes of a response. Measured at kube-apiserver 1.36
   * (test/real/skew/costs.ts): 830 to 900 µs for a GET, 10 µs for 1 KiB of a list.
   */
  requestWorkBytes: 80 * KiB,
  /**
   * A write counts as much work as this many bytes of a response. Measured in the same way as the work of a read: 3,000
   * to 4,100 µs for a PATCH.
   */
  writeWorkBytes: 320 * KiB,
  /**
   * A client without long-lived streams is moved only if it causes at least this much work, in bytes of responses,
   * within 5 s (balance.ts).
   */
  busyBytes: 4 * MiB,
  /**
   * Maximum number of busy clients that are remembered between two checks of the balance. If there are more, no single
   * client causes the imbalance.
   */
  busyClients: 1000,
} as const;
