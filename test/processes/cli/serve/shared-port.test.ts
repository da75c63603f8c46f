/** Two processes of one configuration share one port (`reusePort`). Another process waits until its files exist. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { freePort } from "../../../support/free-port.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/cli/serve/shared-port");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-shared-"));
const config = join(directory, "watchkeeper.yaml");
const children: ChildProcess[] = [];
const sessions = new Set<http2.ServerHttp2Session>();
const ports = { listener: 0, backend: 0, metrics: 0, second: 0 };
let backend: http2.Http2SecureServer | undefined;

test.before(async () => {
  for (const name of ["listener", "backend", "metrics", "second"] as const) ports[name] = await freePort();
  writeFileSync(join(directory, "ca.crt"), (await testPki()).authority.certificate);
  writeConfig(config, "reusePort: true");
});

test.after(() => {
  for (const child of children) child.kill("SIGKILL");
  for (const session of sessions) session.destroy();
  backend?.close();
  rmSync(directory, { recursive: true, force: true });
});

function writeConfig(file: string, listener: string): void {
  writeFileSync(
    file,
    `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
listeners: [{name: kube, address: "127.0.0.1:${ports.listener}", ${listener}}]
clusters:
  - name: default
    backends: [{name: a, url: "https://localhost:${ports.backend}"}]
    tls: {caFile: ca.crt}
admin: {address: "127.0.0.1:0", metricsAddress: "127.0.0.1:${ports.metrics}"}
drain: {shutdownDelay: 300ms, timeout: 1s}
`,
  );
}

async function startBackend(): Promise<void> {
  const { serving } = await testPki();
  const pair = { cert: serving.certificate, key: serving.key, allowHTTP1: true };
  backend = http2.createSecureServer(pair, (_request, response) => void response.end("{}\n"));
  backend.on("session", (session) => sessions.add(session));
  backend.listen(ports.backend, "127.0.0.1");
  await once(backend, "listening");
}

type Run = { readonly child: ChildProcess; readonly text: () => string };

function run(...args: readonly string[]): Run {
  const child = spawn(process.execPath, ["bin/watchkeeper.js", "run", "--config", ...args]);
  children.push(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  return { child, text: () => text };
}

async function says({ text }: Run, word: string): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!text().includes(word)) {
    if (Date.now() > deadline) throw new Error(`Waited 20 s for ${word}: ${text()}`);
    await sleep(20);
  }
}

const opened = '"listener":"kube"';

async function ends({ child }: Run): Promise<number | null> {
  if (child.exitCode === null) await within(30_000, "the exit", once(child, "exit"));
  return child.exitCode;
}

/** Returns the status of one request on a new connection, or the error code of the connection or stream. */
async function get(): Promise<string> {
  const session = http2.connect(`http://127.0.0.1:${ports.listener}`);
  const stream = session.request({ ":path": "/api" });
  const outcome = new Promise<string>((resolve) => {
    const fail = ({ code = "error" }: NodeJS.ErrnoException): void => resolve(code);
    session.on("error", fail);
    stream.on("response", (head) => resolve(String(head[":status"])));
    // The session's error, which names the cause, arrives after the stream's error.
    stream.on("error", (error) => setImmediate(fail, error));
    stream.on("close", () => setImmediate(resolve, "closed"));
  });
  const text = await within(10_000, "an outcome", outcome);
  session.destroy();
  return text;
}

test("on a shared port, a process accepts clients when a backend is ready", async () => {
  const first = run(config);
  await says(first, '"to":"dead"');
  assert.is(await get(), "ECONNREFUSED");
  first.child.kill("SIGKILL");
  await ends(first);
  await startBackend();
  const second = run(config);
  await says(second, opened);
  assert.is(await get(), "200");
  second.child.kill("SIGKILL");
  await ends(second);
});

test("each of two processes on a shared port is replaced, and no connection is refused", async () => {
  let serving = run(config);
  await says(serving, opened);
  const outcomes = new Map<string, number>();
  const over = new AbortController();
  const ask = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const outcome = await get();
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      await sleep(10);
    }
  };
  const asking = Promise.all(Array.from({ length: 4 }, ask));
  for (const address of [ports.second, ports.metrics, ports.second]) {
    const next = run(config, "--metrics-address", `127.0.0.1:${address}`);
    await says(next, opened);
    assert.is((await fetch(`http://127.0.0.1:${address}/readyz`)).status, 200);
    serving.child.kill("SIGTERM");
    assert.is(await ends(serving), 0);
    serving = next;
  }
  over.abort();
  await asking;
  const { 200: answered = 0, ...others } = Object.fromEntries(outcomes);
  assert.ok(answered > 50, `${answered} answers`);
  // Two other outcomes are possible, and a client may safely repeat the request after both. Without
  // net.ipv4.tcp_migrate_req, the kernel resets connections in the accept queue of a process that exits. A GOAWAY can
  // also cross with the request of a new connection.
  assert.is(others["ECONNREFUSED"], undefined);
  serving.child.kill("SIGKILL");
  await ends(serving);
});

test("--metrics-address stays in effect when the configuration is reloaded", async () => {
  const process = run(config, "--metrics-address", `127.0.0.1:${ports.second}`);
  await says(process, opened);
  writeConfig(config, "reusePort: true, maxConnectionsPerSource: 500");
  process.child.kill("SIGHUP");
  await says(process, "config.reloaded");
  const metrics = await fetch(`http://127.0.0.1:${ports.second}/metrics`).then((answer) => answer.text());
  assert.match(metrics, "watchkeeper_config_last_reload_successful 1");
  assert.not.match(metrics, /^watchkeeper_config_restart_required\{.*admin.*1$/m);
  process.child.kill("SIGKILL");
  await ends(process);
});

test("a process waits for the files that it is told to expect, and names those that are missing", async () => {
  const file = join(directory, "late.yaml");
  const ca = join(directory, "late-ca.crt");
  const waiting = run(file, "--wait-for-files", "30s");
  await says(waiting, `do not exist yet: ${file}\n`);
  writeConfig(`${file}.new`, `reusePort: true, tls: {certFile: late-ca.crt, keyFile: late.key}`);
  renameSync(`${file}.new`, file);
  await says(waiting, `do not exist yet: ${ca}, ${join(directory, "late.key")}\n`);
  writeFileSync(ca, "");
  await says(waiting, `do not exist yet: ${join(directory, "late.key")}\n`);
  waiting.child.kill("SIGTERM");
  assert.is(await ends(waiting), 0);
});

test("after the given time it ends like a process that was not told to wait, with exit code 2", async () => {
  const waited = run(join(directory, "never.yaml"), "--wait-for-files", "1500ms");
  assert.is(await ends(waited), 2);
  assert.match(waited.text(), "Waiting up to 2 s");
  assert.match(waited.text(), /never\.yaml.*does not exist/);
  const wrong = run(config, "--wait-for-files", "ten minutes");
  assert.is(await ends(wrong), 2);
  assert.match(wrong.text(), 'must be a duration such as 10m, not "ten minutes"');
  const nowhere = run(config, "--metrics-address", "somewhere");
  assert.is(await ends(nowhere), 2);
  assert.match(nowhere.text(), "must be an address");
});

test.run();
