import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { h2Limits } from "../../../src/h2/core/limits.ts";
import { HpackDecoder } from "../../../src/h2/hpack/hpack-decoder.ts";
import { sharedField } from "../../../src/h2/hpack/shared-fields.ts";
import { decode, hex } from "../../support/hpack.ts";

const test = suite("h2/hpack/shared-fields");

const isShared = (name: string, value: string, isNeverIndexed = false): boolean =>
  sharedField(new Field(name, value, isNeverIndexed)) === sharedField(new Field(name, value, isNeverIndexed));

test("a field that enters the tables of two sessions is one object, and others are not", () => {
  const [one, other] = [new HpackDecoder(), new HpackDecoder()];
  for (const [block, isOne] of [
    ["400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", true],
    ["000a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", false],
  ] as const)
    assert.is(decode(one, hex(block))[0] === decode(other, hex(block))[0], isOne, block);
});

test("the value counts, not only the name", () => {
  assert.is.not(sharedField(new Field("user-agent", "a")), sharedField(new Field("user-agent", "b")));
});

test("secrets, and fields that do not repeat, are not shared", () => {
  assert.ok(isShared("user-agent", "kubelet/v1.34"));
  assert.not(isShared("authorization", "Bearer a"));
  assert.not(isShared("cookie", "a"));
  assert.not(isShared("x-remote-user", "a"));
  assert.not(isShared("user-agent", "kubelet/v1.34", true));
  assert.not(isShared(":path", "/api"));
  assert.not(isShared("x-long", "a".repeat(h2Limits.hpackIndexedBytes)));
});

test("only the newest fields are shared, so that clients cannot fill the memory", () => {
  const [first, second] = [new Field("x-a", "0"), new Field("x-a", "1")];
  sharedField(first);
  sharedField(second);
  for (let count = 2; count <= h2Limits.sharedFields; count += 1)
    sharedField(new Field("x-a", String(count)));
  assert.is(sharedField(new Field("x-a", "1")), second);
  assert.is.not(sharedField(new Field("x-a", "0")), first);
});

test.run();
