import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { within } from "../../../support/within.ts";

const test = suite("ops/cli/serve/demo");

test("the story is told with as many events as writes, and ends well", () => {
  const words = ["demo", "--once", "--port", "0", "--faults", "none"];
  const { status, stdout, stderr } = spawnSync("bin/watchkeeper.js", words, { timeout: 40_000 });
  const said = stdout.toString();
  assert.match(said, /^ {2}watch {3}ADDED {4}configmap\/ticker, version 6, [\d.]+ ms after its write$/m);
  assert.match(said, /^ {2}so far {2}5 writes, 5 events, slowest [\d.]+ ms$/m);
  assert.equal([status, stderr.toString()], [0, ""]);
  assert.not.match(said, "all through what follows");
});

test("it serves until a signal, and then ends by itself", async () => {
  const child = spawn(process.execPath, ["src/ops/cli/cli.ts", "demo", "--port", "0"]);
  let said = "";
  const isServing = new Promise<void>((resolve) => {
    child.stdout.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes("--kubeconfig")) resolve();
    });
  });
  await within(40_000, "the invitation", isServing);
  const [, page = ""] = /admin page +(http:\S+)/.exec(said) ?? [];
  assert.match(await (await fetch(page)).text(), /<title>watchkeeper<\/title>/);
  const backends = (await (await fetch(`${page}api/v1/backends`)).json()) as { items: { state: string }[] };
  assert.equal(
    backends.items.map(({ state }) => state),
    ["ready", "ready"],
  );
  child.kill("SIGINT");
  const [code] = await within(20_000, "its end", once(child, "exit"));
  assert.is(code, 0);
});

test("a signal while it starts leaves no file and no apiserver behind", async () => {
  const directory = mkdtempSync(join(tmpdir(), "demo-signal-"));
  const child = spawn(process.execPath, ["src/ops/cli/cli.ts", "demo", "--port", "0"], {
    env: { ...process.env, TMPDIR: directory },
  });
  const ended = once(child, "exit");
  child.stdout.resume();
  child.stderr.resume();
  // The demo has written its keys, but no server listens yet.
  const hasFiles = async (): Promise<void> => {
    while (readdirSync(directory).length === 0) await new Promise((passed) => setTimeout(passed, 1));
  };
  await within(40_000, "its first file", hasFiles());
  child.kill("SIGTERM");
  const [code, signal] = await within(40_000, "its end", ended);
  assert.equal([code, signal], [0, null]);
  assert.equal(readdirSync(directory), []);
  rmSync(directory, { recursive: true });
});

test("a port or a fault that is none is a usage error", () => {
  for (const [option, value] of [["--port", "http"] as const, ["--faults", "hole,flood"] as const]) {
    const { status, stderr } = spawnSync("bin/watchkeeper.js", ["demo", option, value]);
    assert.is(status, 2);
    assert.match(stderr.toString(), new RegExp(`${option} must be .* not "${value}"`));
  }
});

test.run();
