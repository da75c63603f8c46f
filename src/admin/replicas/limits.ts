/** Limits on the requests to other replicas, and on what is kept of their responses (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const replicaLimits = {
  /** Maximum number of replicas. With 64, each replica answers 13 requests a second, each on a new connection. */
  replicas: 64,
  /** Milliseconds between two requests to a replica, and between two lookups of the replicas' name. */
  askEveryMs: 5000,
  /** Milliseconds in which a replica must answer. It answers from memory, unless its event loop is busy. */
  askMs: 2000,
  /** Maximum number of concurrent requests to replicas: even if none answers, 64 are asked within `askEveryMs`. */
  askedAtOnce: 32,
  /** Maximum bytes of a replica's answer about itself: the names of 64 clusters take 5 KiB. */
  answerBytes: 8 * KiB,
  /** Milliseconds without an answer after which a replica is silent. Two lost answers do not make it silent. */
  liveMs: 15_000,
  /**
   * Milliseconds without an answer after which a replica no longer shares limits: 30 s after it became silent, so that
   * the quota of the others does not change with every restart, or with a replica that answers now and then. A replica
   * to whose address admin.replicas.name no longer resolves was removed on purpose, and shares limits for `liveMs`
   * only.
   */
  sharesMs: 45_000,
  /**
   * Maximum number of concurrent requests that are forwarded to one replica, of which an admin page sends up to six.
   * For all replicas together, the number of sockets of the admin port is the limit.
   */
  forwardsAtOnce: 8,
  /** Milliseconds that a forwarded request may take. The replica may first have to send two reviews to an apiserver. */
  forwardMs: 8000,
  /** Maximum bytes of a forwarded response: the history of 64 backends takes 5 MiB, a page of 500 rows 1 MiB. */
  forwardBytes: 8 * MiB,
  /** Maximum bytes of all forwarded responses that have not arrived completely: two of the maximum length. */
  forwardBytesAtOnce: 16 * MiB,
} as const;
