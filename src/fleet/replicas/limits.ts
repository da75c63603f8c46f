/** Limits on the requests to other replicas, and on what is kept of their responses (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const replicaLimits = {
  /** Maximum number of replicas. With 64, each replica answers 13 requests a second, each on a new connection. */
  replicas: 64,
  /** Milliseconds between two requests to a replica, and between two lookups of the replicas' name. */
  askEveryMs: 5000,
  /**
   * Milliseconds in which a replica must answer. It answers from memory, so only a busy event loop delays its answer.
   */
  askMs: 2000,
  /**
   * Maximum number of concurrent requests that ask replicas about themselves. Even if none of 64 replicas answers, each
   * gets its request within `askEveryMs`, because two batches of 32 take 2 × `askMs`.
   */
  askedAtOnce: 32,
  /** Maximum bytes of a replica's answer about itself: the names of 64 clusters take 5 KiB. */
  answerBytes: 8 * KiB,
  /**
   * Milliseconds without an answer after which a replica counts as silent. Two lost answers in succession are not
   * enough.
   */
  liveMs: 15_000,
  /**
   * Milliseconds since a replica's last answer after which it no longer shares limits: 30 s after it became silent.
   * Until then, the quotas of the other replicas do not change, for example while a replica restarts or answers only
   * intermittently. If admin.replicas.name no longer resolves to a replica's address, the replica was removed on
   * purpose, and shares limits only until `liveMs` after its last answer.
   */
  sharesMs: 45_000,
  /**
   * Maximum number of concurrent requests that are forwarded to one replica. One admin page sends up to six at once.
   * For all replicas together, the limit is the number of sockets of the admin port.
   */
  forwardsAtOnce: 8,
  /** Milliseconds that a forwarded request may take. The replica may first have to send two reviews to an apiserver. */
  forwardMs: 8000,
  /** Maximum bytes of a forwarded response: the history of 64 backends takes 5 MiB, a page of 500 rows 1 MiB. */
  forwardBytes: 8 * MiB,
  /** Maximum bytes of all forwarded responses that have not arrived completely: enough for two of maximum length. */
  forwardBytesAtOnce: 16 * MiB,
} as const;
