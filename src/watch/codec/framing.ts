/**
 * Decides which watch responses the proxy can decode. Of a decodable response, the proxy forwards only whole events.
 * Therefore the watch can continue on another backend if its backend dies in the middle of an event (D3). A response in
 * another format is *opaque*: its bytes are forwarded as they come.
 */
import type { EventDecoder } from "./event.ts";
import { JsonEvents } from "./json-events.ts";
import { ProtobufEvents } from "./protobuf-events.ts";

/**
 * Returns the decoder for a response; undefined if the proxy cannot decode the response. `keepsKeys`: true if several
 * events may share a version, so that the proxy needs the objects' names to distinguish them (`WatchEvent.key`).
 */
export function decoderFor(
  contentType: string,
  contentEncoding: string,
  keepsKeys: boolean,
): EventDecoder | undefined {
  // The proxy requests every watch without compression (`uncompressed`), so no apiserver compresses the response.
  if (contentEncoding !== "") return undefined;
  const [type = "", ...parameters] = contentType.toLowerCase().split(";", 8);
  if (type.trim() === "application/json") return new JsonEvents(keepsKeys);
  const isStream = parameters.some((parameter) => parameter.trim() === "stream=watch");
  if (!isStream || type.trim() !== "application/vnd.kubernetes.protobuf") return undefined;
  return new ProtobufEvents(keepsKeys);
}
