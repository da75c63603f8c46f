/** Limits of HTTP/2 sessions, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const h2Limits = {
  /** Most compressed bytes, and most CONTINUATION frames, of one header block. A longer one ends the session (A5). */
  headerBlockBytes: 144 * KiB,
  continuationFrames: 8,
  /** Milliseconds that may pass from a header block's first byte to its last (A6). */
  headerBlockMs: 10_000,
  /** Bytes of an HPACK table: the default of RFC 7541. A larger table would only help an attacker (A9). */
  hpackTableBytes: 4096,
  hpackSizeUpdates: 2,
  /** Largest field, in bytes, that enters the HPACK table. A larger one would evict half of the table. */
  hpackIndexedBytes: 2048,
  /** Most streams that a client may have open at once: the number that the apiserver itself advertises (A3). */
  downstreamStreams: 100,
  /** Budget for resets before the response, and resets per second. client-go cancels about 100 watches at once (A1, A2). */
  resetBurst: 200,
  resetsPerSecond: 33,
  /** Initial receive window of a stream in bytes. The window grows while the receiving side keeps up (D2). */
  streamWindowBytes: 256 * KiB,
  /** Most streams in a row that are refused because too many are open. One more ends the session (A3). */
  refusedStreams: 100,
  /**
   * Number of control frames beyond the budgets below that a client earns with each request that a backend has
   * answered. The most active client sends four for each request; eight leave room for unanswered requests. Unused
   * credit grows to `earnedFrames` at most, enough for about a hundred requests that are answered at once.
   */
  framesPerAnswer: 8,
  earnedFrames: 390,
  /** Number of control frames by which each open stream of a client raises the budgets below. */
  framesPerStream: 4,
  /** Bytes in frames of unknown types that cost as much credit as one frame. The GREASE frames of clients are smaller. */
  unknownFrameBytes: 256,
  /** Budget for SETTINGS and PING frames (A12, A14). `settingsEntries`: most entries of one SETTINGS frame. */
  controlBurst: 100,
  controlPerSecond: 10,
  settingsEntries: 32,
  /** Budget for PRIORITY frames, which the proxy parses and ignores (A15). */
  priorityBurst: 100,
  priorityPerSecond: 10,
  /** Budget for WINDOW_UPDATE frames. Each open stream adds four, and each DATA frame to the peer adds 20 (A15). */
  updateBurst: 1000,
  updatesPerSecond: 100,
  /**
   * A DATA frame to the peer with fewer bytes than this does not raise the budget for WINDOW_UPDATE if the peer's
   * window allowed no more. Well-behaved receivers do not open their windows in such small steps (A19).
   */
  crumbBytes: 256,
  /** Budget for empty DATA frames without END_STREAM on a session: a burst, then frames per second (A16). */
  emptyDataBurst: 100,
  emptyDataPerSecond: 10,
  /** Budget for useless frames of a backend: empty DATA frames, and frames for closed streams (A60). */
  connectionFramesBurst: 10_000,
  connectionFramesPerSecond: 1000,
  /** Most bytes of DATA for streams that the proxy has reset: 80 streams with windows of 4 MiB each. */
  strayBytes: 320 * MiB,
  /** Budget for the bytes in frames of unknown types: 1 MiB at once, then 1 MiB per 10 s (A17). */
  unknownBurst: MiB,
  unknownPerSecond: MiB / 10,
  /** Receive window of a client's session in bytes: the most that the proxy holds of the client's uploads (A19). */
  downstreamWindowBytes: MiB,
  /**
   * Receive window of an upstream connection, in bytes. Flow-control credit is returned as soon as bytes arrive, so the
   * window never closes, and a slow client cannot block the other clients of the connection.
   */
  connectionWindowBytes: 16 * MiB,
  /** Milliseconds from the TLS handshake to the first SETTINGS (A22), and from a frame's first byte to its last (A18). */
  prefaceMs: 10_000,
  frameMs: 30_000,
} as const;
