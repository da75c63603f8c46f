/**
 * Limits of HTTP/2 sessions, each with its reason (see src/base/limits.ts). Two fields `…Burst` and `…PerSecond`
 * describe a token bucket: its size, and the number of tokens that it gains per second. If a peer exhausts a bucket,
 * its session ends, except if the peer has earned additional frames (see `framesPerAnswer`).
 */
const KiB = 1024;
const MiB = 1024 * KiB;

export const h2Limits = {
  /**
   * Maximum number of compressed bytes of a header block (A5). A client's longer block ends its session. A backend's
   * longer block ends only its stream, because many clients share the session.
   */
  headerBlockBytes: 144 * KiB,
  /** Maximum number of CONTINUATION frames of a header block (A5). One more has the same effect as too many bytes. */
  continuationFrames: 8,
  /**
   * Maximum number of compressed bytes of a backend's header block that is dropped. A longer block ends the session. Go's
   * HTTP client, by which an apiserver gets the responses of applications, accepts heads of up to 10 MiB.
   */
  longBlockBytes: 16 * MiB,
  /** A CONTINUATION frame counts towards `longBlockBytes` as at least so many bytes, because each frame costs time. */
  shortFrameBytes: KiB,
  /** Milliseconds that may pass from a header block's first byte to its last (A6). */
  headerBlockMs: 10_000,
  /** Size of an HPACK table in bytes: the default of RFC 7541. A larger table would only help an attacker (A9). */
  hpackTableBytes: 4096,
  /** Maximum number of table size updates at the beginning of a header block (RFC 7541 §4.2). */
  hpackSizeUpdates: 2,
  /** Size in bytes of the largest field that enters an HPACK table. A larger field would evict half of the table. */
  hpackIndexedBytes: 2048,
  /** Maximum number of fields that are shared by the HPACK tables of all sessions, of up to `hpackIndexedBytes` each. */
  sharedFields: 512,
  /** Maximum number of bytes in unused output buffers: what 4,000 clients need for events of ten watches each. */
  unusedOutputBytes: 64 * MiB,
  /** Maximum number of streams that a client may have open: the number that the apiserver itself advertises (A3). */
  downstreamStreams: 100,
  /**
   * Token bucket for the streams that a client resets before the proxy has sent their response head, and for malformed
   * requests, which the proxy resets. client-go may cancel 100 watches at once (A1, A2).
   */
  resetBurst: 200,
  resetsPerSecond: 33,
  /**
   * Initial receive window of a stream in bytes. The window grows while the proxy can forward as fast as it receives
   * (D2).
   */
  streamWindowBytes: 256 * KiB,
  /** Maximum number of consecutive streams refused because too many are open. One more ends the session (A3). */
  refusedStreams: 100,
  /**
   * For each request that a backend has answered, the client may send this many control frames more than the token
   * buckets below allow (D16). The most active client sends four for each request. The other four make up for requests
   * that no backend has answered yet.
   */
  framesPerAnswer: 8,
  /**
   * Maximum number of additional control frames that a client can save up (see `framesPerAnswer`). It is enough for a
   * client that sends a hundred requests at once with four control frames each.
   */
  earnedFrames: 390,
  /**
   * Each open stream of a client adds this many frames to the token buckets for PING, empty DATA and WINDOW_UPDATE
   * frames.
   */
  framesPerStream: 4,
  /**
   * Once the bucket for frames of unknown types is empty, such a frame uses up one of the `earnedFrames` for every 256
   * bytes. GREASE frames are smaller.
   */
  unknownFrameBytes: 256,
  /** Token bucket for SETTINGS, PING and GOAWAY frames (A12, A14). */
  controlBurst: 100,
  controlPerSecond: 10,
  /** Maximum number of parameters in a SETTINGS frame. A longer frame ends the session. */
  settingsEntries: 32,
  /** Token bucket for PRIORITY frames, which the proxy parses and ignores (A15). */
  priorityBurst: 100,
  priorityPerSecond: 10,
  /**
   * Token bucket for WINDOW_UPDATE frames. Each open stream adds four tokens, and each DATA frame that the proxy sends
   * adds 20 (A15).
   */
  updateBurst: 1000,
  updatesPerSecond: 100,
  /**
   * Applies to a DATA frame that is short only because the peer's window allowed no more bytes. If such a frame has
   * fewer bytes than this, it adds no tokens for WINDOW_UPDATE frames. Well-behaved receivers do not open their windows
   * in such small steps (A19).
   */
  crumbBytes: 256,
  /** Token bucket for empty DATA frames without END_STREAM from a client (A16). */
  emptyDataBurst: 100,
  emptyDataPerSecond: 10,
  /** Token bucket for useless frames of a backend: empty DATA frames, and frames for closed streams (A60). */
  connectionFramesBurst: 10_000,
  connectionFramesPerSecond: 1000,
  /**
   * Maximum number of bytes that a backend may still send on streams that the proxy has reset. It is enough for eighty
   * streams whose windows have grown to 4 MiB.
   */
  strayBytes: 320 * MiB,
  /** Token bucket for the bytes of frames of unknown types: 1 MiB at once, then 1 MiB per 10 s (A17). */
  unknownBurst: MiB,
  unknownPerSecond: MiB / 10,
  /**
   * Receive window of a client's session in bytes. The proxy never buffers more than this of the client's uploads
   * (A19).
   */
  downstreamWindowBytes: MiB,
  /**
   * Receive window of an upstream connection, in bytes. Flow-control credit is returned as soon as bytes arrive, so the
   * window never closes, and a slow client cannot block the other clients of the connection.
   */
  connectionWindowBytes: 16 * MiB,
  /** Milliseconds from the TLS handshake to the peer's first SETTINGS (A22). */
  prefaceMs: 10_000,
  /** Milliseconds that a frame may take to arrive, from its first byte to its last (A18). */
  frameMs: 30_000,
} as const;
