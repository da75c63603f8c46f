/** RFC 9113 §6: the frames, their flags, and the callbacks of a frame reader. */
export const frameType = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const flag = { END_STREAM: 0x1, ACK: 0x1, END_HEADERS: 0x4, PADDED: 0x8, PRIORITY: 0x20 } as const;

export const frameHeaderBytes = 9;
/**
 * SETTINGS_MAX_FRAME_SIZE's smallest value. The proxy never advertises more, so none of its frames needs splitting
 * (§4.2).
 */
export const frameBytes = 16_384;
export const clientPreface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/**
 * Callbacks of a frame reader for the frames of streams. Positions, not copies: this is the hot path. The bytes are valid
 * only during the call.
 */
export type StreamFrames = {
  /** A DATA frame or part of one. */
  data(id: number, bytes: Buffer, start: number, end: number, endStream: boolean): void;
  /** The following DATA is padded: this many more bytes count against the windows (§6.9.1). */
  padding(id: number, count: number): void;
  /** A complete header block, CONTINUATION frames joined. `dependsOnSelf`: its priority fields name its own stream. */
  headers(
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
    dependsOnSelf: boolean,
  ): void;
  reset(id: number, code: number): void;
  /** Id 0 is the session. */
  windowUpdate(id: number, increment: number): void;
};

/** Its callbacks for all other frames. */
export type SessionFrames = {
  priority(id: number, dependsOnSelf: boolean): void;
  settings(bytes: Buffer, start: number, end: number): void;
  settingsAcknowledged(): void;
  ping(bytes: Buffer, start: number): void;
  pong(bytes: Buffer, start: number): void;
  goAwayReceived(lastId: number, code: number): void;
  /** A frame of an unknown type: ignored, but its bytes are charged (A17). */
  unknown(count: number): void;
};
