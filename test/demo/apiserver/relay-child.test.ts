/**
 * Tests what the relay's process does when its parent is killed: it ends at once and prints nothing, whatever it was
 * doing.
 */
import { spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("demo/apiserver/relay-child");

/**
 * Returns a script that starts a relay process, prints that process's id, and dies `ms` after its first order to the
 * relay. The relay inherits this test's pipes.
 */
function doomed(ms: number): string {
  return `
    import { fork } from "node:child_process";
    const child = fork("demo/apiserver/relay-child.ts", [], {
      execArgv: [], serialization: "advanced", stdio: ["ignore", 2, 2, "ipc"],
    });
    process.stdout.write(child.pid + "\\n");
    child.send({ port: 0, targetPort: 1 });
    setTimeout(() => {
      for (let count = 0; count < 500; count += 1) child.send({ isBlocked: count % 2 === 0 });
      setTimeout(() => process.kill(process.pid, "SIGKILL"), 5);
    }, ${ms});`;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

for (const ms of [1, 150, 1_000])
  test(`a relay ends quietly with its parent, killed ${ms} ms after its first order`, async () => {
    const parent = spawn(process.execPath, ["--input-type=module", "-e", doomed(ms)]);
    const printed = { out: "", err: "" };
    parent.stdout.on("data", (chunk: Buffer) => (printed.out += chunk.toString()));
    parent.stderr.on("data", (chunk: Buffer) => (printed.err += chunk.toString()));
    await new Promise((resolve) => parent.once("exit", resolve));
    const pid = Number(printed.out);
    assert.ok(pid > 0);
    for (let tries = 0; tries < 200 && isAlive(pid); tries += 1) await pause(25);
    const outlived = isAlive(pid);
    if (outlived) process.kill(pid, "SIGKILL");
    assert.not(outlived, "the relay outlived its parent");
    assert.is(printed.err, "");
  });

test.run();
