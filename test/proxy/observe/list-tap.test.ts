import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import type { StreamWriter } from "../../../src/h2/core/stream-writer.ts";
import { ListTap } from "../../../src/proxy/observe/list-tap.ts";

const test = suite("proxy/observe/list-tap");

test("a list passes as it is, and its version is told once", () => {
  const said: unknown[] = [];
  const down: StreamWriter = {
    sendHeaders: (fields, end) => void said.push(fields.map(({ value }) => value).join(), end),
    sendData: (bytes, start, end, endStream) =>
      void said.push(bytes.toString("latin1", start, end), endStream),
    reset: (code) => void said.push(code),
    grant: (count) => void said.push(count),
    queuedBytes: 5,
  };
  const told: string[] = [];
  const side = new ListTap(down, (version) => void told.push(version));
  side.sendHeaders([new Field(":status", "103")], false);
  side.sendHeaders([new Field(":status", "200"), new Field("content-type", "application/json")], false);
  const text = '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}';
  side.sendData(Buffer.from(text), 0, 40, false);
  side.sendData(Buffer.from(text), 40, text.length, true);
  side.reset(8);
  side.grant(9);
  assert.equal(said, [
    "103",
    false,
    "200,application/json",
    false,
    text.slice(0, 40),
    false,
    text.slice(40),
    true,
    8,
    9,
  ]);
  assert.equal([told, side.queuedBytes], [["7"], 5]);
});

test.run();
