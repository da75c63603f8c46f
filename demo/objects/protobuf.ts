/**
 * Decodes bodies in Kubernetes' protobuf, which typed clients such as `kubectl create configmap` send, to JSON. Knows
 * only the kinds that the embedded apiserver serves. Responses are always JSON, which those clients accept too.
 */
import { timestampOf } from "../../src/base/clock.ts";
import { isList, type Json, type JsonMap, mapOf, textOf } from "./json.ts";

export const protobufType = "application/vnd.kubernetes.protobuf";
const magic = Buffer.from("k8s\0");

/** The value of a protobuf field: a varint or bytes. The messages decoded here have no other wire types. */
type Value = number | Buffer;

/** Decodes one occurrence of a field; undefined if it is malformed. `before`: the result of the earlier occurrences. */
type Read = (value: Value, before: Json | undefined) => Json | undefined;

const string: Read = (value) => (typeof value === "number" ? undefined : value.toString());
const blob: Read = (value) => (typeof value === "number" ? undefined : value.toString("base64"));
const number: Read = (value) => (typeof value === "number" ? value : undefined);
const boolean: Read = (value) => (typeof value === "number" ? value !== 0 : undefined);

function listOf(read: Read): Read {
  return (value, before) => {
    const item = read(value, undefined);
    return item === undefined ? undefined : [...(isList(before) ? before : []), item];
  };
}

function message(fields: Readonly<Record<number, readonly [string, Read]>>): Read {
  return (value) => {
    const parts = typeof value === "number" ? undefined : splitFields(value);
    if (parts === undefined) return undefined;
    const found = new Map<string, Json>();
    for (const [tag, part] of parts) {
      const [name = "", read] = fields[tag] ?? [];
      const json = read === undefined ? "" : read(part, found.get(name));
      if (json === undefined) return undefined;
      // Skips empty strings, because Go's marshallers write one for each unset field.
      if (json !== "") found.set(name, json);
    }
    return Object.fromEntries(found);
  };
}

/** Returns a reader of map fields. A map is a list of entries, with the key as field 1 and the value as field 2. */
function mapWith(read: Read): Read {
  const entryOf = message({ 1: ["key", string], 2: ["value", read] });
  return (value, before) => {
    const entry = entryOf(value, undefined);
    if (entry === undefined) return undefined;
    const key = textOf(mapOf(entry)["key"]);
    return { ...mapOf(before), [key]: mapOf(entry)["value"] ?? "" };
  };
}

const instant = message({ 1: ["seconds", number], 2: ["nanos", number] });

const microTime: Read = (value) => {
  const read = instant(value, undefined);
  const { seconds = 0, nanos = 0 } = mapOf(read);
  if (read === undefined) return undefined;
  const micros = String(Math.floor(Number(nanos) / 1_000)).padStart(6, "0");
  return timestampOf(Number(seconds) * 1_000).replace("Z", `.${micros}Z`);
};

/** The field numbers below are from the generated.proto files of k8s.io/api and k8s.io/apimachinery. */
const metadata = message({
  1: ["name", string],
  2: ["generateName", string],
  3: ["namespace", string],
  5: ["uid", string],
  6: ["resourceVersion", string],
  11: ["labels", mapWith(string)],
  12: ["annotations", mapWith(string)],
  14: ["finalizers", listOf(string)],
});

const kinds: ReadonlyMap<string, Read> = new Map([
  ["Namespace", message({ 1: ["metadata", metadata] })],
  [
    "ConfigMap",
    message({
      1: ["metadata", metadata],
      2: ["data", mapWith(string)],
      3: ["binaryData", mapWith(blob)],
      4: ["immutable", boolean],
    }),
  ],
  [
    "Secret",
    message({
      1: ["metadata", metadata],
      2: ["data", mapWith(blob)],
      3: ["type", string],
      4: ["stringData", mapWith(string)],
      5: ["immutable", boolean],
    }),
  ],
  [
    "Lease",
    message({
      1: ["metadata", metadata],
      2: [
        "spec",
        message({
          1: ["holderIdentity", string],
          2: ["leaseDurationSeconds", number],
          3: ["acquireTime", microTime],
          4: ["renewTime", microTime],
          5: ["leaseTransitions", number],
        }),
      ],
    }),
  ],
  [
    "DeleteOptions",
    message({
      2: ["preconditions", message({ 1: ["uid", string], 2: ["resourceVersion", string] })],
      4: ["propagationPolicy", string],
    }),
  ],
]);

const typeMeta = message({ 1: ["apiVersion", string], 2: ["kind", string] });

/** Returns the JSON of a protobuf body; undefined: it is malformed or of an unknown kind. */
export function readProtobuf(body: Buffer): JsonMap | undefined {
  if (!body.subarray(0, magic.length).equals(magic)) return undefined;
  // The body is a runtime.Unknown: field 1 is the type, field 2 the bytes of the object.
  const parts = new Map(splitFields(body.subarray(magic.length)));
  const type = mapOf(typeMeta(parts.get(1) ?? 0, undefined));
  const object = kinds.get(textOf(type["kind"]))?.(parts.get(2) ?? 0, undefined);
  return object === undefined ? undefined : { ...type, ...mapOf(object) };
}

function splitFields(bytes: Buffer): [number, Value][] | undefined {
  const parts: [number, Value][] = [];
  let at = 0;
  while (at < bytes.length) {
    const [tag, afterTag] = readVarint(bytes, at);
    const [word, afterWord] = readVarint(bytes, afterTag);
    const wireType = tag % 8;
    at = wireType === 2 ? afterWord + word : afterWord;
    if ((wireType !== 0 && wireType !== 2) || at > bytes.length) return undefined;
    parts.push([Math.floor(tag / 8), wireType === 2 ? bytes.subarray(afterWord, at) : word]);
  }
  return parts;
}

/** Returns a varint's value and the position after it. The position is beyond `bytes` if the varint is invalid. */
function readVarint(bytes: Buffer, from: number): [number, number] {
  let value = 0;
  for (let at = from; at < bytes.length && at < from + 10; at += 1) {
    const byte = bytes[at] ?? 0;
    // Multiplies instead of shifting, because `<<` works on 32 bits only.
    value += (byte & 0x7f) * 2 ** (7 * (at - from));
    if (byte < 0x80) return [value, at + 1];
  }
  return [0, bytes.length + 1];
}
