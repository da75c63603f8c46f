/**
 * Where the events of a watch end, so that only whole ones are sent on and a backend may die at any byte (D3).
 * What is not understood stays opaque: forwarded as it comes, and never repaired.
 */
import { JsonEvents } from "./json-events.ts";
import { ProtobufEvents } from "./protobuf-events.ts";

/** Follows one watch's bytes and keeps none of them: whoever feeds it holds what is not whole yet. */
export type EventFraming = {
  /** Events completed so far. */
  readonly events: number;
  /** Does the stream stand between two events, so that nothing is held back? */
  readonly isWhole: boolean;
  /**
   * Looks at bytes[start, end), which follow all that was fed before, and returns how far whole events reach: what is
   * held and the bytes up to there may go on. -1 when the stream is not what it claimed to be, or one event passes
   * `limits.eventBytes`: it is opaque from now on, all of it may go on, and nothing more is fed.
   */
  feed(bytes: Buffer, start: number, end: number): number;
};

/** By an answer's `content-type` and `content-encoding`, "" when absent; undefined for opaque ones. */
export function framingFor(contentType: string, contentEncoding: string): EventFraming | undefined {
  // The apiserver never compresses a watch (watch.md §2.1): whoever does is not one.
  if (contentEncoding !== "") return undefined;
  const [type = "", ...parameters] = contentType.toLowerCase().split(";", 8);
  if (type.trim() === "application/json") return new JsonEvents();
  const isStream = parameters.some((parameter) => parameter.trim() === "stream=watch");
  return isStream && type.trim() === "application/vnd.kubernetes.protobuf" ? new ProtobufEvents() : undefined;
}
