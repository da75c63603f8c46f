/** Configurations of every kind reach a process at its start and while it runs, which keeps serving. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http2 from "node:http2";
import type net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { badFiles, configWith, contents } from "../support/bad-configs.ts";
import { command, endCommands } from "../support/command.ts";
import { testPki } from "../support/pki.ts";

const test = suite("bad-configs");

/** A backend that answers each GET, and never ends the response to a followed log. */
async function startBackend(): Promise<{ readonly port: number; readonly tick: () => void; stop(): void }> {
  const open = new Set<http2.ServerHttp2Stream>();
  const server = http2.createServer();
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    stream.respond({ ":status": 200, "content-type": "text/plain" });
    if (headers[":path"]?.includes("/log?follow=true")) {
      open.add(stream);
      stream.write("begin\n");
    } else {
      stream.end("ok");
    }
  });
  server.on("session", (session) => session.on("error", () => {}));
  server.listen(0, "127.0.0.1").unref();
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  return { port, tick: () => open.forEach((stream) => stream.write("tick\n")), stop: () => server.close() };
}

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-control-side-"));
test.after(() => {
  endCommands();
  rmSync(directory, { recursive: true });
});

test("a running proxy keeps serving through 240 bad files, of which none is a syntax error, and takes the next good one", async () => {
  const backend = await startBackend();
  const base = {
    apiVersion: "watchkeeper.dev/v1alpha2",
    kind: "WatchkeeperConfiguration",
    listeners: [{ name: "local", address: "127.0.0.1:0" }],
    clusters: [{ name: "c", backends: [{ name: "b", url: `http://127.0.0.1:${backend.port}` }] }],
    admin: { address: "127.0.0.1:0", metricsAddress: "127.0.0.1:0" },
  };
  const file = join(directory, "watchkeeper.yaml");
  writeFileSync(file, JSON.stringify(base));
  const proxy = command(["run", "--config", file]);
  const addressOf = async (listener: string): Promise<string> =>
    (JSON.parse(await proxy.said(`"listener":"${listener}"`)) as { address: string }).address;
  const [local, api, metrics] = [
    await addressOf("local"),
    await addressOf("admin"),
    await addressOf("metrics"),
  ];
  const stream = await fetch(`http://${local}/api/v1/namespaces/x/pods/x/log?follow=true`);
  const reader = stream.body?.getReader();
  assert.ok(reader !== undefined);
  await reader.read();
  const bad = badFiles(base, 240);
  let refused = 0;
  for (const [at, text] of bad.entries()) {
    writeFileSync(file, text);
    if (at % 10 === 0) proxy.child.kill("SIGHUP");
    // The poll reads the file, too, whenever it has been the same for a second.
    if (at % 60 === 0) await pause(2500);
    const headers = { "content-type": "application/json", "x-watchkeeper-operator": "test" };
    const answer = await fetch(`http://${api}/api/v1/reload`, { method: "POST", headers, body: "{}" });
    const said = await answer.text();
    assert.is(answer.status, 422, text);
    assert.match(said, /watchkeeper\.yaml:\d+:\d+: /);
    refused += 1;
    assert.is((await fetch(`http://${local}/api`)).status, 200);
  }
  backend.tick();
  assert.match(new TextDecoder().decode((await reader.read()).value), "tick");
  assert.match(
    await (await fetch(`http://${metrics}/metrics`)).text(),
    "watchkeeper_config_last_reload_successful 0",
  );
  writeFileSync(file, JSON.stringify({ ...base, logging: { accessLog: "All" } }));
  proxy.child.kill("SIGHUP");
  await proxy.said('"config.reloaded"');
  assert.is((await fetch(`http://${local}/api`)).status, 200);
  await reader.cancel();
  process.stdout.write(
    `\n    figure: ${refused} bad files, ${proxy.text().split("config.refused").length - 1} refusals\n`,
  );
  assert.is(bad.length, 240);
  assert.not.match(proxy.text(), /internal\.error|drain\.started| {4}at /);
  proxy.child.kill("SIGTERM");
  assert.is(await proxy.ended, 0);
  backend.stop();
});

