/** Limits of upstream connections and their pools, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const upstreamLimits = {
  /**
   * After this many resets before an answer an upstream connection takes no new streams. All of its 80 streams may
   * still be reset after that. A backend that is another watchkeeper allows 200 in all; kube-apiserver was measured to
   * bear 500 whose handlers keep running.
   */
  connectionResetBurst: 120,
  streamWindowMostBytes: 4 * MiB,
  streamWindowTightBytes: 64 * KiB,
  /** One gigabit per second: a stream's window never exceeds what arrives at this rate in one round trip. */
  streamBytesPerMs: 128 * KiB,
  /**
   * Most upstream connections of one backend, per trust class and kind: 1,000 with 80 streams each carry 80,000
   * watches. The two rates limit dials, separately for the unproven class.
   */
  connections: 1000,
  unprovenDialsPerSecond: 50,
  dialsPerSecond: 50,
  /**
   * Up to `pingsPerBeat` upstream connections of one backend all get a PING on every beat. Above that, a quarter of
   * them gets one on each beat, and so does each connection that opens a stream: PINGs on 600 connections on every beat
   * cost 8 % of a core. If a PING is unanswered for `rollCallShare` of the suspect deadline, all other connections get
   * one at once. A silent backend is therefore suspect within 0.88 s (0.75 s with few connections); a broken path under
   * a single idle connection is noticed within 1.5 s.
   */
  pingsPerBeat: 100,
  pingTurns: 4,
  rollCallShare: 0.25,
  /**
   * How long a silent upstream connection is kept while its backend answers on others. After an outage heals, the old
   * socket waits for its kernel's next retransmission (0.2 s, doubled each time): 3.0 s after an outage of 1.5 s, and a
   * measured 3.4 s after one of 2 s.
   */
  connectionPatienceMs: 5000,
  /**
   * Backends that fall silent within this time of each other share one cause, most likely our own network. If another
   * backend answers a PING or probe later than this after the silence began, only the silent backend is affected (D14).
   */
  togetherMs: 1000,
  /**
   * A pending dial at least this old, and three times as old as another socket took to be answered, is restarted: its
   * SYN was lost.
   */
  hurriedDialMs: 200,
  /** Pause between failed dials of one backend: doubles from the first value to the second. */
  redialFirstMs: 100,
  redialMostMs: 500,
  /**
   * A PING that took this much longer than twice the median was lost once: TCP retransmits after 200 ms at the earliest.
   * For `lossyMs` after such a PING the path counts as lossy, and silence on it proves nothing about large packets.
   */
  latePingMs: 150,
  lossyMs: 3000,
  /** How long a request waits for an upstream connection: one failed dial and a margin. Then the next attempt begins. */
  connectionWaitMs: 2500,
  /**
   * After this wait the request goes to a backend that already has an upstream connection. A TLS dial takes a tenth of
   * it.
   */
  connectionDoubtMs: 500,
  /**
   * Multiple of the suspect deadline after which an unanswered PING counts as silence, even if other bytes have
   * arrived.
   */
  unansweredShare: 1.5,
  /**
   * An upstream connection whose PING, sent every 250 ms, has been unanswered for longer than this is no better than a
   * silent one.
   */
  promptMs: 100,
  /**
   * A connection that was silent is avoided for this long if another one has room: as long as a watch is retried
   * (resumeMs).
   */
  shakyConnectionMs: 15_000,
  /**
   * An upstream connection without a stream for this long is closed or replaced. The apiserver itself closes it after
   * 90 s.
   */
  idleConnectionMs: 60_000,
  /**
   * The same for an upstream connection beyond the warm ones and beyond the last of its shard: connections opened for a
   * burst are closed 5 s after it.
   */
  spareConnectionMs: 2000,
  /**
   * A backend that becomes ready again reaches full weight after this time; it starts with the weight of its first
   * second.
   */
  slowStartMs: 30_000,
  slowStartLeast: 1 / 30,
  /** How long an attempt is reported as slow. */
  slowToldMs: 3000,
} as const;
