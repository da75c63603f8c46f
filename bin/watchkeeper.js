#!/usr/bin/env node
// Finds a Node that can run watchkeeper and hands over to it. Plain JavaScript that works on Node >= 18, because
// `npm i -g` and a direct call run it with whatever Node the machine has (package.json "engines" names the floor).
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const built = new URL("../dist/cli/cli.js", import.meta.url);
const entry = existsSync(built) ? built : new URL("../src/cli/cli.ts", import.meta.url);

function isNewEnough(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return (major === 24 && minor >= 21) || (major === 26 && minor >= 10) || major > 26;
}

function pinnedNode() {
  try {
    const name = `node-${process.platform}-${process.arch}/package.json`;
    const path = createRequire(import.meta.url).resolve(name).replace(/package\.json$/, "bin/node");
    return existsSync(path) ? path : undefined;
  } catch {
    return undefined; // no pinned Node for this platform: the message below says what to do
  }
}

if (isNewEnough(process.versions.node)) {
  await import(entry.href);
} else {
  const node = pinnedNode();
  if (node === undefined) {
    process.stderr.write(`watchkeeper needs Node >= 24.21, this is ${process.version}: install one, or run npm ci\n`);
    process.exit(2);
  }
  const child = spawn(node, ["--disable-sigusr1", fileURLToPath(entry), ...process.argv.slice(2)], {
    // The channel carries nothing: its end tells the child that this process is gone, even by SIGKILL.
    stdio: ["inherit", "inherit", "inherit", "ipc"],
  });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR2"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => {
    process.exitCode = signal === null ? (code ?? 1) : 1;
  });
}
