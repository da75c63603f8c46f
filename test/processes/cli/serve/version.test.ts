import { execFileSync, spawnSync } from "node:child_process";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("ops/cli/serve/version");

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

test("a proxy does not start if the environment turns off TLS verification, and version still answers", () => {
  const env = { ...process.env, NODE_TLS_REJECT_UNAUTHORIZED: "0" };
  for (const command of ["run", "check"]) {
    const words = ["bin/watchkeeper.js", command, "--config", "config/static.yaml"];
    const { status, stderr } = spawnSync(process.execPath, words, { env, timeout: 20_000 });
    assert.is(status, 2, command);
    assert.match(stderr.toString(), "NODE_TLS_REJECT_UNAUTHORIZED=0 turns off the verification");
  }
  const { status } = spawnSync(process.execPath, ["bin/watchkeeper.js", "version"], { env });
  assert.is(status, 0);
});

test.run();
