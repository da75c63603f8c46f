/**
 * Which answers are watches that we can read. Only whole events are sent on, so that a backend may die at any byte
 * (D3). What is not understood stays opaque: forwarded as it comes, and never repaired.
 */
import type { EventDecoder } from "./event.ts";
import { JsonEvents } from "./json-events.ts";
import { ProtobufEvents } from "./protobuf-events.ts";

/**
 * By an answer's `content-type` and `content-encoding`, "" when absent; undefined for opaque ones. `keepsKeys`: will
 * the events' keys be asked for? Only where versions repeat.
 */
export function decoderFor(
  contentType: string,
  contentEncoding: string,
  keepsKeys: boolean,
): EventDecoder | undefined {
  // The apiserver never compresses a watch (watch.md §2.1): whoever does is not one.
  if (contentEncoding !== "") return undefined;
  const [type = "", ...parameters] = contentType.toLowerCase().split(";", 8);
  if (type.trim() === "application/json") return new JsonEvents(keepsKeys);
  const isStream = parameters.some((parameter) => parameter.trim() === "stream=watch");
  if (!isStream || type.trim() !== "application/vnd.kubernetes.protobuf") return undefined;
  return new ProtobufEvents(keepsKeys);
}
