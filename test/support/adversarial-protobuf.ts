/**
 * Generates watch events in the Kubernetes protobuf encoding. Their objects hold hostile bytes that imitate a
 * resourceVersion. The file also has a slow decoder of complete messages, which shares no code with the proxy's parser.
 */
import type { Random } from "./random.ts";
import { field, framed } from "./watch-bytes.ts";

const types = ["ADDED", "ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"] as const;
const marker = "k8s.io/initial-events-end";

/**
 * Hostile bytes that a parser would take for real ones if it searched instead of parsing: field 6 with a version, a
 * whole object, the header and the length of an event.
 */
const words: readonly [Buffer, ...Buffer[]] = [
  Buffer.from("2\x03666"),
  Buffer.from("2\x01"),
  Buffer.from("\n\x052\x03666"),
  Buffer.from("k8s\0\n\0\x12\x07\n\x052\x03666"),
  Buffer.from("\0\0\0\x20\n\x07DELETED\x12\x15"),
  Buffer.from("resourceVersion"),
  Buffer.from(marker),
  Buffer.from("true"),
  Buffer.from("666"),
  Buffer.from(""),
  Buffer.from("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "latin1"),
  Buffer.from("bäume 東京"),
  Buffer.alloc(130, "2"),
  Buffer.alloc(300, 0x80),
];

function blob(random: Random): Buffer {
  if (random.chance(0.01)) return Buffer.concat(Array.from({ length: 200 }, () => random.pick(words)));
  return random.chance(0.2) ? Buffer.concat([random.pick(words), random.pick(words)]) : random.pick(words);
}

function version(random: Random): string {
  const digits = (count: number): string => Array.from({ length: count }, () => random.below(10)).join("");
  if (random.chance(0.7)) return `${1 + random.below(9)}${digits(random.below(12))}`;
  return random.pick([
    "0",
    "",
    "007",
    "18446744073709551615",
    `9${digits(19)}`,
    `9${digits(20)}`,
    "7a",
    "-7",
  ]);
}

function fixed(number: number, octets: number): Buffer {
  const tag = number * 8 + (octets === 8 ? 1 : 5);
  return Buffer.concat([Buffer.from([tag]), Buffer.alloc(octets, 0x32)]);
}

/**
 * Returns an ObjectMeta with its fields in numeric order. Some fields are omitted, and some have numbers that only
 * later Kubernetes versions may define.
 */
function metadata(random: Random): Buffer {
  const parts: Buffer[] = [];
  const maybe = (probability: number, make: () => Buffer): void => {
    if (random.chance(probability)) parts.push(make());
  };
  const name = (): string | Buffer => (random.chance(0.9) ? `web-${random.below(1e6)}` : blob(random));
  maybe(0.95, () => field(1, name()));
  maybe(0.9, () => field(2, random.chance(0.9) ? "" : blob(random)));
  maybe(0.9, () => field(3, name()));
  maybe(0.9, () => field(4, random.chance(0.9) ? "" : blob(random)));
  maybe(0.9, () => field(5, blob(random)));
  maybe(0.02, () => fixed(5, random.pick([4, 8])));
  maybe(0.95, () => field(6, version(random)));
  maybe(0.9, () => field(7, random.below(2 ** 31)));
  maybe(0.9, () => field(8, field(1, random.below(2 ** 31))));
  const entry = (key: Uint8Array, value: Uint8Array): Buffer =>
    Buffer.concat([field(1, key), field(2, value)]);
  for (let count = random.below(4); count > 0; count--)
    parts.push(field(random.pick([11, 12]), entry(blob(random), blob(random))));
  maybe(0.2, () => field(12, entry(Buffer.from(marker), Buffer.from(random.pick(["true", "false"])))));
  maybe(0.5, () => field(17, Buffer.concat([field(1, blob(random)), field(6, field(1, blob(random)))])));
  return Buffer.concat(parts);
}

function object(random: Random): Buffer {
  const parts = [field(1, metadata(random))];
  for (let count = random.below(4); count > 0; count--)
    parts.push(field(2 + random.below(30), random.chance(0.3) ? random.below(1e9) : blob(random)));
  return Buffer.concat(parts);
}

/** Returns a Status. Field 2 of its ListMeta is a resourceVersion that the parser must ignore. */
function status(random: Random): Buffer {
  const parts = [
    field(1, random.chance(0.5) ? "" : Buffer.concat([field(2, "666"), field(6, "666")])),
    field(2, "Failure"),
    field(3, blob(random)),
    field(4, random.chance(0.5) ? "Expired" : blob(random)),
    field(5, field(6, blob(random))),
  ];
  if (random.chance(0.9)) parts.push(field(6, random.pick([410, 429, 500, 504])));
  return Buffer.concat(parts);
}

/** Returns one event, as a frame with its length prefix. */
export function adversarialProtobuf(random: Random): Buffer {
  const type = random.pick(types);
  const content = type === "ERROR" ? status(random) : object(random);
  const kind = Buffer.concat([field(1, blob(random)), field(2, blob(random))]);
  const tail = Buffer.concat([field(3, ""), field(4, random.chance(0.9) ? "" : blob(random))]);
  const unknown = Buffer.concat([field(1, kind), field(2, content), tail]);
  const raw = Buffer.concat([Buffer.from("k8s\0"), unknown]);
  return framed(Buffer.concat([field(1, type), field(2, field(1, raw))]));
}

/** The values of a message by field number: bytes as a latin1 string, varints as bigint. */
export type Fields = ReadonlyMap<number, readonly (string | bigint)[]>;

/**
 * Returns the fields of a protobuf message, decoded as the specification of the encoding describes it. Throws if the
 * text is no valid message.
 */
export function fieldsOf(message: string): Fields {
  const fields = new Map<number, (string | bigint)[]>();
  let at = 0;
  const take = (length: number): string => {
    at += length;
    if (message.length < at) throw new Error("A field is cut short");
    return message.slice(at - length, at);
  };
  const varint = (): bigint => {
    const octet = take(1).charCodeAt(0);
    return octet < 128 ? BigInt(octet) : BigInt(octet - 128) + 128n * varint();
  };
  while (at < message.length) {
    const tag = varint();
    const number = Number(tag >> 3n);
    const wire = Number(tag & 7n);
    const values = fields.get(number) ?? [];
    if (wire === 0) values.push(varint());
    else values.push(take(wire === 2 ? Number(varint()) : wire === 1 ? 8 : 4));
    fields.set(number, values);
  }
  return fields;
}
