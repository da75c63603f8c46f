import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { within } from "../support/within.ts";

const test = suite("cli/demo");

test("the story is told with as many events as writes, and ends well", () => {
  const { status, stdout, stderr } = spawnSync("bin/watchkeeper.js", ["demo", "--once", "--port", "0"], {
    timeout: 40_000,
  });
  const said = stdout.toString();
  assert.match(said, /^ {2}watch {3}ADDED {4}configmap\/ticker, version 6, [\d.]+ ms after its write$/m);
  assert.match(said, /^ {2}so far {2}5 writes, 5 events, slowest [\d.]+ ms$/m);
  assert.equal([status, stderr.toString()], [0, ""]);
});

test("it serves until a signal, and then ends by itself", async () => {
  const child = spawn(process.execPath, ["src/cli/cli.ts", "demo", "--port", "0"]);
  let said = "";
  const isServing = new Promise<void>((resolve) => {
    child.stdout.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes("--kubeconfig")) resolve();
    });
  });
  await within(40_000, "the invitation", isServing);
  child.kill("SIGINT");
  const [code] = await within(20_000, "its end", once(child, "exit"));
  assert.is(code, 0);
});

test("a port that is none is a usage error", () => {
  const { status, stderr } = spawnSync("bin/watchkeeper.js", ["demo", "--port", "http"]);
  assert.is(status, 2);
  assert.match(stderr.toString(), "port");
});

test.run();
