import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { failed, json } from "../../../src/cli/commands/screen.ts";
import { KeptScreen } from "../../support/api-server.ts";

const test = suite("cli/commands/screen");

test("the reason is printed, and its kind is the exit code", () => {
  const screen = new KeptScreen();
  const codes = (["bad-request", "backend-lost", "bad-file"] as const).map((code) =>
    failed(new Failure(code, "client", code), screen),
  );
  assert.equal(codes, [2, 3, 1]);
  assert.is(screen.complaints, "bad-request\nbackend-lost\nbad-file\n");
});

test("JSON ends in a line break", () => {
  assert.is(json({ a: 1 }), '{\n  "a": 1\n}\n');
});

test.run();
