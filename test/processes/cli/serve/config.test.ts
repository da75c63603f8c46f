import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { isAbsolute } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parseConfig } from "../../../../src/config/config.ts";
import { isProblems } from "../../../../src/config/problem.ts";

const test = suite("cli/serve/config");

test("what is printed is a valid configuration", () => {
  const printed = execFileSync(process.execPath, ["bin/watchkeeper.js", "config"]).toString();
  assert.not.ok(isProblems(parseConfig(printed, "printed.yaml")));
  assert.match(printed, /^# /m);
  // Users save this output in a folder of their own, under the file name that README uses. So the path of its schema
  // must be absolute, and its commands must name that file.
  const [, schema = ""] = /\$schema=(\S+)/.exec(printed) ?? [];
  assert.ok(isAbsolute(schema) && existsSync(schema), schema);
  assert.not.match(printed, "static.yaml");
  assert.match(printed, "watchkeeper check --config watchkeeper.yaml ");
});

test.run();
