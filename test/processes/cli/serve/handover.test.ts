import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http2 from "node:http2";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { type Entry, Journal } from "../../../../src/events/journal.ts";
import { Handover } from "../../../../src/ops/cli/serve/handover.ts";
import { ServiceState } from "../../../../src/ops/cli/serve/systemd.ts";
import { freePort } from "../../../support/free-port.ts";
import { Load } from "../../../support/load.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/cli/serve/handover");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-handover-"));
const children: ChildProcess[] = [];
const sessions = new Set<http2.ServerHttp2Session>();
const servers: http2.Http2SecureServer[] = [];
const pidFile = join(directory, "pid");
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test.after(() => {
  for (const child of children) child.kill("SIGKILL");
  // A successor process has no parent that would end it. One that a failed test left behind would keep the test's pipes
  // open.
  if (existsSync(pidFile) && isAlive(servingPid())) process.kill(servingPid(), "SIGKILL");
  for (const session of sessions) session.destroy();
  for (const server of servers) server.close();
  rmSync(directory, { recursive: true, force: true });
});

/**
 * Starts a backend that answers GETs, sends a watch event every 200 ms (none on `quiet`), and echoes upgraded
 * connections.
 */
async function startBackend(): Promise<http2.Http2SecureServer> {
  const { serving } = await testPki();
  const server = http2.createSecureServer({ cert: serving.certificate, key: serving.key, allowHTTP1: true });
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {});
  });
  server.on("stream", (stream, headers) => {
    const path = String(headers[":path"]);
    stream.on("error", () => {});
    stream.respond({ ":status": 200, "content-type": "application/json" });
    if (!path.includes("watch")) stream.end("{}\n");
    const event = '{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"7"}}}\n';
    const isBusy = path.includes("watch") && !path.includes("quiet");
    const timer = setInterval(() => isBusy && stream.write(event), 200);
    stream.on("close", () => clearInterval(timer));
  });
  server.on("upgrade", (_request, socket) => {
    socket.on("error", () => {});
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.push(server);
  return server;
}

async function writeConfig(backend: http2.Http2SecureServer, port: number): Promise<string> {
  const { authority, serving } = await testPki();
  writeFileSync(join(directory, "tls.crt"), serving.certificate);
  writeFileSync(join(directory, "tls.key"), serving.key, { mode: 0o600 });
  writeFileSync(join(directory, "ca.crt"), authority.certificate);
  const file = join(directory, "watchkeeper.yaml");
  writeFileSync(
    file,
    `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
listeners: [{name: kube, address: "127.0.0.1:${port}", tls: {certFile: tls.crt, keyFile: tls.key}}]
clusters:
  - name: default
    backends: [{name: a, url: "https://localhost:${(backend.address() as AddressInfo).port}"}]
    tls: {caFile: ca.crt}
admin: {address: "127.0.0.1:0", metricsAddress: "127.0.0.1:0"}
drain: {shutdownDelay: 5s, timeout: 4s}
logging: {format: Text, level: Debug}
`,
  );
  return file;
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}

type Log = {
  readonly child: ChildProcess;
  readonly count: (word: string) => number;
  readonly text: () => string;
};

function start(command: readonly string[]): Log {
  const [program = "", ...args] = command;
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  return { child, text: () => text, count: (word) => text.split(word).length - 1 };
}

async function said({ count, text }: Log, word: string, times = 1): Promise<void> {
  const look = async (): Promise<void> => {
    while (count(word) < times) await pause(20);
  };
  await within(20_000, `${word} in the log`, look()).catch((error: Error) => {
    throw new Error(`${error.message}; log:\n${text().slice(-3000)}`);
  });
}

const servingPid = (): number => Number(readFileSync(pidFile, "utf8"));

/** True if the process exists and is not a zombie. The first process of a container may never reap zombies. */
function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}

/** Returns the address of the JSON API, which the latest process has opened. */
function apiOf({ text }: Log): string {
  const opened = [...text().matchAll(/listener\.opened\W+listener\W+admin\W+address\W+([\d.]+:\d+)/g)];
  return `http://${opened.at(-1)?.[1]}/api/v1`;
}

test("a rolling restart: no refusal, no reset, no relist, and tunnels stay to the drain's end (F17)", () =>
  restartTwice([]));

test("so it is with two workers, whose parents hand over", () => restartTwice(["--workers", "2"]));

