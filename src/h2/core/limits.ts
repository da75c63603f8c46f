/** Limits of HTTP/2 sessions, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const h2Limits = {
  /** Most compressed bytes and most CONTINUATION frames of one header block. More end the session (A5). */
  headerBlockBytes: 144 * KiB,
  continuationFrames: 8,
  /** Longest time in ms from a header block's first byte to its last (A6). */
  headerBlockMs: 10_000,
  /** Size of an HPACK table in bytes: RFC 7541's default. A larger table would only help an attacker (A9). */
  hpackTableBytes: 4096,
  hpackSizeUpdates: 2,
  /** Largest field, in bytes, that enters the HPACK table. A larger one would evict half of the table. */
  hpackIndexedBytes: 2048,
  /** Most streams that a client may have open at once: the number that the apiserver itself advertises (A3). */
  downstreamStreams: 100,
  /** Budget for resets before the response: client-go cancels about 100 watches at once (A1, A2). */
  resetBurst: 200,
  resetsPerSecond: 33,
  /** Initial receive window of a stream in bytes. It grows while the receiving side keeps up (D2). */
  streamWindowBytes: 256 * KiB,
  /** Most streams in a row that are refused for too many open ones. One more ends the session (A3). */
  refusedStreams: 100,
  /**
   * Control frames that a client may send beyond the budgets below for each of its requests that a backend has
   * answered. The most active client sends four for each request. Twice that leaves room for requests that are not
   * answered. Unused credit adds up to `earnedFrames`, enough for about a hundred requests that are answered at once.
   */
  framesPerAnswer: 8,
  earnedFrames: 390,
  /** Control frames by which each open stream of a client raises the budgets below. */
  framesPerStream: 4,
  /** Bytes of frames of unknown types that cost as much credit as one frame. Clients' GREASE frames are smaller. */
  unknownFrameBytes: 256,
  /** Budget for SETTINGS and PING frames (A12, A14), and most entries of one SETTINGS frame. */
  controlBurst: 100,
  controlPerSecond: 10,
  settingsEntries: 32,
  /** Budget for PRIORITY frames, which the proxy parses and ignores (A15). */
  priorityBurst: 100,
  priorityPerSecond: 10,
  /** Budget for WINDOW_UPDATE frames. Each open stream adds four, each DATA frame to the peer 20 (A15). */
  updateBurst: 1000,
  updatesPerSecond: 100,
  /**
   * A DATA frame shorter than this many bytes does not raise the WINDOW_UPDATE budget if the peer's window allowed no
   * more, because no well-behaved receiver opens its windows in such small steps (A19).
   */
  crumbBytes: 256,
  /** Budget for empty DATA frames without END_STREAM: a burst, then frames per second for each session (A16). */
  emptyDataBurst: 100,
  emptyDataPerSecond: 10,
  /** Budget for a backend's useless frames: empty DATA frames, and frames for closed streams (A60). */
  connectionFramesBurst: 10_000,
  connectionFramesPerSecond: 1000,
  /** Most bytes of DATA for streams that the proxy has reset: 80 streams with a window of 4 MiB each. */
  strayBytes: 320 * MiB,
  /** Budget for the bytes of frames of unknown types: 1 MiB, then 1 MiB per 10 s (A17). */
  unknownBurst: MiB,
  unknownPerSecond: MiB / 10,
  /** Receive window of a client's session: most bytes of its uploads that the proxy holds (A19). */
  downstreamWindowBytes: MiB,
  /**
   * Receive window of an upstream connection, in bytes. Flow-control credit is returned as soon as bytes arrive, so the
   * window never closes, and a slow client cannot block the other clients of the connection.
   */
  connectionWindowBytes: 16 * MiB,
  /** Longest time in ms from the TLS handshake to the first SETTINGS (A22), and for one frame (A18). */
  prefaceMs: 10_000,
  frameMs: 30_000,
} as const;
