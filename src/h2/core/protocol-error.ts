/** The error codes of RFC 9113 §7. */
export const errorCode = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  SETTINGS_TIMEOUT: 4,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 10,
  ENHANCE_YOUR_CALM: 11,
  INADEQUATE_SECURITY: 12,
  HTTP_1_1_REQUIRED: 13,
} as const;
/**
 * Passed to a StreamListener in place of an error code if the session has ended. The peer may have processed the
 * request.
 */
export const lost = -1;
export type ErrorCode = (typeof errorCode)[keyof typeof errorCode];

type Scope = "stream" | "session";

/**
 * A protocol violation by the peer, thrown and caught only inside h2: streams.ts answers it with RST_STREAM, session.ts
 * with GOAWAY. The message goes to the log and into GOAWAY, so it names rules and numbers but contains no field value.
 */
export class ProtocolError extends Error {
  readonly code: ErrorCode;
  readonly scope: Scope;

  constructor(code: ErrorCode, scope: Scope, message: string) {
    super(message);
    this.code = code;
    this.scope = scope;
  }
}

/** Returns the stream error for a malformed message. Such a message is never forwarded (RFC 9113 §8.1.1). */
export function malformed(what: string): ProtocolError {
  return new ProtocolError(errorCode.PROTOCOL_ERROR, "stream", what);
}
