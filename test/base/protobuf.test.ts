import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  bytesIn,
  entriesIn,
  enveloped,
  messageIn,
  messageOf,
  numberIn,
  textIn,
} from "../../src/base/protobuf.ts";
import { field } from "../support/watch-bytes.ts";

const test = suite("protobuf");

test("numbers, bytes and messages are read by their numbers; of several the last counts", () => {
  const bytes = Buffer.concat([field(1, 300), field(2, "a"), field(2, "b"), field(3, field(4, "c"))]);
  const message = messageOf(bytes);
  assert.equal([numberIn(message, 1), textIn(message, 2)], [300, "b"]);
  assert.is(textIn(messageIn(message, 3), 4), "c");
  assert.equal([numberIn(message, 2), bytesIn(message, 1), textIn(message, 9)], [undefined, undefined, ""]);
});

test("a map's entry is found by its key", () => {
  const pair = (key: string, value: string): Buffer =>
    field(12, Buffer.concat([field(1, key), field(2, value)]));
  const message = messageOf(Buffer.concat([pair("a", "1"), pair("b", "2")]));
  assert.equal([entriesIn(message, 12, "b"), entriesIn(message, 12, "c")], [["2"], []]);
});

test("Kubernetes' envelope is opened, anything else is not", () => {
  const inside = Buffer.concat([Buffer.from("k8s\0"), field(1, "kind"), field(2, field(6, "x"))]);
  assert.is(textIn(enveloped(inside), 6), "x");
  assert.is(enveloped(Buffer.from('{"kind":"Lease"}')), undefined);
  assert.is(enveloped(Buffer.alloc(0)), undefined);
});

test("what is cut anywhere is no message, and throws nothing", () => {
  const bytes = Buffer.concat([field(1, 300), field(2, "abc"), Buffer.from([0x1d, 1, 2, 3, 4])]);
  for (let end = 0; end < bytes.length; end += 1) {
    const message = messageOf(bytes.subarray(0, end));
    assert.ok(message === undefined || message.size <= 2);
  }
  assert.is(messageOf(Buffer.from([0x0f, 1])), undefined, "an unused wire type");
});

test.run();
