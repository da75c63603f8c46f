/**
 * Generates watch events in the JSON that an apiserver writes. Their objects hold hostile strings that imitate a
 * resourceVersion, a key or the end of an event. A Map keeps the order in which its members are written.
 */
import type { Random } from "./random.ts";

type Json = string | number | boolean | null | readonly Json[] | ReadonlyMap<string, Json>;

const types = ["ADDED", "ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"] as const;
const marker = "k8s.io/initial-events-end";

/**
 * Keys and strings that have a meaning elsewhere in an event, or that a careless parser takes for the end of a value.
 */
const words = [
  "metadata",
  "Metadata",
  "resourceVersion",
  "resourceversion",
  "f:resourceVersion",
  "name",
  "namespace",
  "object",
  "type",
  "rows",
  "kind",
  "aaa",
  "zzz",
  "__proto__",
  "",
  marker,
  "true",
  "666",
  '"',
  "\\",
  '\\"',
  '\\\\"',
  '"}}',
  "\n",
  '"}}\n{"type":"DELETED","object":{"metadata":{"resourceVersion":"666"}}}\n',
  '{"type":"DELETED","object":{"metadata":{"resourceVersion":"666"}}}',
  '"metadata":{"resourceVersion":"666"',
  ',"resourceVersion":"666",',
  "\u2028\u2029<>&",
  "\u0000\u0001\u001f\u007f",
  "bäume 東京 😀",
  "azhzAAo=",
  "{",
  "}",
  "[",
  "]",
  "{[{[",
  "]}]}",
] as const;

/** The characters that Go's JSON encoder escapes, and how it writes them. */
const escapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

function escaped(char: string): string {
  return escapes[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function written(json: Json): string {
  if (typeof json === "string") return `"${json.replaceAll(/[\u0000-\u001f"\\<>&\u2028\u2029]/g, escaped)}"`;
  if (json instanceof Map)
    return `{${[...json].map(([key, item]) => `${written(key)}:${written(item)}`).join(",")}}`;
  return Array.isArray(json) ? `[${json.map(written).join(",")}]` : JSON.stringify(json);
}

function text(random: Random): string {
  if (random.chance(0.01)) return random.pick(words).repeat(200);
  return random.chance(0.2) ? random.pick(words) + random.pick(words) : random.pick(words);
}

function anything(random: Random, depth: number): Json {
  const kind = random.below(depth > 0 ? 9 : 6);
  if (kind < 3) return text(random);
  if (kind === 3) return random.pick([0, -1, 666, 1.5e-7, 1e21, -0.25]);
  if (kind === 4) return random.pick([true, false]);
  if (kind === 5) return null;
  if (kind === 6) return Array.from({ length: random.below(4) }, () => anything(random, depth - 1));
  return map(random, depth - 1, []);
}

/** Returns random members. None of them has a key from `but`. */
function map(random: Random, depth: number, but: readonly string[]): Map<string, Json> {
  const members = new Map<string, Json>();
  for (let count = random.below(5); count > 0; count--) {
    const key = text(random);
    if (!but.includes(key)) members.set(key, anything(random, depth));
  }
  return members;
}

const maxUint64 = "18446744073709551615";

function version(random: Random): Json {
  const digits = (count: number): string => Array.from({ length: count }, () => random.below(10)).join("");
  if (random.chance(0.7)) return `${1 + random.below(9)}${digits(random.below(12))}`;
  const odd: [Json, ...Json[]] = [
    "0",
    "",
    "007",
    maxUint64,
    `9${digits(19)}`,
    `9${digits(20)}`,
    "7a",
    "-7",
    7,
  ];
  return random.pick([...odd, null, new Map<string, Json>([["resourceVersion", "666"]]), ["666"]]);
}

function plainName(random: Random): string {
  return random.chance(0.9) ? `web-${random.below(1e6)}` : text(random);
}

/** Returns the metadata of an object, with random members omitted. */
function metadata(random: Random, isFree: boolean): Map<string, Json> {
  const members: Map<string, Json> = isFree
    ? map(random, 2, ["resourceVersion", "name", "namespace", "annotations", "labels"])
    : new Map<string, Json>();
  const maybe = (probability: number, key: string, make: () => Json): void => {
    if (random.chance(probability)) members.set(key, make());
  };
  maybe(0.95, "name", () => plainName(random));
  maybe(0.8, "namespace", () => plainName(random));
  maybe(0.95, "resourceVersion", () => version(random));
  maybe(0.6, "labels", () => map(random, 0, []));
  maybe(0.6, "annotations", () => annotations(random));
  maybe(0.4, "managedFields", () => [anything(random, 4), map(random, 3, [])]);
  return members;
}

function annotations(random: Random): Map<string, Json> {
  const members = map(random, 1, [marker]);
  if (random.chance(0.3)) members.set(marker, random.pick<Json>(["true", "true", "false", true, null]));
  return members;
}

/** Returns the members sorted bytewise by key, as the apiserver writes unstructured objects. */
function sorted(members: ReadonlyMap<string, Json>): Map<string, Json> {
  return new Map([...members].toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
}

function custom(random: Random): Map<string, Json> {
  const members = map(random, 3, ["metadata", "code", "reason"]);
  const isOdd = random.chance(0.05);
  members.set("metadata", isOdd ? anything(random, 2) : sorted(metadata(random, true)));
  if (random.chance(0.02)) members.delete("metadata");
  return sorted(members);
}

function typed(random: Random): Map<string, Json> {
  const rest = map(random, 3, ["metadata", "kind", "apiVersion", "code", "reason"]);
  const head: [string, Json][] = [
    ["kind", random.pick(["Pod", "Table"])],
    ["apiVersion", "v1"],
    ["metadata", metadata(random, false)],
  ];
  return new Map([...head, ...rest]);
}

function table(random: Random): Map<string, Json> {
  const object = random.pick<() => Json>([
    () => typed(random),
    () => new Map<string, Json>([["metadata", metadata(random, false)]]),
    () => null,
  ])();
  const row = new Map<string, Json>([
    ["cells", [text(random), 7, null]],
    ["object", object],
  ]);
  return new Map<string, Json>([
    ["kind", "Table"],
    ["apiVersion", "meta.k8s.io/v1"],
    ["metadata", new Map([["resourceVersion", version(random)]])],
    ["columnDefinitions", random.chance(0.5) ? null : [map(random, 1, [])]],
    ["rows", random.chance(0.9) ? [row] : random.pick<Json>([[], null, [null]])],
  ]);
}

function status(random: Random): Map<string, Json> {
  return new Map<string, Json>([
    ["kind", "Status"],
    ["apiVersion", "v1"],
    ["metadata", random.chance(0.7) ? new Map() : metadata(random, false)],
    ["message", text(random)],
    ["reason", random.pick<Json>(["Expired", text(random), 5])],
    ["code", random.pick<Json>([410, 429, 500, 504, "410", null])],
  ]);
}

/** Returns one event, as a line. */
export function adversarialJson(random: Random): Buffer {
  const type = random.pick(types);
  const shape = random.below(3);
  const object =
    type === "ERROR"
      ? status(random)
      : shape === 0
        ? custom(random)
        : shape === 1
          ? typed(random)
          : table(random);
  return Buffer.from(`{"type":"${type}","object":${written(object)}}\n`);
}
