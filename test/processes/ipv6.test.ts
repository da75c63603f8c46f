/**
 * An IPv6-only machine: listeners, backends, metrics and API on ::1, by address and by name. Skipped if this machine
 * has no IPv6 loopback.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import http2 from "node:http2";
import https from "node:https";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { Journal } from "../../src/events/journal.ts";
import { type Running, startWatchkeeper } from "../../src/main.ts";
import { parseConfig } from "../../src/ops/config/config.ts";
import { isProblems, lineOf } from "../../src/ops/config/problem.ts";
import { eventually } from "../support/clusters.ts";
import { testPki } from "../support/pki.ts";

const test = suite("ipv6");
const hasIpv6 = await new Promise<boolean>((resolve) => {
  const probe = net.createServer();
  probe.once("error", () => resolve(false));
  probe.listen(0, "::1", () => probe.close(() => resolve(true)));
});
if (!hasIpv6) process.stdout.write("skipped: this machine has no IPv6 loopback\n");

const undo: (() => unknown)[] = [];
test.after(async () => {
  for (const step of undo.toReversed()) await step();
});

/** Starts a backend that answers with the X-Forwarded-For field of the request. */
async function startBackend(): Promise<number> {
  const { serving } = await testPki();
  const server = http2.createSecureServer({ cert: serving.certificate, key: serving.key, allowHTTP1: true });
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on("session", (session) => sessions.add(session));
  server.on("request", (request, response) => {
    response.end(String(request.headers["x-forwarded-for"]));
  });
  await once(server.listen(0, "::1"), "listening");
  undo.push(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function start(ports: readonly number[]): Promise<Running> {
  const { authority, serving } = await testPki();
  const folder = mkdtempSync(join(tmpdir(), "ipv6-"));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  const files = { "tls.crt": serving.certificate, "tls.key": serving.key, "ca.crt": authority.certificate };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 });
  const backends = ports.map((port, at) => `{name: b${at}, url: "https://[::1]:${port}"}`);
  const text = `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
metadata: {name: test}
listeners:
  - {name: kube, address: "[::1]:0", tls: {certFile: tls.crt, keyFile: tls.key}}
clusters: [{name: default, backends: [${backends.join(", ")}], tls: {caFile: ca.crt}}]
admin: {address: "[::1]:0", metricsAddress: "[::1]:0"}
drain: {shutdownDelay: 10ms, timeout: 500ms}`;
  const config = parseConfig(text, join(folder, "watchkeeper.yaml"));
  if (isProblems(config)) throw new Error(config.map(lineOf).join("\n"));
  const running = await startWatchkeeper(config, { journal: new Journal(wallClock) });
  if (running instanceof Failure) throw new Error(running.message);
  undo.push(() => running.stop(AbortSignal.timeout(300)));
  return running;
}

async function textIn(answer: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  for await (const chunk of answer) text += String(chunk);
  return text;
}

async function askH2(url: string, ca: string): Promise<string> {
  const session = http2.connect(url, { ca });
  try {
    return await textIn(session.request({ ":path": "/api/v1/pods" }));
  } finally {
    session.destroy();
  }
}

async function askH1(url: string, ca: string): Promise<string> {
  const request = https.get(`${url}/api/v1/pods`, { ca, agent: false });
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  return textIn(answer);
}

const testHere = hasIpv6 ? test : test.skip;

testHere(
  "clients and backends on IPv6 alone are served as others are, and so are metrics and API",
  async () => {
    const running = await start([await startBackend(), await startBackend()]);
    const textAt = async (address: string, path: string): Promise<string> =>
      (await fetch(`http://${address}${path}`)).text();
    await eventually("both backends", async () => {
      const ready = (await textAt(running.adminAddress, "/metrics")).match(
        /^watchkeeper_backend_ready\{.*\} 1$/gm,
      );
      return ready?.length === 2;
    });
    const { certificate } = (await testPki()).authority;
    const address = running.addresses.get("kube") ?? "";
    assert.match(address, /^\[::1\]:\d+$/);
    assert.is(await askH2(`https://${address}`, certificate), "::1");
    assert.is(await askH1(`https://${address}`, certificate), "::1");
    assert.match(await textAt(running.apiAddress, "/api/v1/backends"), /"b1"/);
  },
);

test.run();
