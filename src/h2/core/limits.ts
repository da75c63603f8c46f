/** What bounds HTTP/2 sessions, each with its reason (see src/base/limits.ts). */
const KiB = 1024;
const MiB = 1024 * KiB;

export const h2Limits = {
  /** Compressed octets of one block, and CONTINUATION frames: decoding stops at either (A5). */
  headerBlockBytes: 144 * KiB,
  continuationFrames: 8,
  /** From a block's first octet to its last (A6). */
  headerBlockMs: 10_000,
  /** RFC 7541's default; more only helps an attacker (A9). */
  hpackTableBytes: 4096,
  hpackSizeUpdates: 2,
  /** Beyond it a field is sent literally: it would push everything else out of the table. */
  hpackIndexedBytes: 2048,
  /** Streams that a client may have open at once: what the apiserver itself advertises (A3). */
  downstreamStreams: 100,
  /** Streams refused in a row for being too many, before the session goes: a client that ends one begins anew (A3). */
  refusedStreams: 100,
  /**
   * Control frames that each answer of a backend pays for, beyond the budgets below: twice the four that the most talkative
   * client sends, since not all of its requests are answered. Saved up for a hundred requests that are answered at once.
   */
  framesPerAnswer: 8,
  earnedFrames: 390,
  /** And those that each open stream may go before its answer. */
  framesPerStream: 4,
  /** An unknown frame of up to so many octets is one of them (those that clients send as GREASE have fewer). */
  unknownFrameBytes: 256,
  /** SETTINGS and PING (A12, A14); a settings frame of more entries is no honest one. */
  controlBurst: 100,
  controlPerSecond: 10,
  settingsEntries: 32,
  /** PRIORITY is parsed and thrown away (A15). */
  priorityBurst: 100,
  priorityPerSecond: 10,
  /** WINDOW_UPDATE beyond four for each active stream and what each DATA frame sent earns (A15). */
  updateBurst: 1000,
  updatesPerSecond: 100,
  /** DATA that is so short only since a window let no more through earns no updates: no honest reader opens its windows so (A19). */
  crumbBytes: 256,
  /** Empty DATA without END_STREAM, per session (A16). */
  emptyDataBurst: 100,
  emptyDataPerSecond: 10,
  /** Frames of a backend with which nothing moves on, of all streams of an upstream connection: empty DATA, and what is said of those that are over (A60). */
  connectionFramesBurst: 10_000,
  connectionFramesPerSecond: 1000,
  /** DATA that a backend may still send for streams that we reset: what their windows had let through, of an upstream connection of 80. */
  strayBytes: 320 * MiB,
  /** Octets of frames that nobody knows (A17): 1 MiB per 10 s. */
  unknownBurst: MiB,
  unknownPerSecond: MiB / 10,
  /** What one client's uploads may hold in our hands (A19). */
  downstreamWindowBytes: MiB,
  /** An upstream connection's session window is given back on arrival, so it never shuts: a slow client stalls nobody. */
  connectionWindowBytes: 16 * MiB,
  /** TLS done to first SETTINGS (A22), a frame begun to its end (A18). */
  prefaceMs: 10_000,
  frameMs: 30_000,
} as const;
