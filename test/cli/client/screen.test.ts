import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { begun, failed, json } from "../../../src/cli/client/screen.ts";
import { KeptScreen } from "../../support/api-server.ts";

const test = suite("cli/client/screen");

test("a command begins with its options and whom to ask, or with the reason why not", () => {
  const start = begun("get", ["watches", "--admin", "127.0.0.1:9"], new KeptScreen());
  assert.equal(start instanceof Failure ? start.message : [start.client.address, start.options.words], [
    "127.0.0.1:9",
    ["watches"],
  ]);
  const screen = new KeptScreen();
  for (const args of [["pods"], ["watches", "--admin", "unix:/a"]]) {
    const refusal = begun("get", args, screen);
    assert.is(refusal instanceof Failure ? failed(refusal, screen) : 0, 2);
  }
  assert.match(screen.complaints, /"pods"[^]*"unix:\/a"/);
  assert.is(screen.out, "");
});

test("JSON ends in a line break", () => {
  assert.is(json({ a: 1 }), '{\n  "a": 1\n}\n');
});

test.run();
