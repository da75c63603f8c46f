/**
 * Decodes misleading events that are cut at random, and compares the results with JSON.parse and a full protobuf
 * decoder. They must be equal (watch.md §11, rows 7 and 8). A million events of each kind take two minutes:
 *
 * EXTRACTION_EVENTS=1000000 EXTRACTION_SEED=1 node test/watch/codec/extraction.test.ts
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { oldestIn } from "../../../src/kube/resource-version.ts";
import type { EventDecoder, WatchEvent } from "../../../src/watch/codec/event.ts";
import { JsonEvents } from "../../../src/watch/codec/json-events.ts";
import { ProtobufEvents } from "../../../src/watch/codec/protobuf-events.ts";
import { adversarialJson } from "../../support/adversarial-json.ts";
import { adversarialProtobuf, fieldsOf } from "../../support/adversarial-protobuf.ts";
import { figure } from "../../support/figure.ts";
import { type Random, seeded } from "../../support/random.ts";
import { relayed } from "../../support/watch-bytes.ts";

const test = suite("watch/codec/extraction");

const seed = Number(process.env["EXTRACTION_SEED"] ?? 20_261_120);
const count = Number(process.env["EXTRACTION_EVENTS"] ?? 10_000);

const marker = "k8s.io/initial-events-end";

type Json = Readonly<Record<string, unknown>>;

function record(parent: unknown, key: string): Json | undefined {
  const isParent = typeof parent === "object" && parent !== null && !Array.isArray(parent);
  const value: unknown = isParent ? (parent as Json)[key] : undefined;
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
}

function string(parent: Json | undefined, key: string): string {
  const value = parent?.[key];
  return typeof value === "string" ? value : "";
}

function judged(type: string, version: string): string {
  return type !== "ERROR" && /^[1-9][0-9]{0,19}$/.test(version) ? version : "";
}

/**
 * True if the text can be the name of a stored object. The decoders must tell other names apart, too, but may spell
 * them differently.
 */
const isName = (text: string): boolean => /^[a-z0-9-]*$/.test(text);

function fromJson(line: Buffer): WatchEvent {
  const { type, object } = JSON.parse(line.toString()) as { type: WatchEvent["type"]; object: Json };
  const isTable = object["kind"] === "Table" && object["apiVersion"] === "meta.k8s.io/v1";
  const rows: unknown[] = isTable && Array.isArray(object["rows"]) ? object["rows"] : [];
  const shown = record(record(rows[0], "object"), "metadata") ?? record(object, "metadata");
  const name = string(shown, "name");
  const code = object["code"];
  return {
    type,
    version: judged(type, string(record(object, "metadata"), "resourceVersion")),
    endsInitialEvents: type === "BOOKMARK" && string(record(shown, "annotations"), marker) === "true",
    code: type === "ERROR" && typeof code === "number" ? code : 0,
    reason: type === "ERROR" ? string(object, "reason") : "",
    oldest: type === "ERROR" ? oldestIn(string(object, "message")) : "",
    key: name === "" ? "" : `${string(shown, "namespace")}/${name}`,
  };
}

function fromProtobuf(frame: Buffer): WatchEvent {
  const event = fieldsOf(frame.toString("latin1", 4));
  const last = (message: string, number: number): string =>
    String(fieldsOf(message).get(number)?.at(-1) ?? "");
  const type = String(event.get(1)?.at(-1)) as WatchEvent["type"];
  const object = last(last(String(event.get(2)?.at(-1)), 1).slice(4), 2);
  const meta = last(object, 1);
  const marks = fieldsOf(meta).get(12)?.map(String) ?? [];
  const name = last(meta, 1);
  return {
    type,
    version: judged(type, last(meta, 6)),
    endsInitialEvents:
      type === "BOOKMARK" && marks.some((mark) => last(mark, 1) === marker && last(mark, 2) === "true"),
    code: type === "ERROR" ? Number(last(object, 6)) : 0,
    reason: type === "ERROR" ? Buffer.from(last(object, 4), "latin1").toString() : "",
    oldest: type === "ERROR" ? oldestIn(last(object, 3)) : "",
    key: name === "" ? "" : `${last(meta, 3)}/${name}`,
  };
}

/**
 * Cuts a stream into pieces of random sizes up to a limit, which is drawn for each stream. With a limit of 1, as in one
 * of ten streams, it arrives byte by byte.
 */
function cutAtRandom(random: Random, bytes: Buffer): Buffer[] {
  const most = random.pick([1, 8, 60, 60, 400, 400, 4096, 4096, 20_000, bytes.length]);
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + random.below(most);
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

function said(event: WatchEvent, hasKey: boolean): string {
  const { type, version, endsInitialEvents, code, reason, oldest, key } = event;
  return JSON.stringify([type, version, endsInitialEvents, code, reason, oldest, hasKey ? key : ""]);
}

type Form = {
  readonly make: (random: Random) => Buffer;
  readonly read: (event: Buffer) => WatchEvent;
  readonly decoder: (keepsKeys: boolean) => EventDecoder;
};

/** Compares the events of one stream. Returns their number and their size in bytes. */
function compare(form: Form, random: Random): [events: number, bytes: number] {
  const made = Array.from({ length: 1 + random.below(20) }, () => form.make(random));
  const stream = Buffer.concat(made);
  const keepsKeys = random.chance(0.5);
  const { forwarded, events, isOpaque } = relayed(form.decoder(keepsKeys), cutAtRandom(random, stream));
  assert.is(isOpaque, false, `given up: ${stream.toString("latin1")}`);
  assert.is(Buffer.compare(forwarded, stream), 0, "every byte, and none other");
  assert.is(events.length, made.length);
  for (const [index, bytes] of made.entries()) {
    const expected = form.read(bytes);
    const hasKey = keepsKeys && expected.key.split("/").every(isName);
    const actual = events[index];
    assert.is(actual && said(actual, hasKey), said(expected, hasKey), bytes.toString("latin1"));
    if (!keepsKeys) assert.is(actual?.key, "");
  }
  return [made.length, stream.length];
}

const forms: Record<string, Form> = {
  JSON: { make: adversarialJson, read: fromJson, decoder: (keepsKeys) => new JsonEvents(keepsKeys) },
  protobuf: {
    make: adversarialProtobuf,
    read: fromProtobuf,
    decoder: (keepsKeys) => new ProtobufEvents(keepsKeys),
  },
};

for (const [name, form] of Object.entries(forms)) {
  test(`${name}: the decoder reads the same type and version from an event as a full parser (row 7)`, () => {
    const random = seeded(seed);
    let [events, bytes] = [0, 0];
    while (events < count) {
      const [moreEvents, moreBytes] = compare(form, random);
      events += moreEvents;
      bytes += moreBytes;
    }
    figure(`${events} adversarial ${name} events, ${Math.round(bytes / events)} bytes each: 0 differences`);
  });
}

test.run();
