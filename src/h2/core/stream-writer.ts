/**
 * The two interfaces between an exchange (one request with its response) and its client or backend. HTTP/2 streams
 * implement StreamWriter, and so does proxy/downstream/h1-stream-writer.ts for HTTP/1.1, so an exchange treats both
 * protocols alike. Bytes are passed as positions in a buffer, which the caller reuses after the call.
 */
import type { Field } from "./field.ts";

/** Sends to one side of an exchange (one request with its response). The side is the client or the backend. */
export type StreamWriter = {
  /**
   * Sends a head, an interim head (1xx) or trailers; the order of the calls and `:status` distinguish them. `end`: no
   * body follows.
   */
  sendHeaders(fields: readonly Field[], end: boolean): void;
  /** Sends `bytes[start, end)`, which are valid only during the call. Bytes that cannot be sent yet are copied. */
  sendData(bytes: Buffer, start: number, end: number, endStream: boolean): void;
  /** Sends RST_STREAM with an error code of RFC 9113 §7. On HTTP/1.1, destroys the socket. */
  reset(code: number): void;
  /** Returns flow-control credit: `count` bytes from this side were forwarded, so this side may send more. */
  grant(count: number): void;
  readonly queuedBytes: number;
  /** HTTP/1.1 only: closes the connection after this response. An HTTP/2 connection carries other streams as well. */
  closeAfter?(): void;
};

/** Callbacks by which an exchange receives what one of its sides sends. The side is the client or the backend. */
export type StreamListener = {
  /**
   * Called for a response head, an interim head (1xx) or trailers. If the side is a client, called for trailers only.
   */
  headers(fields: Field[], end: boolean): void;
  /** Called for body bytes, which are valid only during the call. */
  data(bytes: Buffer, start: number, end: number, endStream: boolean): void;
  /**
   * Called when the stream ends early: by a reset, by a protocol violation, or with its session (`code` is then
   * `lost`). No other call follows.
   */
  reset(code: number): void;
  /** Called when `count` of the bytes given to `sendData` have been written into DATA frames. */
  sent(count: number): void;
};
