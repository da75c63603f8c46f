/**
 * Watch events in JSON and protobuf. However the input is cut into chunks, the decoder must report the same events at
 * the same byte offsets.
 */

import { compareVersions, isVersion, versionBefore } from "../../../src/kube/resource-version.ts";
import { type EventDecoder, isOpaque, needsMore } from "../../../src/watch/codec/event.ts";
import { JsonEvents } from "../../../src/watch/codec/json-events.ts";
import { ProtobufEvents } from "../../../src/watch/codec/protobuf-events.ts";
import { adversarialJson } from "../../support/adversarial-json.ts";
import { seeded } from "../../support/random.ts";
import { field, framed, jsonEvent, protobufEvent, protobufMetadata } from "../../support/watch-bytes.ts";
import { piecesOf, same, type Target } from "../target.ts";

type Told = readonly (readonly [at: number, event: string])[];

/** Checks that a version which the proxy may send to a backend is valid, and that the version before it is lower. */
function check(version: string): void {
  if (version === "") return;
  if (!isVersion(version)) throw new Error(`version ${version}`);
  if (version !== "0" && compareVersions(versionBefore(version), version) >= 0) throw new Error("not before");
}

/** Returns every event with the offset after it, up to the first that cannot be decoded. */
function eventsOf(decoder: EventDecoder, pieces: readonly Buffer[]): Told {
  const told: (readonly [number, string])[] = [];
  let before = 0;
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      const next = decoder.next(piece, at, piece.length);
      if (next === isOpaque) return told;
      if (next === needsMore) break;
      if (next <= at || next > piece.length)
        throw new Error(`${next} is no place between ${at} and ${piece.length}`);
      if (!decoder.isWhole) throw new Error("an event has ended, and is not whole");
      const { type, version, endsInitialEvents, code, reason, oldest, key } = decoder;
      check(version);
      told.push([
        before + next,
        JSON.stringify({ type, version, endsInitialEvents, code, reason, oldest, key }),
      ]);
      at = next;
    }
    before += piece.length;
  }
  return told;
}

const pod = { kind: "Pod", apiVersion: "v1", metadata: { name: "a", namespace: "b", resourceVersion: "17" } };
const mark = { metadata: { resourceVersion: "18", annotations: { "k8s.io/initial-events-end": "true" } } };
const status = { kind: "Status", code: 410, reason: "Expired", message: "too old resource version: 3 (9)" };
const meta = protobufMetadata({ name: "a", namespace: "b", resourceVersion: "17" });
const ended = protobufMetadata({
  resourceVersion: "18",
  annotations: { "k8s.io/initial-events-end": "true" },
});
const random = seeded(1);

const json = [
  Buffer.concat([jsonEvent("ADDED", pod), jsonEvent("DELETED", pod)]),
  Buffer.concat([jsonEvent("BOOKMARK", mark), jsonEvent("ERROR", status)]),
  jsonEvent("MODIFIED", {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata: {},
    rows: [{ object: pod }],
  }),
  ...Array.from({ length: 6 }, () => adversarialJson(random)),
];
const protobuf = [
  Buffer.concat([protobufEvent("ADDED", field(1, meta)), protobufEvent("MODIFIED", field(1, meta))]),
  Buffer.concat([
    protobufEvent("BOOKMARK", field(1, ended)),
    protobufEvent("ERROR", Buffer.concat([field(3, "x"), field(6, 410)])),
  ]),
  framed(Buffer.from("not an event")),
];

export const events: Target = {
  sources: [
    "watch/codec/json-events",
    "watch/codec/json-metadata",
    "watch/codec/protobuf-events",
    "watch/codec/protobuf-metadata",
    "watch/codec/decoded-event",
    "kube/resource-version",
  ],
  seeds: [
    ...json.map((bytes, at) => Buffer.concat([Buffer.from([2 * at]), bytes])),
    ...protobuf.map((bytes, at) => Buffer.concat([Buffer.from([2 * at + 1]), bytes])),
  ],
  words: [
    '{"type":"',
    '","object":{',
    '"metadata":{',
    '"resourceVersion":"1"',
    '"name":"',
    '"namespace":"',
    "BOOKMARK",
    "ERROR",
    "\\u0061",
    "\\",
    "}\n",
    "}}\n",
    '"kind":"Table"',
    '"rows":[',
    "[[[[",
    "k8s\0",
    Buffer.from([0x0a, 0x05]),
    Buffer.from([0x12]),
    Buffer.from([0x32, 0x02]),
    Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f]),
  ],
  run(input) {
    const shape = input[0] ?? 0;
    const bytes = input.subarray(1);
    const decoder = (): EventDecoder =>
      shape % 2 === 0 ? new JsonEvents((shape & 2) !== 0) : new ProtobufEvents((shape & 2) !== 0);
    same("whole and in pieces", eventsOf(decoder(), [bytes]), eventsOf(decoder(), piecesOf(bytes, shape)));
  },
};
