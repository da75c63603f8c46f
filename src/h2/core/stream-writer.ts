/**
 * The two interfaces of an exchange. HTTP/2 streams implement them, and so does proxy/downstream/h1-stream-writer.ts for
 * HTTP/1.1, so relaying is the same for both. Bytes are positions in a buffer that is reused after the call, never
 * slices.
 */
import type { Field } from "./field.ts";

/** One side of an exchange, driven by the other side. */
export type StreamWriter = {
  /**
   * Sends a head, an interim head (1xx) or trailers, which the side distinguishes by order and `:status`. `end` means
   * that nothing follows.
   */
  sendHeaders(fields: readonly Field[], end: boolean): void;
  /** `bytes[start, end)` are valid only during the call; bytes that must wait are copied. */
  sendData(bytes: Buffer, start: number, end: number, endStream: boolean): void;
  /** Sends RST_STREAM with a code from RFC 9113 §7; on HTTP/1.1 the socket is destroyed. */
  reset(code: number): void;
  /** `count` bytes that this side delivered have been forwarded: its peer may send as many again. */
  grant(count: number): void;
  /** Bytes passed to `sendData` that have not been sent. */
  readonly queuedBytes: number;
  /** Closes the connection after this response. Only HTTP/1.1 has it, where the connection carries nothing else. */
  closeAfter?(): void;
};

/** Events of a side, for the exchange that owns it. */
export type StreamListener = {
  /** A response head, an interim head or trailers; the request side delivers only trailers this way. */
  headers(fields: Field[], end: boolean): void;
  /** The bytes are valid only during the call. */
  data(bytes: Buffer, start: number, end: number, endStream: boolean): void;
  /** The side is closed: the peer reset it, violated a rule, or its session ended (`lost`). Nothing follows. */
  reset(code: number): void;
  /** `count` bytes passed to `sendData` have left this process's queues. */
  sent(count: number): void;
};
