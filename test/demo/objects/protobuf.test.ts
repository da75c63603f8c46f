import { suite } from "uvu";
import * as assert from "uvu/assert";
import { readProtobuf } from "../../../demo/objects/protobuf.ts";

const test = suite("demo/objects/protobuf");

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
}
/** Encodes one field: a number as a varint, anything else as bytes. */
function field(tag: number, value: number | string | Buffer): Buffer {
  if (typeof value === "number") return Buffer.from([...varint(tag * 8), ...varint(value)]);
  const octets = Buffer.from(value);
  return Buffer.concat([Buffer.from([...varint(tag * 8 + 2), ...varint(octets.length)]), octets]);
}
const message = (...fields: Buffer[]): Buffer => Buffer.concat(fields);
function envelope(apiVersion: string, kind: string, raw: Buffer): Buffer {
  const type = message(field(1, apiVersion), field(2, kind));
  return message(Buffer.from("k8s\0"), field(1, type), field(2, raw), field(3, ""), field(4, ""));
}

test("a ConfigMap as kubectl sends it", () => {
  const metadata = message(
    field(1, "a"),
    field(2, ""),
    field(8, ""),
    field(11, message(field(1, "app"), field(2, "x"))),
    field(14, "one"),
    field(14, "two"),
  );
  const raw = message(
    field(1, metadata),
    field(2, message(field(1, "k"), field(2, "v".repeat(300)))),
    field(2, message(field(1, "empty"), field(2, ""))),
    field(3, message(field(1, "b"), field(2, Buffer.from([255, 0])))),
    field(4, 1),
  );
  assert.equal(readProtobuf(envelope("v1", "ConfigMap", raw)), {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "a", labels: { app: "x" }, finalizers: ["one", "two"] },
    data: { k: "v".repeat(300), empty: "" },
    binaryData: { b: "/wA=" },
    immutable: true,
  });
});

test("a Lease's times are whole microseconds", () => {
  const spec = message(
    field(1, "me"),
    field(2, 15),
    field(4, message(field(1, 1_800_000_000), field(2, 5_000))),
  );
  assert.equal(readProtobuf(envelope("coordination.k8s.io/v1", "Lease", field(2, spec)))?.["spec"], {
    holderIdentity: "me",
    leaseDurationSeconds: 15,
    renewTime: "2027-01-15T08:00:00.000005Z",
  });
});

test("a body cut anywhere, or of another kind, is refused and never misread", () => {
  const whole = envelope("v1", "Namespace", field(1, field(1, "a".repeat(200))));
  const name = (body: Buffer): unknown => {
    const metadata = readProtobuf(body)?.["metadata"];
    return metadata === undefined ? undefined : JSON.stringify(metadata);
  };
  assert.match(String(name(whole)), "a".repeat(200));
  // Does not cut inside the last four bytes, which are two empty fields without information.
  for (let end = 0; end < whole.length - 4; end += 1)
    assert.is(name(whole.subarray(0, end)), undefined, `${end}`);
  assert.is(readProtobuf(envelope("v1", "Pod", Buffer.alloc(0))), undefined);
  assert.is(readProtobuf(envelope("v1", "ConfigMap", Buffer.from([0x0d, 0, 0, 0, 0]))), undefined);
  assert.is(readProtobuf(Buffer.from("{}")), undefined);
});

test.run();
