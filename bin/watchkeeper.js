#!/usr/bin/env node
// Runs watchkeeper with a Node version that it supports (package.json, "engines"), and with V8's options for it. This
// file is plain JavaScript for Node >= 18, because after `npm i -g` the machine's own Node runs it.
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

// The npm package contains dist and no src. A checkout contains src, and its dist may be from an older build.
const source = new URL("../src/ops/cli/cli.ts", import.meta.url);
const entry = existsSync(source) ? source : new URL("../dist/src/ops/cli/cli.js", import.meta.url);

/**
 * Semi-spaces of 8 MiB are large enough, because nearly all objects of a request are garbage within milliseconds. By
 * default, V8 grows the semi-spaces to 32 MiB while watches open. That would take 2.4 KB more for each of 5,000 watches.
 */
const flags = ["--disable-sigusr1", "--max-semi-space-size=8"];

/**
 * Makes glibc return freed memory to the kernel (mallopt(3)); musl ignores these variables. By default, glibc keeps a heap
 * for each thread, and raises its threshold for mmap after a large allocation was freed. That would keep 20 MiB in an
 * idle proxy, and 60 MiB after an attack.
 */
const allocator = {
  MALLOC_ARENA_MAX: "2",
  MALLOC_TRIM_THRESHOLD_: "1048576",
  MALLOC_MMAP_THRESHOLD_: "65536",
};

/**
 * True if this process can execute Node once more, with `flags`: V8 takes them only when a process starts. False if the
 * user has set the size of the semi-spaces. False also if execve would close a descriptor that this process needs: the
 * channel to its parent, or the sockets that systemd passed, which Node has marked close-on-exec.
 */
function mayBeginAnew() {
  if (process.env.LISTEN_PID !== undefined) return false;
  const given = [...process.execArgv, process.env.NODE_OPTIONS ?? ""];
  return !given.some((word) => word.includes("semi-space-size")) && process.send === undefined && mayExecve();
}

/**
 * Tests in a child process, in about 4 ms, that the Node binary can be executed. AppArmor, Landlock or a binary that was
 * replaced since the start may prevent it. If process.execve fails, Node aborts the process, and no code can catch that.
 */
function mayExecve() {
  return "execve" in process && spawnSync(process.execPath, ["--version"], { stdio: "ignore" }).status === 0;
}

/** The environment with `allocator`. A variable that the user has set keeps its value. */
function environment() {
  return { ...allocator, ...process.env };
}

function isNewEnough(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return (major === 26 && minor >= 12) || major > 26;
}

function pinnedNode() {
  try {
    const name = `node-${process.platform}-${process.arch}/package.json`;
    const path = createRequire(import.meta.url)
      .resolve(name)
      .replace(/package\.json$/, "bin/node");
    return existsSync(path) ? path : undefined;
  } catch {
    return undefined; // no npm package of Node for this platform; the message below says what to do
  }
}

if (!existsSync(entry)) {
  process.stderr.write("This package contains no program: it was packed without `npm run pack`\n");
  process.exit(2);
}
const words = [...flags, fileURLToPath(entry), ...process.argv.slice(2)];
if (isNewEnough(process.versions.node)) {
  // execve keeps the process ID, the parent and the open descriptors.
  if (mayBeginAnew())
    process.execve(process.execPath, [process.execPath, ...process.execArgv, ...words], environment());
  await import(entry.href);
} else {
  const node = pinnedNode();
  if (node === undefined) {
    process.stderr.write(
      `watchkeeper needs Node >= 26.12, this is ${process.version}: install one, or run npm ci\n`,
    );
    process.exit(2);
  }
  // The child inherits the listening sockets that systemd passed to this process (sd_listen_fds(3)), with the same
  // descriptor numbers.
  const passed = process.env.LISTEN_PID === String(process.pid) ? Number(process.env.LISTEN_FDS) || 0 : 0;
  if (passed > 0) {
    delete process.env.LISTEN_PID;
    process.env.WATCHKEEPER_SOCKETS_KEPT = "1"; // as src/upstream/net/descriptors.ts reads it
  }
  const child = spawn(node, words, {
    env: environment(),
    // No message is sent over the IPC channel. The child notices by its end that this process has ended, even by SIGKILL.
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
