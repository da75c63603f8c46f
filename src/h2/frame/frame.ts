/** The frame types and flags of RFC 9113 §6, and the callbacks of FrameReader. */
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
 * Largest payload of a frame in bytes, sent or received. It is the smallest allowed SETTINGS_MAX_FRAME_SIZE, which
 * every peer accepts (RFC 9113 §4.2). The proxy never advertises more.
 */
export const frameBytes = 16_384;
export const clientPreface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/**
 * Callbacks of FrameReader for frames that belong to a stream. They get positions in the received chunk instead of
 * copies, because these frames are frequent. The bytes are valid only during the call.
 */
export type StreamFrames = {
  /** Called for a DATA frame, or for a part of one. */
  data(id: number, bytes: Buffer, start: number, end: number, endStream: boolean): void;
  /**
   * Called before `data` for a padded frame. `count`: number of padding bytes. They count against the flow-control
   * windows (§6.9.1).
   */
  padding(id: number, count: number): void;
  /**
   * Called for a complete header block. `dependsOnSelf`: true if the block's priority names the block's own stream as
   * the parent.
   */
  headers(
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
    dependsOnSelf: boolean,
  ): void;
  /**
   * Called for each part of a header block that is too long to be kept, before `headers`. Returns the position in the
   * part at which the next part begins; beyond its end: the next bytes are not needed. Undefined: such a block ends the
   * session (A5).
   */
  readonly skipFields?: ((part: Buffer) => number) | undefined;
  reset(id: number, code: number): void;
  /** Called for a WINDOW_UPDATE frame. `id` 0: it is for the session. */
  windowUpdate(id: number, increment: number): void;
};

export type SessionFrames = {
  priority(id: number, dependsOnSelf: boolean): void;
  settings(bytes: Buffer, start: number, end: number): void;
  settingsAcknowledged(): void;
  ping(bytes: Buffer, start: number): void;
  pong(bytes: Buffer, start: number): void;
  goAwayReceived(lastId: number, code: number): void;
  /**
   * Called for a frame of an unknown type, which the session ignores. Its `count` payload bytes use up a budget (A17).
   */
  unknown(count: number): void;
};
