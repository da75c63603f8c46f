import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { type Given, given } from "../../../src/cli/commands/options.ts";

const test = suite("cli/commands/options");

function taken(name: Parameters<typeof given>[0], ...args: string[]): Given {
  const outcome = given(name, args);
  if (outcome instanceof Failure) throw new Error(outcome.message);
  return outcome;
}

function refusal(name: Parameters<typeof given>[0], ...args: string[]): string {
  const outcome = given(name, args);
  return outcome instanceof Failure ? outcome.message : "taken";
}

test("options and words may be in any order, options long or short", () => {
  const options = taken("get", "-o", "wide", "watches", "--limit=7", "state=hung", "--no-headers");
  assert.equal(options.words, ["watches", "state=hung"]);
  assert.is(options.text("output"), "wide");
  assert.is(options.whole("limit", 100, [1, 500]), 7);
  assert.is(options.whole("offset", 100, [1, 500]), 100);
  assert.ok(options.has("no-headers"));
  assert.not.ok(options.has("limit"));
});

test("unknown options, values and words are refused, with the valid ones", () => {
  assert.match(
    refusal("get", "watches", "-o", "yaml"),
    /--output must be one of table, wide, json, not "yaml"/,
  );
  assert.match(refusal("get", "pods"), /"pods": must be one of backends, watches/);
  assert.match(refusal("status", "now"), 'Unexpected argument "now"');
  assert.throws(() => given("status", ["--colour"]), /--colour/);
  assert.throws(() => given("status", ["--admin"]), /--admin/);
});

test("words that are missing or too many, and options of other words, are refused with the usage line", () => {
  assert.match(refusal("drain"), /^Missing BACKEND\nusage: watchkeeper drain BACKEND /);
  assert.match(refusal("move"), /^Missing AUDIT-ID\n/);
  assert.match(refusal("pki"), /^Missing argument: must be one of init, csr\n/);
  assert.match(refusal("get"), /^Missing KIND: must be one of backends, /);
  assert.match(refusal("tap", "backend.", "watch."), 'Unexpected argument "watch."');
  assert.match(refusal("run"), /^Missing --config FILE\nusage: watchkeeper run --config FILE /);
  assert.match(refusal("pki", "init", "--signer", "x"), "--signer is an option of csr, not of init");
  assert.match(refusal("manifest", "deployment", "--passthrough"), "of static-pod, not of deployment");
  assert.equal(taken("explain").words, []);
});

test("an option may be given several times if the table says so", () => {
  assert.equal(taken("pki", "init", "--host", "a", "--host", "b").all("host"), ["a", "b"]);
  assert.equal(taken("pki", "init").all("host"), []);
});

test("a number is whole and within its bounds", () => {
  for (const text of ["0", "501", "-1", "1.5", "seven", "", "9999999999"]) {
    const outcome = taken("top", `--rows=${text}`).whole("rows", 20, [1, 500]);
    assert.match(outcome instanceof Failure ? outcome.message : "taken", "from 1 to 500", text);
  }
});

test.run();
