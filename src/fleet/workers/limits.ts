/** Limits of the processes of one proxy and of their messages, each with its reason (see src/base/limits.ts). */
const MiB = 1024 * 1024;

export const workerLimits = {
  /**
   * Maximum bytes of a message between two processes. A page of 500 rows takes 1 MiB, and so do the counts of all
   * metrics.
   */
  messageBytes: 16 * MiB,
  /**
   * Maximum number of bytes that one process has sent and the other has not read yet. If more bytes are unread, the
   * other process counts as hung. The limit has room for four messages of maximum length.
   */
  unreadBytes: 64 * MiB,
  /**
   * Maximum number of sockets that were passed to a worker and that it has not confirmed (`unconfirmedSockets`). If the
   * worker hangs, only these clients wait for it. A worker confirms four sockets with one message (`confirmedAtOnce`),
   * because each confirmation costs 60 µs of system calls.
   */
  unconfirmedSockets: 8,
  confirmedAtOnce: 4,
  /**
   * Maximum number of sockets that wait until a worker has room: about as many as a listener's accept queue holds by
   * default in Node.
   */
  waitingSockets: 512,
  /**
   * Maximum milliseconds that a socket waits for a worker. A worker starts in less time, and clients give up after 10
   * s.
   */
  waitingMs: 8000,
  /**
   * Maximum number of client addresses for which the proxy remembers a worker, at 100 bytes each. The nodes of a large
   * cluster are 5,000 addresses.
   */
  addresses: 20_000,
  /**
   * A client address keeps its worker while that worker has fewer sockets than 9/8 times the sockets of the least loaded
   * worker, plus this number.
   */
  moreSockets: 2,
  /** Milliseconds between two health checks of a worker. For a health check, the parent asks the worker a question. */
  askEveryMs: 1000,
  /**
   * Milliseconds after which a worker with an unanswered question counts as hung, and is killed. /livez fails if the
   * main thread's event loop has not answered for the same time.
   */
  hungMs: 5000,
  /** Milliseconds after which a worker that has not started is killed. On a slow machine, a start takes 3 s. */
  startMs: 30_000,
  /**
   * Milliseconds until a worker is started again. The first restart is immediate, the second comes after `restartMs`,
   * and each further one after twice the previous delay, up to `mostRestartMs`.
   */
  restartMs: 200,
  mostRestartMs: 10_000,
  /**
   * Once a worker has served for this many milliseconds, its earlier restarts no longer count, and its next restart is
   * immediate.
   */
  steadyMs: 10_000,
  /**
   * Maximum number of journal entries that a worker collects in one turn of the event loop before it sends them to the
   * parent. Further entries of the same turn are dropped and counted.
   */
  waitingEntries: 10_000,
} as const;
