/**
 * The rules of one message on its stream (RFC 9113 §8.1): interim heads, one final head, a body of the promised length,
 * trailers at the end. Every violation throws a stream error PROTOCOL_ERROR: a malformed message is never forwarded.
 */
import { limits } from "../../base/limits.ts";
import { Field } from "../core/field.ts";
import { readResponse, trailersFault } from "../core/fields.ts";
import { errorCode, ProtocolError } from "../core/protocol-error.ts";
import type { Stream } from "./stream.ts";

/** The stream error of any malformed message. */
export function malformed(what: string): ProtocolError {
  return new ProtocolError(errorCode.PROTOCOL_ERROR, "stream", what);
}

/** Handles a response head: up to 16 interim ones, then the final one (A37). */
export function receiveAnswer(stream: Stream, fields: readonly Field[], end: boolean): void {
  const head = readResponse(fields);
  if (typeof head === "string") throw malformed(head);
  if (head.status < 200) {
    if (end) throw malformed("interim head that ends its stream");
    stream.interimHeads += 1;
    if (stream.interimHeads > limits.interimHeads) throw malformed("too many interim heads");
    return;
  }
  stream.isAnswered = true;
  // The response to HEAD and a 304 state the length of a body that they do not have (RFC 9110 §8.6).
  const isBodiless = stream.isHead || head.status === 304 || head.status === 204;
  stream.expected = isBodiless ? 0 : head.contentLength;
  if (end && stream.expected > 0) throw malformed("content-length without a body");
}

export function receiveTrailers(stream: Stream, fields: readonly Field[], end: boolean): void {
  if (!end) throw malformed("trailers that do not end their stream");
  const fault = trailersFault(fields);
  if (fault !== undefined) throw malformed(fault);
  countBody(stream, 0, true);
}

/** Enforces `content-length` (A29): more bytes, or fewer at the end, make the message malformed. */
export function countBody(stream: Stream, count: number, end: boolean): void {
  if (stream.expected < 0) return;
  stream.expected -= count;
  if (stream.expected < 0) throw malformed("body longer than its content-length");
  if (end && stream.expected > 0) throw malformed("body shorter than its content-length");
}

const longHead = [new Field(":status", "431"), new Field("content-length", "0")];

/** Answers a header list beyond the limits with a readable error (RFC 6585 §5), once per session. */
export function answerLongHead(stream: Stream): void {
  stream.sendHeaders(longHead, true);
  stream.reset(errorCode.NO_ERROR);
}
