/** Encodes watch events for the simulated apiserver, and decodes them for its clients, in JSON and protobuf. */
import { isMap, type JsonMap, mapOf, parseJson, textOf } from "../../../demo/objects/json.ts";

export type WatchEvent = {
  readonly type: string;
  /** namespace/name of the object. */
  readonly key: string;
  readonly version: number;
  /** True for the bookmark that ends the initial events. */
  readonly isInitialEnd: boolean;
  readonly labels: Readonly<Record<string, string>>;
  /** The code of an ERROR event. */
  readonly code: number;
};

export const protobufStream = "application/vnd.kubernetes.protobuf;stream=watch";
const magic = Buffer.from("k8s\0");
const initialEnd = "k8s.io/initial-events-end";

// --- encoding ---

function varint(value: number): Buffer {
  const octets: number[] = [];
  let left = value;
  while (left > 0x7f) {
    octets.push((left & 0x7f) | 0x80);
    left = Math.floor(left / 128);
  }
  octets.push(left);
  return Buffer.from(octets);
}

function field(tag: number, value: Buffer | string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([varint(tag * 8 + 2), varint(bytes.length), bytes]);
}

/** Go's marshallers write each map entry as a message: the key in field 1, the value in field 2. */
function entries(tag: number, map: JsonMap): Buffer[] {
  return Object.entries(map).map(([key, value]) =>
    field(tag, Buffer.concat([field(1, key), field(2, textOf(value))])),
  );
}

function metadataBytes(metadata: JsonMap): Buffer {
  const text = (name: string): string => textOf(metadata[name]);
  return Buffer.concat([
    field(1, text("name")),
    field(2, ""),
    field(3, text("namespace")),
    field(4, ""),
    field(5, text("uid")),
    field(6, text("resourceVersion")),
    ...entries(11, mapOf(metadata["labels"])),
    ...entries(12, mapOf(metadata["annotations"])),
  ]);
}

/** A ConfigMap has its ObjectMeta in field 1 and `data` in field 2. A Status has its code in field 6. */
function objectBytes(type: string, object: JsonMap): Buffer {
  if (type !== "ERROR")
    return Buffer.concat([
      field(1, metadataBytes(mapOf(object["metadata"]))),
      ...entries(2, mapOf(object["data"])),
    ]);
  const code = Buffer.concat([varint(6 * 8), varint(Number(object["code"] ?? 0))]);
  return Buffer.concat([field(1, ""), field(2, "Failure"), field(3, textOf(object["message"])), code]);
}