test("at the start, a listener whose certificate is unusable is named, and the other listeners serve", async () => {
  const backend = await startBackend();
  const file = join(directory, "certificate.yaml");
  writeFileSync(join(directory, "broken.crt"), "no certificate");
  const tls = { certFile: "broken.crt", keyFile: "absent.key" };
  const good = { name: "good", address: "127.0.0.1:0" };
  const bad = { name: "bad", address: "127.0.0.1:0", tls };
  const config = {
    apiVersion: "watchkeeper.dev/v1alpha2",
    kind: "WatchkeeperConfiguration",
    clusters: [{ name: "c", backends: [{ name: "b", url: `http://127.0.0.1:${backend.port}` }] }],
    admin: { address: "127.0.0.1:0", metricsAddress: "127.0.0.1:0" },
    drain: { shutdownDelay: "0s", timeout: "1s" },
  };
  writeFileSync(file, JSON.stringify({ ...config, listeners: [bad, good] }));
  const proxy = command(["run", "--config", file]);
  assert.match(await proxy.said("certificate.refused"), '"name":"bad"');
  const { address } = JSON.parse(await proxy.said('"listener":"good"')) as { address: string };
  assert.is((await fetch(`http://${address}/api`)).status, 200);
  proxy.child.kill("SIGTERM");
  assert.is(await proxy.ended, 0);
  assert.is(told("check", "--offline", "--config", file).status, 1, "`check` fails");
  writeFileSync(file, JSON.stringify({ ...config, listeners: [bad] }));
  assert.match(told("run", "--config", file).text, /listener bad: Cannot use /, "nothing can be served");
  backend.stop();
});

test("at the start, a listener whose client CA cannot be read is named, and the other listeners serve", async () => {
  const backend = await startBackend();
  const { authority, serving } = await testPki();
  const own = authority.issue({ name: "front-proxy-client", usage: "client" });
  const files = {
    "own.crt": own.certificate,
    "own.key": own.key,
    "s.crt": serving.certificate,
    "s.key": serving.key,
    "ca.crt": authority.certificate,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  writeFileSync(join(directory, "text.crt"), "no certificate");
  mkdirSync(join(directory, "directory.crt"));
  const pair = { certFile: "s.crt", keyFile: "s.key" };
  const cluster = {
    name: "c",
    backends: [{ name: "b", url: `http://127.0.0.1:${backend.port}` }],
    tls: { caFile: "ca.crt", frontProxy: { certFile: "own.crt", keyFile: "own.key" } },
  };
  const listener = (name: string, tls?: object): object =>
    tls === undefined
      ? { name, address: "127.0.0.1:0" }
      : { name, address: "127.0.0.1:0", tls, identity: { clientCerts: "FrontProxy" } };
  const file = join(directory, "client-ca.yaml");
  for (const clientCAFile of ["absent.crt", "directory.crt", "text.crt"]) {
    const config = {
      apiVersion: "watchkeeper.dev/v1alpha2",
      kind: "WatchkeeperConfiguration",
      clusters: [cluster],
      admin: { address: "127.0.0.1:0", metricsAddress: "127.0.0.1:0" },
      drain: { shutdownDelay: "0s", timeout: "1s" },
      listeners: [listener("bad", { ...pair, clientCAFile }), listener("good")],
    };
    writeFileSync(file, JSON.stringify(config));
    const proxy = command(["run", "--config", file]);
    // oxlint-disable-next-line no-await-in-loop
    const refusal = await proxy.said("certificate.refused");
    assert.match(refusal, '"name":"bad');
    assert.match(refusal, clientCAFile);
    // oxlint-disable-next-line no-await-in-loop
    const { address } = JSON.parse(await proxy.said('"listener":"good"')) as { address: string };
    // oxlint-disable-next-line no-await-in-loop
    assert.is((await fetch(`http://${address}/api`)).status, 200);
    proxy.child.kill("SIGTERM");
    // oxlint-disable-next-line no-await-in-loop
    assert.is(await proxy.ended, 0);
  }
  backend.stop();
});

/** Returns what a command prints about a configuration, and its exit code. */
function told(...args: readonly string[]): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["bin/watchkeeper.js", ...args], {
    encoding: "utf8",
    timeout: 60_000,
  });
  return { status, text: stdout + stderr };
}

test("the start and `check` name a bad file's problem with line and column, and print no stack trace", () => {
  const file = join(directory, "start.yaml");
  const cases: readonly (string | Buffer)[] = [
    "apiVersion: watchkeeper.dev/v1alpha2\nkind: WatchkeeperConfiguration\nlogging:\n  format:\n    accessLog: All\n",
    configWith(["listeners", 0, "mode"], "{a: b}"),
    configWith(["listeners", 0, "address"], "&own [*own]"),
    ...["not UTF-8", "empty", "NUL bytes"].map((name) => contents[name] ?? ""),
  ];
  for (const content of cases)
    for (const args of [["run"], ["check", "--offline"]]) {
      writeFileSync(file, content);
      const { status, text } = told(...args, "--config", file);
      const what = `${args.join(" ")}: ${String(content).slice(0, 200)}: ${text}`;
      assert.ok(status === 1 || status === 2, what);
      assert.match(text, /start\.yaml(:\d+:\d+)?: /, what);
      assert.not.match(text, /internal error| {4}at |Error:/, what);
    }
  rmSync(file);
  mkdirSync(file);
  assert.match(told("run", "--config", file).text, "start.yaml: is not a regular file");
});

test.run();
