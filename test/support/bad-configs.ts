/** Configurations in which the value of one key is another YAML node: every key of the schema, every kind of node. */
import { parse } from "yaml";
import schema from "../../config/schema/watchkeeper.v1alpha2.json" with { type: "json" };
import { isRecord } from "../../src/base/json.ts";
import { parseConfig } from "../../src/ops/config/config.ts";
import { isProblems } from "../../src/ops/config/problem.ts";

type Path = readonly (string | number)[];

const deep = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

/** YAML nodes by what they are. Each is valid YAML, or the reader must say why not. */
export const nodes: Readonly<Record<string, string>> = {
  map: "{accessLog: All}",
  "empty map": "{}",
  "map of a map": "{a: {b: {c: d}}}",
  list: "[JSON]",
  "empty list": "[]",
  "list of lists": "[[1], [[x]]]",
  "list of maps": "[{name: a}, {name: a}]",
  "list with null": "[null, ~]",
  null: "null",
  tilde: "~",
  number: "7",
  "negative number": "-1",
  fraction: "1.5",
  infinity: ".inf",
  "not a number": ".nan",
  "huge number": "99999999999999999999999999",
  hexadecimal: "0x10",
  true: "true",
  false: "false",
  text: '"nothing of that kind"',
  "empty text": '""',
  "long text": `"${"x".repeat(5000)}"`,
  "text with control characters": '"a\\0\\n\\e[31m\\u202e"',
  "lone surrogate": '"\\ud800"',
  date: "2026-01-01",
  alias: "*known",
  "alias without an anchor": "*unknown",
  "alias of itself in a list": "&own [*own]",
  "alias of itself in a map": "&own {a: *own}",
  anchor: "&here x",
  "tag of a string": "!!str 5",
  "tag of an integer": "!!int x",
  "binary tag": "!!binary AAAA",
  "set tag": "!!set {a, b}",
  "ordered map tag": "!!omap [a: 1]",
  "foreign tag": "!secret vault",
  "tag of JavaScript": "!!js/function 'x'",
  "merge key": "{<<: {a: b}}",
  "merge key of an alias": "{<<: *known}",
  "deep list": deep(20),
  "very deep list": deep(300),
  "duplicate keys": "{a: 1, a: 2}",
  "list as a key": "{? [x] : y}",
  "map as a key": "{? {x: y} : z}",
  "number as a key": "{1: 2}",
  "null as a key": "{~: 2}",
  prototype: "{__proto__: {toString: 1}}",
  "methods as keys": "{constructor: 1, toString: {}, valueOf: 2, toJSON: 3, length: 4}",
  "half a list": "[a, ",
  "half a string": '"abc',
};

/** Files that have no value at all, or whose bytes are no text, by what they are. */
export const contents: Readonly<Record<string, Buffer>> = {
  empty: Buffer.alloc(0),
  "a comment": Buffer.from("# nothing\n"),
  "NUL bytes": Buffer.alloc(100),
  "not UTF-8": Buffer.from([0x61, 0x3a, 0x20, 0xff, 0xfe, 0x0a]),
  "UTF-16": Buffer.from("\ufeffapiVersion: watchkeeper.dev/v1alpha2\n", "utf16le"),
  "a byte order mark": Buffer.from("\ufeff"),
  "two documents": Buffer.from("a: 1\n---\nb: 2\n"),
  "a directive": Buffer.from("%YAML 3.0\n---\na: 1\n"),
  "a certificate": Buffer.from("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
  "a line without an end": Buffer.alloc(200_000, "x"),
  "60,000 keys": Buffer.from(Array.from({ length: 60_000 }, (_none, at) => `k${at}: 1\n`).join("")),
  "too large": Buffer.alloc(3_000_000, "# x\n"),
};

/** The paths of all keys of the schema, below maps and in the first entry of lists. */
function keysOf(node: unknown, path: Path): readonly Path[] {
  if (!isRecord(node)) return [];
  const { $ref: reference, properties, items } = node;
  const referred = typeof reference === "string" ? definitions[reference.split("/").at(-1) ?? ""] : undefined;
  const below = isRecord(properties) ? Object.entries(properties) : [];
  return [
    ...keysOf(referred, path),
    ...below.flatMap(([key, value]) => [[...path, key], ...keysOf(value, [...path, key])]),
    ...(isRecord(items) ? [[...path, 0], ...keysOf(items, [...path, 0])] : []),
  ];
}

const definitions: Readonly<Record<string, unknown>> = schema.$defs;

/** A valid configuration, to which each key is added. */
const valid = {
  apiVersion: "watchkeeper.dev/v1alpha2",
  kind: "WatchkeeperConfiguration",
  metadata: { name: "x" },
  listeners: [{ name: "local", address: "127.0.0.1:0" }],
  clusters: [{ name: "c", backends: [{ name: "b", url: "http://127.0.0.1:1" }] }],
};

export const keys: readonly Path[] = [
  ...new Map(keysOf(schema, []).map((path) => [path.join("/"), path])).values(),
];

const mark = "the value that the test replaces";

function placed(value: unknown, [step, ...rest]: Path): unknown {
  if (step === undefined) return mark;
  if (typeof step === "number") {
    const [first, ...others] = Array.isArray(value) ? value : [];
    return [placed(first, rest), ...others];
  }
  const map = isRecord(value) ? value : {};
  return { ...map, [step]: placed(map[step], rest) };
}

/**
 * Returns a configuration in which the value at `path` is `node`. `base`: the configuration that is otherwise valid.
 */
export function configWith(path: Path, node: string, base: object = valid): string {
  const whole = node.includes("*known") ? { known: "here", ...base } : base;
  return JSON.stringify(placed(whole, path), undefined, 2)
    .replace('"known": "here"', '"known": &known [1]')
    .replace(JSON.stringify(mark), () => node);
}

function isYaml(node: string): boolean {
  try {
    parse(`[${node.replace("*known", "x")}]`, { logLevel: "silent" });
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns `count` configurations that are YAML and yet wrong: the nodes that no parser refuses, under each key. Another
 * `first` returns others.
 */
export function badFiles(base: object, count: number, first = 0): readonly string[] {
  const taken = Object.values(nodes).filter(isYaml);
  const all = keys.length * taken.length;
  const found: string[] = [];
  for (let at = first; found.length < count && at < first + all; at += 1) {
    // The prime step takes every key and every kind of node.
    const number = (at * 97) % all;
    const path = keys[Math.floor(number / taken.length)];
    const text = configWith(path ?? [], taken[number % taken.length] ?? "", base);
    if (isProblems(parseConfig(text, "a.yaml"))) found.push(text);
  }
  return found;
}
