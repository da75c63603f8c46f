/** Limits of the processes of one proxy and of their messages, each with its reason (see src/base/limits.ts). */
const MiB = 1024 * 1024;

export const workerLimits = {
  /** Bytes of the longest message: a page of 500 rows takes 1 MiB, the counts of all metrics 1 MiB. */
  messageBytes: 16 * MiB,
  /** Bytes that wait until a worker reads them. A worker that does not read a whole configuration more is hung. */
  unreadBytes: 64 * MiB,
  /**
   * Sockets that were passed to a worker, and that it has not confirmed. A worker that hangs holds no more. It confirms
   * four at a time: each confirmation costs 60 µs of system calls.
   */
  unconfirmedSockets: 8,
  confirmedAtOnce: 4,
  /** Sockets that wait for a worker with room, about as many as a kernel's accept queue holds (net.Server's backlog). */
  waitingSockets: 512,
  /** Milliseconds that a socket waits for a worker, longer than the start of one takes. Clients give up at 10 s. */
  waitingMs: 8000,
  /** Client addresses whose worker is remembered, at 100 bytes. A cluster has 5,000 nodes. */
  addresses: 20_000,
  /** A worker may have this many sockets more than the one that has the fewest, and an eighth of those. */
  moreSockets: 2,
  /** Milliseconds between two questions to a worker. */
  askEveryMs: 1000,
  /** A worker that leaves a question unanswered for longer counts as hung, and is killed. /livez has the same limit. */
  hungMs: 5000,
  /** Milliseconds that a worker has to start. On a slow machine it takes 3 s, and then waits 5 s for a backend. */
  startMs: 30_000,
  /** Milliseconds until a worker is started again after it has ended: at first none, then doubled up to the most. */
  restartMs: 200,
  mostRestartMs: 10_000,
  /** A worker that has served for this many milliseconds starts again at once. */
  steadyMs: 10_000,
  /** Journal entries that wait to be sent. An access log of more requests per turn of the event loop is not kept. */
  waitingEntries: 10_000,
} as const;
