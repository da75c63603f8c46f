import { execFileSync } from "node:child_process";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parseConfig } from "../../../src/config.ts";
import { isProblems } from "../../../src/problem.ts";

const test = suite("cli/config");

test("what is printed is a valid configuration", () => {
  const printed = execFileSync(process.execPath, ["bin/watchkeeper.js", "config"]).toString();
  assert.not.ok(isProblems(parseConfig(printed, "printed.yaml")));
  assert.match(printed, /^# /m);
});

test.run();