async function restartTwice(options: readonly string[]): Promise<void> {
  const backend = await startBackend();
  const { authority } = await testPki();
  const port = await freePort();
  const file = await writeConfig(backend, port);
  const log = start([
    process.execPath,
    "bin/watchkeeper.js",
    "run",
    "--config",
    file,
    "--pid-file",
    pidFile,
    ...options,
  ]);
  await said(log, "upstream_connection.opened", 2);
  await said(log, "listener.opened", 3);
  const load = new Load(`https://localhost:${port}`, authority.certificate);
  load.get(20);
  load.watch(4, 4, "/api/v1/pods?watch=1");
  load.watch(2, 2, "/api/v1/quiet?watch=1");
  await load.tunnel("/api/v1/namespaces/x/pods/y/exec");
  await load.tunnel("/api/v1/namespaces/x/pods/z/exec");
  const limit = { users: ["jane"], rate: "1/s", duration: "1h" };
  const headers = { "content-type": "application/json", "x-watchkeeper-operator": "alice" };
  const body = JSON.stringify(limit);
  assert.is((await fetch(`${apiOf(log)}/limits`, { method: "POST", headers, body })).status, 200);
  const pids = [servingPid()];
  try {
    for (const round of [1, 2]) {
      await pause(700);
      const before = servingPid();
      process.kill(before, "SIGUSR2");
      await said(log, "successor.ready", round);
      await pause(300);
      assert.is.not(servingPid(), before);
      pids.push(servingPid());
      // The previous process keeps its tunnels while it drains.
      if (round === 1) assert.equal([load.felt.cut, isAlive(before)], [0, true]);
      await said(log, "drain.ended", round);
    }
    const limits = (await (await fetch(`${apiOf(log)}/limits`)).json()) as {
      readonly items: readonly object[];
    };
    assert.equal(
      limits.items.map((one) => "allows" in one && one.allows),
      ["user=jane, 1/s"],
    );
    assert.equal(load.faults, []);
    const { answered, rewatched, ...faults } = load.felt;
    assert.equal(faults, { refused: 0, failed: 0, reset: 0, relisted: 0, cut: 2 });
    assert.ok(answered > 100, `${answered} answers`);
    assert.ok(rewatched >= 40, `${rewatched} watches came back`);
    process.stdout.write(`figure: two handovers: ${answered} GETs, ${rewatched} watches again, no fault\n`);
  } finally {
    load.stop();
  }
  const elsewhere = await freePort();
  await writeConfig(backend, elsewhere);
  process.kill(servingPid(), "SIGUSR2");
  await said(log, "successor.ready", 3);
  await said(log, "drain.ended", 3);
  // The socket that was handed over has another address than the new configuration, so the successor closes it.
  assert.equal(await Promise.all([port, elsewhere].map(isListening)), [false, true]);
  const last = servingPid();
  writeFileSync(file, "listeners: [");
  process.kill(last, "SIGUSR2");
  await said(log, "successor.failed");
  assert.is(servingPid(), last);
  assert.ok(isAlive(last));
  process.kill(last, "SIGTERM");
  process.kill(last, "SIGTERM");
  await said(log, "drain.ended", 4);
  const ends = async (): Promise<void> => {
    while (pids.some(isAlive)) await pause(20);
  };
  await within(20_000, "all of them to end", ends());
}

