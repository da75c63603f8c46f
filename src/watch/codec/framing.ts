/**
 * Decides which watch responses the proxy can decode. Of a decodable response, the proxy forwards only whole events.
 * Therefore the watch can continue on another backend if its backend dies in the middle of an event (D3). A response in
 * another format is *opaque*: its bytes are forwarded as they come.
 */
import type { EventDecoder } from "./event.ts";
import { JsonEvents } from "./json-events.ts";
import { ProtobufEvents } from "./protobuf-events.ts";

/**
 * Lends decoders of one format. A stream has a decoder only while it reads, or while an event is incomplete, because
 * most of 50,000 watches are between two events.
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

  /** Takes back a decoder whose bytes end between two events. Its next event may be one of another stream. */
  giveBack(decoder: EventDecoder): void {
    this.#idle = decoder;
  }
}

function decodersFor(create: (keepsKeys: boolean) => EventDecoder): (keepsKeys: boolean) => Decoders {
  const [withKeys, withoutKeys] = [new Decoders(() => create(true)), new Decoders(() => create(false))];
  return (keepsKeys) => (keepsKeys ? withKeys : withoutKeys);
}

const json = decodersFor((keepsKeys) => new JsonEvents(keepsKeys));
const protobuf = decodersFor((keepsKeys) => new ProtobufEvents(keepsKeys));

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
  if (type.trim() === "application/json") return json(keepsKeys);
  const isStream = parameters.some((parameter) => parameter.trim() === "stream=watch");
  if (!isStream || type.trim() !== "application/vnd.kubernetes.protobuf") return undefined;
  return protobuf(keepsKeys);
}
