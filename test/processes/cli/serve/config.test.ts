import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parseConfig } from "../../../../src/ops/config/config.ts";
import { isProblems } from "../../../../src/ops/config/problem.ts";

const test = suite("ops/cli/serve/config");

test("what is printed is a valid configuration", () => {
  const printed = execFileSync(process.execPath, ["bin/watchkeeper.js", "config"]).toString();
  assert.not.ok(isProblems(parseConfig(printed, "printed.yaml")));
  assert.match(printed, /^# /m);
  // Users save this output in a folder of their own, under the file name that README uses. So its schema is beside it,
  // and its commands name that file.
  const [, schema = ""] = /\$schema=\.\/(\S+)/.exec(printed) ?? [];
  assert.match(printed, `watchkeeper config --schema > ${schema} `);
  const args = ["bin/watchkeeper.js", "config", "--schema"];
  assert.is(execFileSync(process.execPath, args).toString(), readFileSync(`config/schema/${schema}`, "utf8"));
  assert.not.match(printed, "static.yaml");
  assert.match(printed, "watchkeeper check --config watchkeeper.yaml ");
});

test.run();