/** Returns a handover whose successor process is a script. */
function played(script: string) {
  const journal = new Journal(wallClock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const command = [process.execPath, "-e", script];
  const handover = new Handover({ clock: wallClock, journal, command });
  let thawed = 0;
  const listening = createServer();
  return {
    handover,
    entries,
    thawed: () => thawed,
    async begin() {
      await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
      const { _handle } = listening as unknown as { readonly _handle: { readonly fd: number } };
      handover.apply(() =>
        Promise.resolve({
          descriptors: new Map([["kube", _handle.fd]]),
          limits: '{"lastId":0,"limits":[]}',
          thaw: () => void (thawed += 1),
        }),
      );
      await within(10_000, "the outcome", handover.begin());
      listening.close();
      process.removeAllListeners("SIGUSR2");
    },
  };
}

test("a successor gets the sockets under their names, and is let go when it is ready", async () => {
  const { handover, entries, thawed, begin } = played(
    `require("node:net").createServer().listen({ fd: 3 }, () => {
      if (process.env.LISTEN_FDNAMES === "kube") process.send("watchkeeper.ready", () => process.disconnect());
    });
    setTimeout(() => process.exit(), 500);`,
  );
  await begin();
  assert.equal(
    entries.map(({ kind }) => kind),
    ["successor.started", "successor.ready"],
  );
  assert.is(await within(20_000, "the end", handover.done), true);
  assert.is(thawed(), 0);
});

test("a successor that ends, or cannot be started, leaves everything as it was", async () => {
  const dying = played("process.exit(3)");
  await dying.begin();
  const failed = dying.entries.at(-1);
  assert.is(failed?.kind === "successor.failed" ? failed.reason : "", "The successor ended with 3");
  assert.is(dying.thawed(), 1);
});

test("without anything to hand over nothing is started", async () => {
  const { handover, entries } = played("");
  await handover.begin();
  assert.equal(entries, []);
  handover.apply(() => Promise.resolve({ descriptors: new Map(), limits: "", thaw() {} }));
  await handover.begin();
  assert.equal(
    entries.map(({ kind }) => kind),
    ["successor.failed"],
  );
  process.removeAllListeners("SIGUSR2");
});

const notify = "systemd-notify";
const canNotify = [notify, "python3"].every((command) => spawnSync(command, ["--version"]).status === 0);
if (!canNotify) process.stdout.write(`skip: messages to systemd need ${notify} and python3\n`);
/** Receives systemd's messages, because Node has no datagram sockets of the Unix domain. */
const receiver = `import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
while True: print(s.recv(4096).decode().replace("\\n", " "), flush=True)`;

(canNotify ? test : test.skip)(
  "systemd is told of the start, a reload, the successor and the stop, in this order",
  async () => {
    const file = await writeConfig(await startBackend(), await freePort());
    const socket = join(directory, "notify");
    const told = start(["python3", "-c", receiver, socket]);
    await said(told, "bound");
    const run = [process.execPath, "bin/watchkeeper.js", "run", "--config", file, "--pid-file", pidFile];
    start(["env", `NOTIFY_SOCKET=${socket}`, ...run]);
    await said(told, "READY=1");
    const first = servingPid();
    process.kill(first, "SIGHUP");
    await said(told, "READY=1", 2);
    process.kill(first, "SIGUSR2");
    await said(told, "READY=1", 3);
    const second = servingPid();
    process.kill(second, "SIGTERM");
    await said(told, "STOPPING=1");
    const messages = told
      .text()
      .split("\n")
      .filter((line) => /=1\b/.test(line) && !line.includes("BARRIER"));
    assert.equal(
      messages.map((line) => line.replace(/MONOTONIC_USEC=\d+/, "MONOTONIC_USEC")),
      [
        `READY=1 MAINPID=${first}`,
        "RELOADING=1 MONOTONIC_USEC",
        "READY=1",
        "RELOADING=1 MONOTONIC_USEC",
        `READY=1 MAINPID=${second}`,
        "STOPPING=1",
      ],
    );
    process.kill(second, "SIGTERM");
  },
);

test("without NOTIFY_SOCKET no command runs, and a command that is missing costs a line in the log", async () => {
  const journal = new Journal(wallClock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const path = process.env["PATH"];
  process.env["PATH"] = "/nonexistent";
  for (const environment of [{}, { NOTIFY_SOCKET: "/nonexistent" }]) {
    const service = new ServiceState(journal, environment);
    service.ready();
    service.stopping(true);
  }
  const written = async (): Promise<void> => {
    while (entries.length === 0) await pause(10);
  };
  await within(5_000, "the entry", written());
  process.env["PATH"] = path;
  assert.is(entries.length, 1);
  assert.match(JSON.stringify(entries), "Cannot tell systemd READY=1");
});

const hasSystemd = spawnSync("systemd-socket-activate", ["--version"]).status === 0;
if (!hasSystemd) process.stdout.write("skip: socket activation needs systemd-socket-activate\n");

(hasSystemd ? test : test.skip)("systemd's socket is used, whatever has waited in it", async () => {
  const backend = await startBackend();
  const { authority } = await testPki();
  const port = await freePort();
  const file = await writeConfig(backend, port);
  const own = [process.execPath, "bin/watchkeeper.js", "run", "--config", file];
  const log = start(["systemd-socket-activate", "-l", `127.0.0.1:${port}`, "--fdname=kube", ...own]);
  await said(log, "Listening on");
  // The first connection starts the process, and waits in the socket's accept queue until a backend is ready.
  const session = http2.connect(`https://localhost:${port}`, { ca: authority.certificate });
  const stream = session.request({ ":path": "/api" });
  const chunks: Buffer[] = [];
  const read = async (): Promise<void> => {
    for await (const chunk of stream) chunks.push(chunk as Buffer);
  };
  await within(15_000, "an answer", read());
  assert.is(Buffer.concat(chunks).toString(), "{}\n");
  session.close();
  log.child.kill("SIGTERM");
  log.child.kill("SIGTERM");
});

test.run();
