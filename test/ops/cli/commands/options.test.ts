import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import { type Given, given } from "../../../../src/ops/cli/commands/options.ts";

const test = suite("ops/cli/commands/options");

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
    refusal("get", "watches", "-o", "toml"),
    /--output must be one of table, wide, json, yaml, name, not "toml"/,
  );
  assert.match(refusal("get", "pods"), /"pods": must be one of backends, watches/);
  assert.match(refusal("get", "toString"), /^Invalid argument "toString"/);
  assert.equal(taken("get", "backend", "backend").words, ["backends", "backend"]);
  assert.match(refusal("status", "now"), 'Unexpected argument "now"');
});

test("an unknown option is named in our own words, with the nearest option and the usage line", () => {
  assert.match(
    refusal("status", "--admim=user:secret@host"),
    /^Unknown option "--admim" \(did you mean "--admin"\?\)\nusage: watchkeeper status /,
  );
  for (const [written, nearest] of [
    ["--all-replica", "--all-replicas"],
    ["--Output", "--output"],
    ["-output", undefined],
    ["-admin", "--admin"],
    ["-help", "--help"],
    ["-x", undefined],
    ["--colour", undefined],
    ["--", undefined],
  ] as const) {
    const said = refusal("status", written, "now").split("\n")[0] ?? "";
    if (nearest !== undefined)
      assert.is(said, `Unknown option "${written}" (did you mean "${nearest}"?)`, written);
    else assert.not.match(said, "did you mean", written);
  }
  assert.is(refusal("status", "-x").split("\n")[0], 'Unknown option "-x"');
  assert.is(refusal("status", "--colour").split("\n")[0], 'Unknown option "--colour"');
  assert.is(refusal("version", "--", "--x").split("\n")[0], 'Unexpected argument "--x"');
});

test("an option without its value, and a flag with a value, are refused", () => {
  const first = (...args: Parameters<typeof refusal>): string => refusal(...args).split("\n")[0] ?? "";
  assert.is(first("status", "--admin"), "Missing ADDRESS after --admin");
  assert.is(first("status", "--admin", "--output", "json"), "Missing ADDRESS after --admin");
  assert.is(
    first("get", "watches", "--sort", "-bytes"),
    'Missing COLUMN after --sort (write "--sort=-bytes" for a value that begins with "-")',
  );
  assert.is(first("get", "watches", "--no-headers=yes"), "--no-headers takes no value");
  assert.is(taken("check", "--config", "-").text("config"), "-");
  assert.is(taken("get", "watches", "--sort=-bytes").text("sort"), "-bytes");
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