/** Returns a four-byte length and the WatchEvent, whose object is a runtime.Unknown (watch.md §2.3). */
export function encodeProtobuf(type: string, object: JsonMap): Buffer {
  const typeMeta = Buffer.concat([field(1, textOf(object["apiVersion"])), field(2, textOf(object["kind"]))]);
  const unknown = [field(1, typeMeta), field(2, objectBytes(type, object)), field(3, ""), field(4, "")];
  const raw = field(1, Buffer.concat([magic, ...unknown]));
  const event = Buffer.concat([field(1, type), field(2, raw)]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}

// --- decoding ---

function eventOf(type: string, object: JsonMap): WatchEvent {
  const metadata = mapOf(object["metadata"]);
  const labels: Record<string, string> = {};
  for (const [key, value] of Object.entries(mapOf(metadata["labels"]))) labels[key] = textOf(value);
  return {
    type,
    key: `${textOf(metadata["namespace"])}/${textOf(metadata["name"])}`,
    version: Number(textOf(metadata["resourceVersion"])),
    isInitialEnd: textOf(mapOf(metadata["annotations"])[initialEnd]) === "true",
    labels,
    code: Number(object["code"] ?? 0),
  };
}

type Part = number | Buffer;

function partsOf(bytes: Buffer): [number, Part][] {
  const parts: [number, Part][] = [];
  for (let at = 0; at < bytes.length; ) {
    const [tag, afterTag] = readVarint(bytes, at);
    const [word, afterWord] = readVarint(bytes, afterTag);
    at = tag % 8 === 2 ? afterWord + word : afterWord;
    parts.push([Math.floor(tag / 8), tag % 8 === 2 ? bytes.subarray(afterWord, at) : word]);
  }
  return parts;
}

function readVarint(bytes: Buffer, from: number): [number, number] {
  let value = 0;
  for (let at = from; at < bytes.length; at += 1) {
    const octet = bytes[at] ?? 0;
    value += (octet & 0x7f) * 2 ** (7 * (at - from));
    if (octet < 0x80) return [value, at + 1];
  }
  throw new Error("A varint is cut");
}

function bytesAt(bytes: Buffer, tag: number): Buffer {
  const part = partsOf(bytes).find(([found]) => found === tag)?.[1];
  return Buffer.isBuffer(part) ? part : Buffer.alloc(0);
}

function mapAt(bytes: Buffer, tag: number): JsonMap {
  const all = partsOf(bytes).filter(([found, part]) => found === tag && Buffer.isBuffer(part));
  const pairs = all.map(([, part]) => (Buffer.isBuffer(part) ? part : Buffer.alloc(0)));
  return Object.fromEntries(pairs.map((pair) => [bytesAt(pair, 1).toString(), bytesAt(pair, 2).toString()]));
}

function readProtobufEvent(bytes: Buffer): WatchEvent {
  const type = bytesAt(bytes, 1).toString();
  const raw = bytesAt(bytesAt(bytes, 2), 1);
  if (!raw.subarray(0, 4).equals(magic)) throw new Error("An object without its magic number");
  const object = bytesAt(raw.subarray(4), 2);
  const code = partsOf(object).find(([tag]) => tag === 6)?.[1];
  if (type === "ERROR") return eventOf(type, { code: typeof code === "number" ? code : 0 });
  const meta = bytesAt(object, 1);
  const text = (tag: number): string => bytesAt(meta, tag).toString();
  const metadata = {
    name: text(1),
    namespace: text(3),
    resourceVersion: text(6),
    labels: mapAt(meta, 11),
    annotations: mapAt(meta, 12),
  };
  return eventOf(type, { metadata });
}

const nothing = Buffer.alloc(0);

/**
 * Reassembles the events of a watch from its bytes. Throws on bytes that are no event, since only the proxy can have
 * damaged them.
 */
export class EventReader {
  readonly #isProtobuf: boolean;
  readonly #told: (event: WatchEvent) => void;
  #kept: Buffer = nothing;

  constructor(contentType: string, told: (event: WatchEvent) => void) {
    this.#isProtobuf = contentType.includes("protobuf");
    this.#told = told;
  }

  /** Number of bytes received of an incomplete event. */
  get partialBytes(): number {
    return this.#kept.length;
  }

  receive(bytes: Buffer, start: number, end: number): void {
    const fresh = bytes.subarray(start, end);
    const all = this.#kept.length === 0 ? fresh : Buffer.concat([this.#kept, fresh]);
    let at = 0;
    for (let next = this.#endOf(all, at); next >= 0; next = this.#endOf(all, at)) {
      this.#told(this.#read(all, at, next));
      at = next;
    }
    this.#kept = at === all.length ? nothing : Buffer.from(all.subarray(at));
  }

  /** Returns the end of the event that begins at `at`, or -1 if the event is incomplete. */
  #endOf(all: Buffer, at: number): number {
    if (!this.#isProtobuf) return all.indexOf(0x0a, at) < 0 ? -1 : all.indexOf(0x0a, at) + 1;
    if (all.length - at < 4) return -1;
    const end = at + 4 + all.readUInt32BE(at);
    return end <= all.length ? end : -1;
  }

  #read(all: Buffer, start: number, end: number): WatchEvent {
    if (this.#isProtobuf) return readProtobufEvent(all.subarray(start + 4, end));
    const line = parseJson(all.toString("utf8", start, end));
    if (!isMap(line)) throw new Error(`No event: ${all.toString("utf8", start, Math.min(end, start + 80))}`);
    return eventOf(textOf(line["type"]), mapOf(line["object"]));
  }
}
