import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse } from "yaml";
import { Failure } from "../../../../src/base/failure.ts";
import { failed, json } from "../../../../src/ops/cli/commands/screen.ts";
import { yamlTextOf } from "../../../../src/ops/config/yaml-document.ts";
import { KeptScreen } from "../../../support/api-server.ts";

const test = suite("ops/cli/commands/screen");

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

test("JSON and YAML escape what a terminal obeys, in values and in keys, and are read back as they were (A53)", () => {
  const value = {
    items: [{ agent: "a\u009b31mb\u007f\u001b[0m\u202ec\u2028d\u{e0001}", "k\u0085": "✗ (ä) 😀" }],
    lines: `one\ntwo\u009d ${"long ".repeat(40)}`,
  };
  for (const [out, read] of [
    [json(value), (text: string): unknown => JSON.parse(text)],
    [yamlTextOf(value), (text: string): unknown => parse(text)],
  ] as const) {
    assert.not.match(out, /[^\n\P{C}]|[\p{Zl}\p{Zp}]/u);
    assert.equal(read(out), value);
    assert.match(out, "✗ (ä) 😀");
  }
  assert.match(json(value), "a\\u009b31mb\\u007f\\u001b[0m\\u202ec\\u2028d\\udb40\\udc01");
  assert.match(yamlTextOf(value), "\\U000e0001");
  assert.is(yamlTextOf({ a: "b\nc" }), "a: |-\n  b\n  c\n");
});

test.run();
