import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type EventDecoder, needsMore, type WatchEvent } from "../../../src/watch/codec/event.ts";
import { JsonEvents } from "../../../src/watch/codec/json-events.ts";
import { ProtobufEvents } from "../../../src/watch/codec/protobuf-events.ts";
import {
  everyCut,
  field,
  jsonEvent,
  protobufEvent,
  protobufMetadata,
  relayed,
} from "../../support/watch-bytes.ts";

const test = suite("watch/codec/event");

const message = "too old resource version: 5 (12)";
const status = { kind: "Status", metadata: {}, code: 410, reason: "Expired", message };
const end = { "k8s.io/initial-events-end": "true" };
const metas = [
  { name: "a", namespace: "b", resourceVersion: "12" },
  { name: "c", namespace: "", resourceVersion: "4099999999" },
  { name: "", resourceVersion: "18446744073709551615", annotations: end },
  { name: "a", namespace: "b", resourceVersion: "0" },
];
const types = ["ADDED", "DELETED", "BOOKMARK", "MODIFIED"];

const jsonStream = Buffer.concat([
  ...metas.map((metadata, index) => jsonEvent(types[index] ?? "", { kind: "Pod", metadata })),
  jsonEvent("ERROR", { ...status, metadata: { resourceVersion: "5" } }),
]);
const protobufStream = Buffer.concat([
  ...metas.map((meta, index) => protobufEvent(types[index] ?? "", field(1, protobufMetadata(meta)))),
  // The metadata of a Status is a ListMeta, whose resourceVersion is field 2. Field 6, the resourceVersion of an
  // ObjectMeta, must be ignored here.
  protobufEvent(
    "ERROR",
    Buffer.concat([field(1, field(6, "5")), field(3, message), field(4, "Expired"), field(6, 410)]),
  ),
]);

const none = { endsInitialEvents: false, code: 0, reason: "", oldest: "" };
const expected: WatchEvent[] = [
  { ...none, type: "ADDED", version: "12", key: "b/a" },
  { ...none, type: "DELETED", version: "4099999999", key: "/c" },
  { ...none, type: "BOOKMARK", version: "18446744073709551615", endsInitialEvents: true, key: "" },
  { ...none, type: "MODIFIED", version: "", key: "b/a" },
  { ...none, type: "ERROR", version: "", code: 410, reason: "Expired", oldest: "12", key: "" },
];

const decoders: [string, Buffer, (keepsKeys: boolean) => EventDecoder][] = [
  ["JSON", jsonStream, (keepsKeys) => new JsonEvents(keepsKeys)],
  ["protobuf", protobufStream, (keepsKeys) => new ProtobufEvents(keepsKeys)],
];

for (const [form, stream, decoder] of decoders) {
  test(`${form}: the decoder finds each event with its type and version, wherever the bytes are split (row 8)`, () => {
    for (const chunks of everyCut(stream)) assert.equal(relayed(decoder(true), chunks).events, expected);
  });

  test(`${form}: a decoder that was not asked for keys has none`, () => {
    for (const event of relayed(decoder(false), [stream]).events) assert.is(event.key, "");
  });

  test(`${form}: a run of events goes on in one piece, and one among them can be dropped`, () => {
    const events = decoder(false);
    const runs: [number, number][] = [];
    let runStart = 0;
    let at = 0;
    while (at < stream.length) {
      const behind = events.next(stream, at, stream.length);
      if (events.type === "BOOKMARK") {
        runs.push([runStart, at]);
        runStart = behind;
      }
      at = behind;
    }
    runs.push([runStart, at]);
    const rest = Buffer.concat(runs.map(([from, to]) => stream.subarray(from, to)));
    assert.equal(
      relayed(decoder(true), [rest]).events,
      expected.filter((event) => event.type !== "BOOKMARK"),
    );
  });

  test(`${form}: an event can be read until the next one is begun`, () => {
    const events = decoder(true);
    const behind = events.next(stream, 0, stream.length);
    const { version, key } = events;
    assert.is(`${version} ${key}`, `${events.version} ${events.key}`);
    assert.is(events.events, 1);
    assert.is(events.next(stream, behind, behind + 9), needsMore);
    assert.is(events.events, 1);
  });
}

/** Forty events of all types. Their annotations have up to nine different lengths. */
const forty = Array.from({ length: 40 }, (_, index) => {
  const type = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"][index % 4] ?? "";
  const annotations = { note: '"}}\n\\'.repeat(index % 9) };
  const meta = { name: `web-${index}`, namespace: "default", resourceVersion: `${index + 95}`, annotations };
  return {
    json: jsonEvent(type, { metadata: meta }),
    protobuf: protobufEvent(type, field(1, protobufMetadata(meta))),
  };
});

for (const [form, , decoder] of decoders) {
  test(`${form}: if a backend dies at any byte of 40 events, only whole events are forwarded, and the next backend sends the rest (row 6)`, () => {
    const events = forty.map(({ json, protobuf }) => (form === "JSON" ? json : protobuf));
    const stream = Buffer.concat(events);
    for (let length = 0; length <= stream.length; length++) {
      const before = relayed(decoder(false), [stream.subarray(0, length)]);
      const { version = "" } = before.events.at(-1) ?? {};
      // A resume after that version makes another backend send the events that follow it.
      const next = version === "" ? 0 : Number(version) - 94;
      const after = relayed(decoder(false), [Buffer.concat(events.slice(next))]);
      assert.is(
        Buffer.compare(Buffer.concat([before.forwarded, after.forwarded]), stream),
        0,
        `cut at ${length}`,
      );
      assert.is(before.events.length, next);
    }
  });
}

test.run();
