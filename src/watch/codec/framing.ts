/**
 * Decides which watch responses the proxy can decode. Of a decodable response, the proxy forwards only whole events.
 * Therefore the watch can continue on another backend if its backend dies in the middle of an event (D3). A response in
 * another format is *opaque*: its bytes are forwarded as they come.
 */
import type { EventDecoder } from "./event.ts";
import { JsonEvents } from "./json-events.ts";
import { ProtobufEvents } from "./protobuf-events.ts";

/**
 * Lends decoders of one format to streams. A stream has a decoder only while it reads or has an incomplete event. Most
 * of 50,000 watches are between two events, so they need no decoder.
 */
export class Decoders {
  readonly #create: () => EventDecoder;
  #idle: EventDecoder | undefined;

  constructor(create: () => EventDecoder) {
    this.#create = create;
  }

  take(): EventDecoder {
    const decoder = this.#idle ?? this.#create();
    this.#idle = undefined;
    return decoder;
  }

  /** Takes back a decoder that has read whole events only (`isWhole`). Another stream may use it next. */
  giveBack(decoder: EventDecoder): void {
    this.#idle = decoder;
  }
}

const json = new Decoders(() => new JsonEvents(false));
const jsonWithKeys = new Decoders(() => new JsonEvents(true));
const protobuf = new Decoders(() => new ProtobufEvents(false));
const protobufWithKeys = new Decoders(() => new ProtobufEvents(true));

/**
 * Returns the decoders for a response; undefined if the proxy cannot decode the response. `keepsKeys`: true if several
 * events may share a version, so that the proxy needs the objects' names to distinguish them (`WatchEvent.key`).
 */
export function decodersOf(
  contentType: string,
  contentEncoding: string,
  keepsKeys: boolean,
): Decoders | undefined {
  // The proxy requests every watch without compression (`uncompressed`), so no apiserver compresses the response.
  if (contentEncoding !== "") return undefined;
  const [type = "", ...parameters] = contentType.toLowerCase().split(";", 8);
  if (type.trim() === "application/json") return keepsKeys ? jsonWithKeys : json;
  const isStream = parameters.some((parameter) => parameter.trim() === "stream=watch");
  if (!isStream || type.trim() !== "application/vnd.kubernetes.protobuf") return undefined;
  return keepsKeys ? protobufWithKeys : protobuf;
}
