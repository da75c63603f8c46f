/**
 * The two faces between which an exchange stands. An h2 stream has them, and an HTTP/1.1 request is given them
 * (proxy/h1.ts), so the relay is one and the same for both. Bytes are positions in a buffer that is
 * used again after the call, never slices.
 */
import type { Field } from "./field.ts";

/** One side of an exchange, as the other side drives it. */
export type StreamWriter = {
  /**
   * A head, an interim head (1xx) or trailers, which the side knows by their order and `:status`.
   * `end` says that nothing follows.
   */
  sendHeaders(fields: readonly Field[], end: boolean): void;
  /** `bytes[start, end)`, lent for the call: what waits is copied. */
  sendData(bytes: Buffer, start: number, end: number, endStream: boolean): void;
  /** RST_STREAM with an RFC 9113 §7 code; on HTTP/1.1 the socket is destroyed. */
  reset(code: number): void;
  /** `count` bytes that this side delivered have been passed on: its peer may send as many again. */
  grant(count: number): void;
  /** Octets given to `sendData` that have not left. */
  readonly queuedBytes: number;
  /** Ends the connection behind this answer. Only HTTP/1.1 has it: there the connection carries nothing else. */
  closeAfter?(): void;
};

/** What a side tells the exchange that owns it. */
export type StreamListener = {
  /** A response head, an interim head or trailers; on the request side only trailers come this way. */
  headers(fields: Field[], end: boolean): void;
  /** The bytes are lent for the call. */
  data(bytes: Buffer, start: number, end: number, endStream: boolean): void;
  /** The side is gone: the peer reset it, broke a rule, or its session ended (`lost`). Nothing follows. */
  reset(code: number): void;
  /** `count` bytes given to `sendData` have left this process' queues. */
  sent(count: number): void;
};
