/** Limits of what this process asks and keeps of other replicas, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const replicaLimits = {
  /** Maximum number of replicas. With 64, each answers 13 requests a second of the others, each on a new connection. */
  replicas: 64,
  /** Milliseconds between two requests to a replica, and between two lookups of the replicas' name. */
  askEveryMs: 5000,
  /** Milliseconds that a replica has to answer: it answers from memory, unless its event loop is busy. */
  askMs: 2000,
  /** Maximum number of concurrent requests. Even if no replica answers, 64 replicas are asked within `askEveryMs`. */
  askedAtOnce: 32,
  /** Bytes of the longest answer about a replica: the names of 64 clusters take 5 KiB. */
  answerBytes: 8 * KiB,
  /** Milliseconds without an answer after which a replica is silent: two requests may be lost. */
  liveMs: 15_000,
  /**
   * Milliseconds without an answer after which a replica no longer shares limits: 30 s after it became silent, so that
   * the quota of the others does not change with every restart, or with a replica that answers now and then. A replica
   * that the name no longer has was removed on purpose, and shares limits for `liveMs` only.
   */
  sharesMs: 45_000,
  /**
   * Maximum number of concurrent requests that are forwarded to one replica: an admin page sends up to six at once. The
   * sockets of the admin port limit those to all replicas together.
   */
  forwardsAtOnce: 8,
  /** Milliseconds that a forwarded request may take: a replica may have to ask an apiserver for two reviews first. */
  forwardMs: 8000,
  /** Bytes of the longest forwarded response: the history of 64 backends takes 5 MiB, a page of 500 rows 1 MiB. */
  forwardBytes: 8 * MiB,
  /** Bytes of all forwarded responses that have not arrived completely: two of the longest. */
  forwardBytesAtOnce: 16 * MiB,
} as const;
