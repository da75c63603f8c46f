import { execFileSync, spawnSync } from "node:child_process";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("cli/serve/version");

test("the bin answers with its version", () => {
  assert.match(
    execFileSync("bin/watchkeeper.js", ["version"]).toString(),
    /^watchkeeper \d+\.\d+\.\d+ \(node \d+/,
  );
});

test("an unknown command is a usage error on stderr", () => {
  const { status, stderr } = spawnSync(process.execPath, ["bin/watchkeeper.js", "vresion"]);
  assert.is(status, 2);
  assert.match(stderr.toString(), "usage: watchkeeper COMMAND");
});

test.run();
