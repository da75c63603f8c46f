/** Limits of HTTP/2 sessions, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const h2Limits = {
  /** Compressed bytes of one header block, and its CONTINUATION frames: decoding stops at either (A5). */
  headerBlockBytes: 144 * KiB,
  continuationFrames: 8,
  /** Time from a header block's first byte to its last (A6). */
  headerBlockMs: 10_000,
  /** RFC 7541's default. A larger table only helps an attacker (A9). */
  hpackTableBytes: 4096,
  hpackSizeUpdates: 2,
  /** A larger field is sent literally: it would evict everything else from the table. */
  hpackIndexedBytes: 2048,
  /** Most streams that a client may have open: what the apiserver itself advertises (A3). */
  downstreamStreams: 100,
  /** Most resets at once, by the peer before an answer or by us: client-go cancels about 100 watches at once (A1, A2). */
  resetBurst: 200,
  resetsPerSecond: 33,
  /** A stream's first receive window. It grows up to `streamWindowMostBytes` while its reader keeps up (D2). */
  streamWindowBytes: 256 * KiB,
  /**
   * Streams refused in a row for exceeding the stream limit before the session ends: a client that ends one stream
   * starts the count anew (A3).
   */
  refusedStreams: 100,
  /**
   * Control frames that each backend response pays for, beyond the budgets below. Twice the four that the most active
   * client sends, because not all of its requests are answered. Credit accumulates for up to a hundred requests that
   * are answered at once.
   */
  framesPerAnswer: 8,
  earnedFrames: 390,
  /** Control frames that each open stream allows before its response. */
  framesPerStream: 4,
  /** An unknown frame of up to this many bytes counts as one of them. The GREASE frames that clients send are smaller. */
  unknownFrameBytes: 256,
  /** Budget for SETTINGS and PING (A12, A14). No honest SETTINGS frame has more entries than the limit. */
  controlBurst: 100,
  controlPerSecond: 10,
  settingsEntries: 32,
  /** Budget for PRIORITY frames, which are parsed and ignored (A15). */
  priorityBurst: 100,
  priorityPerSecond: 10,
  /** Budget for WINDOW_UPDATE beyond four for each active stream and what each sent DATA frame earns (A15). */
  updateBurst: 1000,
  updatesPerSecond: 100,
  /**
   * A DATA frame this short, sent because a window allowed no more, earns no updates: no honest reader opens its
   * windows in such steps (A19).
   */
  crumbBytes: 256,
  /** Empty DATA frames without END_STREAM, per session (A16). */
  emptyDataBurst: 100,
  emptyDataPerSecond: 10,
  /**
   * Frames without progress from a backend, over all streams of an upstream connection: empty DATA, and frames for
   * closed streams (A60).
   */
  connectionFramesBurst: 10_000,
  connectionFramesPerSecond: 1000,
  /**
   * DATA that a backend may still send for streams that the proxy reset: what their windows allowed, for an upstream
   * connection with 80 streams.
   */
  strayBytes: 320 * MiB,
  /** Bytes of unknown frame types (A17): 1 MiB per 10 s. */
  unknownBurst: MiB,
  unknownPerSecond: MiB / 10,
  /** Bytes of one client's uploads that the proxy may hold (A19). */
  downstreamWindowBytes: MiB,
  /**
   * An upstream connection's session window is returned on receipt, so it never closes and a slow client cannot block
   * the other clients.
   */
  connectionWindowBytes: 16 * MiB,
  /** From the end of TLS to the first SETTINGS (A22), and from a frame's start to its end (A18). */
  prefaceMs: 10_000,
  frameMs: 30_000,
} as const;
