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
  // user-agent: kubectl as a literal with and without indexing (RFC 7541 §6.2.1, §6.2.2).
  for (const [block, isOne] of [
    ["7a07 6b75 6265 6374 6c", true],
    ["0f2b 076b 7562 6563 746c", false],
  ] as const)
    assert.is(decode(one, hex(block))[0] === decode(other, hex(block))[0], isOne, block);
});

test("the value counts, not only the name", () => {
  assert.is.not(sharedField(new Field("user-agent", "a")), sharedField(new Field("user-agent", "b")));
});

test("only fields that repeat and are no secrets are shared", () => {
  assert.ok(isShared("user-agent", "kubelet/v1.34"));
  assert.ok(isShared(":authority", "10.0.0.1:6443"));
  for (const name of ["authorization", "cookie", "x-remote-user", "x-api-key", ":path", "date"])
    assert.not(isShared(name, "a"), name);
  assert.not(isShared("user-agent", "kubelet/v1.34", true));
  assert.not(isShared("user-agent", "a".repeat(h2Limits.hpackIndexedBytes)));
});

test("only the fields that were used last are shared, so that clients cannot fill the memory", () => {
  const agent = (count: number): Field => new Field("user-agent", String(count));
  const [first, second] = [agent(0), agent(1)];
  sharedField(first);
  sharedField(second);
  for (let count = 2; count < h2Limits.sharedFields; count += 1) sharedField(agent(count));
  assert.is(sharedField(agent(0)), first, "now the newest");
  sharedField(agent(h2Limits.sharedFields));
  assert.is(sharedField(agent(0)), first);
  assert.is.not(sharedField(agent(1)), second);
});

test.run();
