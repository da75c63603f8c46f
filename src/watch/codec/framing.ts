/**
 * Decides which watch responses the proxy can decode. The proxy forwards only whole events of these, so that a backend
 * may die at any byte (D3). A response in another format is opaque: it is forwarded as it comes, unrepaired.
 */
import type { EventDecoder } from "./event.ts";
import { JsonEvents } from "./json-events.ts";
import { ProtobufEvents } from "./protobuf-events.ts";

/**
 * Returns the decoder for a response's `content-type` and `content-encoding` ("" if absent); undefined for opaque
 * responses. `keepsKeys`: true if the events' keys are needed, because several events may share a version.
 */
export function decoderFor(
  contentType: string,
  contentEncoding: string,
  keepsKeys: boolean,
): EventDecoder | undefined {
  // The proxy requests every watch without compression (`uncompressed`), so a compressed one is not an apiserver's.
  if (contentEncoding !== "") return undefined;
  const [type = "", ...parameters] = contentType.toLowerCase().split(";", 8);
  if (type.trim() === "application/json") return new JsonEvents(keepsKeys);
  const isStream = parameters.some((parameter) => parameter.trim() === "stream=watch");
  if (!isStream || type.trim() !== "application/vnd.kubernetes.protobuf") return undefined;
  return new ProtobufEvents(keepsKeys);
}
