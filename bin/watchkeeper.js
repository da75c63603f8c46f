#!/usr/bin/env node
// Finds a Node that can run watchkeeper and hands over to it. Plain JavaScript that works on Node >= 18, because
// `npm i -g` and a direct call run it with whatever Node the machine has (package.json "engines" names the floor).
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

// The package has no src. Where there is one it is what counts: dist may be from an older build there.
const source = new URL("../src/cli/cli.ts", import.meta.url);
const entry = existsSync(source) ? source : new URL("../dist/cli/cli.js", import.meta.url);

/**
 * Nearly all that the path makes is gone within milliseconds, and halves of 8 MiB hold it as well as the 32 MiB to which
 * V8 would let them grow while watches are opened: those are resident for nothing, 2.4 KB for each of 5,000 watches.
 */
const flags = ["--disable-sigusr1", "--max-semi-space-size=8"];

/**
 * glibc keeps what was freed for the next time, in as many heaps as there are threads, and what it had to map once it takes
 * from a heap ever after: 20 MiB that a proxy at rest does not need, and 60 after an attack. See mallopt(3); musl does not look.
 */
const allocator = {
  MALLOC_ARENA_MAX: "2",
  MALLOC_TRIM_THRESHOLD_: "1048576",
  MALLOC_MMAP_THRESHOLD_: "65536",
};

/**
 * Only a process that begins takes such flags. Whoever gave it others has its reasons; a parent's channel would be lost,
 * and so would sockets that systemd passed: Node has marked them to be closed then.
 */
function mayBeginAnew() {
  if (process.env.LISTEN_PID !== undefined) return false;
  const given = [...process.execArgv, process.env.NODE_OPTIONS ?? ""];
  return !given.some((word) => word.includes("semi-space-size")) && process.send === undefined && mayExecve();
}

/**
 * Where execve fails Node ends the process, and that cannot be caught: what AppArmor, Landlock or a binary that was
 * replaced meanwhile would make of it is found out by a child first, which takes some 4 ms.
 */
function mayExecve() {
  return "execve" in process && spawnSync(process.execPath, ["--version"], { stdio: "ignore" }).status === 0;
}

/** Whoever has set something of it has its reasons. */
function environment() {
  return { ...allocator, ...process.env };
}

function isNewEnough(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return (major === 24 && minor >= 21) || (major === 26 && minor >= 10) || major > 26;
}

function pinnedNode() {
  try {
    const name = `node-${process.platform}-${process.arch}/package.json`;
    const path = createRequire(import.meta.url)
      .resolve(name)
      .replace(/package\.json$/, "bin/node");
    return existsSync(path) ? path : undefined;
  } catch {
    return undefined; // no pinned Node for this platform: the message below says what to do
  }
}

const words = [...flags, fileURLToPath(entry), ...process.argv.slice(2)];
if (isNewEnough(process.versions.node)) {
  // The same process, from its beginning: its id, its descriptors and who waits for it stay.
  if (mayBeginAnew())
    process.execve(process.execPath, [process.execPath, ...process.execArgv, ...words], environment());
  await import(entry.href);
} else {
  const node = pinnedNode();
  if (node === undefined) {
    process.stderr.write(
      `watchkeeper needs Node >= 24.21, this is ${process.version}: install one, or run npm ci\n`,
    );
    process.exit(2);
  }
  // Listening sockets that systemd passed to this process (sd_listen_fds(3)) are for the child, at the same places.
  const passed = process.env.LISTEN_PID === String(process.pid) ? Number(process.env.LISTEN_FDS) || 0 : 0;
  if (passed > 0) {
    delete process.env.LISTEN_PID;
    process.env.WATCHKEEPER_SOCKETS_KEPT = "1"; // as src/proxy/net/descriptors.ts reads it
  }
  const child = spawn(node, words, {
    env: environment(),
    // The channel carries nothing: its end tells the child that this process is gone, even by SIGKILL.
    stdio: [
      "inherit",
      "inherit",
      "inherit",
      ...Array.from({ length: passed }, (_, index) => 3 + index),
      "ipc",
    ],
  });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR2"])
    process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => {
    process.exitCode = signal === null ? (code ?? 1) : 1;
  });
}
