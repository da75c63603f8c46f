/**
 * The two interfaces between an exchange and its two sides, the client and the backend. HTTP/2 streams implement
 * StreamWriter, and so does proxy/downstream/h1-stream-writer.ts for HTTP/1.1, so an exchange relays both in the same
 * way. Bytes are passed as positions in a buffer that is reused after the call.
 */
import type { Field } from "./field.ts";

/** Sends to one side of an exchange: the client or the backend. */
export type StreamWriter = {
  /** Sends a head, an interim head (1xx) or trailers, known by order and `:status`. `end`: nothing follows. */
  sendHeaders(fields: readonly Field[], end: boolean): void;
  /** Sends `bytes[start, end)`, which are valid only during the call. What must wait is copied. */
  sendData(bytes: Buffer, start: number, end: number, endStream: boolean): void;
  /** Sends RST_STREAM with a code of RFC 9113 §7. On HTTP/1.1, destroys the socket. */
  reset(code: number): void;
  /** Returns flow-control credit: `count` bytes from this side have been forwarded, so it may send more. */
  grant(count: number): void;
  /** Bytes passed to `sendData` that have not been sent. */
  readonly queuedBytes: number;
  /** Closes the connection after this response. HTTP/1.1 only: an HTTP/2 connection carries other streams. */
  closeAfter?(): void;
};

/** Receives what comes from one side of an exchange. The exchange implements it. */
export type StreamListener = {
  /** Called for a response head, an interim head (1xx) or trailers. From a client only trailers come this way. */
  headers(fields: Field[], end: boolean): void;
  /** Called for body bytes, which are valid only during the call. */
  data(bytes: Buffer, start: number, end: number, endStream: boolean): void;
  /** The stream ended early, by a reset, a violation or the end of its session (`lost`). No call follows. */
  reset(code: number): void;
  /** Called when `count` bytes passed to `sendData` have left this process's queues. */
  sent(count: number): void;
};
