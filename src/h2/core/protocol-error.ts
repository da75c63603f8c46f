/** RFC 9113 §7. */
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
/** Passed to a stream's owner in place of a code if the session ended: what the peer did is unknown. */
export const lost = -1;
export type ErrorCode = (typeof errorCode)[keyof typeof errorCode];

/** What one violation ends: its stream (RST_STREAM) or the whole session (GOAWAY). */
type Scope = "stream" | "session";

/**
 * A protocol violation by the peer. Thrown and caught only inside h2: `session.ts` turns it into RST_STREAM or GOAWAY.
 * The message goes to the log and into GOAWAY's debug data, so it names rules and numbers, never field values.
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

/** The stream error of any malformed message (RFC 9113 §8.1.1): it is never forwarded. */
export function malformed(what: string): ProtocolError {
  return new ProtocolError(errorCode.PROTOCOL_ERROR, "stream", what);
}
