/**
 * Three watchkeeper processes on loopback, configured as replicas. One of them shows all three, and they share a limit.
 * When one is killed, the others report it and take over its share.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Command, command, endCommands } from "../support/command.ts";
import { figure } from "../support/figure.ts";
import { freePorts } from "../support/free-port.ts";
import { testPki } from "../support/pki.ts";

const test = suite("processes/replicas");

const directory = mkdtempSync(join(tmpdir(), "watchkeeper-replicas-"));
const { authority, serving } = await testPki();
for (const [name, text] of [
  ["ca.crt", authority.certificate],
  ["tls.crt", serving.certificate],
  ["tls.key", serving.key],
] as const)
  writeFileSync(join(directory, name), text);

const backend = http2.createSecureServer({ cert: serving.certificate, key: serving.key, allowHTTP1: true });
backend.on("sessionError", () => {});
backend.on("session", (session) => session.on("error", () => {}));
backend.on("request", (_request: http2.Http2ServerRequest, response: http2.Http2ServerResponse) => {
  response.setHeader("content-type", "application/json");
  response.end("{}");
});

type Replica = {
  readonly run: Command;
  readonly api: string;
  readonly metrics: string;
  readonly port: number;
};

const replicas: Replica[] = [];

/** The request limit of all three together. */
const perSecond = 30;

test.before(async () => {
  backend.listen(0, "127.0.0.1");
  await once(backend, "listening");
  const ports = await freePorts(9);
  const addresses = ports.slice(0, 3).map((port) => `"127.0.0.1:${port}"`);
  for (let at = 0; at < 3; at += 1) {
    const [api = 0, metrics = 0, port = 0] = [ports[at], ports[at + 3], ports[at + 6]];
    const file = join(directory, `${at}.yaml`);
    writeFileSync(
      file,
      `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
metadata: {name: test}
listeners: [{name: local, address: "127.0.0.1:${port}"}]
clusters:
  - name: default
    backends: [{name: a, url: "https://localhost:${(backend.address() as AddressInfo).port}"}]
    tls: {caFile: ca.crt}
    limits: [{name: all, userAgents: [flood], rate: ${perSecond}/s, scope: AllReplicas}]
admin:
  address: "127.0.0.1:${api}"
  metricsAddress: "127.0.0.1:${metrics}"
  probeThread: false
  replicas: {addresses: [${addresses.join(", ")}]}
drain: {shutdownDelay: 0s, timeout: 1s}
`,
    );
    const started = command(["run", "--config", file]);
    replicas.push({ run: started, api: `127.0.0.1:${api}`, metrics: `127.0.0.1:${metrics}`, port });
  }
  await until("all three are ready and know each other", 40_000, async () =>
    (await Promise.all(replicas.map((one) => statesOf(one)))).every(
      (states) => states.join() === "live,live,live",
    ),
  );
  await until("all three can answer", 20_000, async () =>
    (await Promise.all(replicas.map(({ port }) => answered(port, "probe")))).every((code) => code === 200),
  );
});

test.after(() => {
  endCommands();
  backend.close();
  rmSync(directory, { recursive: true, force: true });
});

async function until(what: string, ms: number, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + ms;
  while (!(await holds().catch(() => false))) {
    if (performance.now() > end)
      throw new Error(
        `Waited in vain: ${what}\n${replicas.map((one) => one.run.text().slice(-2000)).join("\n")}`,
      );
    await sleep(100);
  }
}

type Row = Readonly<Record<string, unknown>>;

async function read(api: string, path: string): Promise<{ readonly status: number; readonly body: Row }> {
  const answer = await fetch(`http://${api}/api/v1/${path}`, { signal: AbortSignal.timeout(20_000) });
  return { status: answer.status, body: (await answer.json()) as Row };
}

async function rowsOf({ api }: Replica): Promise<readonly Row[]> {
  return (await read(api, "replicas")).body["items"] as readonly Row[];
}

async function statesOf(replica: Replica): Promise<readonly unknown[]> {
  return (await rowsOf(replica)).map(({ state }) => state);
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });

function answered(port: number, program: string): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const headers = { "user-agent": `${program}/1` };
  const request = http.get({ host: "127.0.0.1", port, path: "/api/v1/pods", headers, agent }, (response) => {
    response.resume();
    response.on("end", () => resolve(response.statusCode ?? 0));
  });
  request.on("error", () => resolve(0));
  return promise;
}

/** Sends each process many more requests than the limit. Returns how many a second passed through all together. */
async function passedPerSecond(ports: readonly number[], ms: number): Promise<number> {
  // The initial burst of a full token bucket must not count.
  await flood(ports, 1500);
  const beganAt = performance.now();
  const passed = await flood(ports, ms);
  return (passed * 1000) / (performance.now() - beganAt);
}

async function flood(ports: readonly number[], ms: number): Promise<number> {
  const end = performance.now() + ms;
  let passed = 0;
  await Promise.all(
    ports.map(async (port) => {
      while (performance.now() < end) {
        const codes = await Promise.all([answered(port, "flood"), answered(port, "flood")]);
        passed += codes.filter((code) => code === 200).length;
        await sleep(20);
      }
    }),
  );
  return passed;
}

async function run(
  ...args: readonly string[]
): Promise<{ readonly code: number | null; readonly out: string }> {
  const asked = command(args);
  const code = await asked.ended;
  return { code, out: asked.text() };
}

function assertNear(rate: number): void {
  figure(`a limit of ${perSecond}/s for all replicas: ${rate.toFixed(1)}/s pass`);
  assert.ok(rate > perSecond * 0.75 && rate < perSecond * 1.25, `${rate.toFixed(1)}/s`);
}

const third = (): Replica => replicas[2] as Replica;
const first = (): Replica => replicas[0] as Replica;

test("each process lists all three, itself among them, and reads the state of the others", async () => {
  const ids = new Set<unknown>();
  for (const replica of replicas) {
    const rows = await rowsOf(replica);
    const own = rows.filter(({ isSelf }) => isSelf === true);
    assert.equal([own.length, own[0]?.["address"]], [1, replica.api]);
    for (const { id } of rows) ids.add(id);
  }
  assert.is(ids.size, 3);
  const { status, body } = await read(first().api, `replicas/${encodeURIComponent(third().api)}/backends`);
  assert.equal([status, body["kind"]], [200, "BackendList"]);
});

test("one command prints all three, or any of them", async () => {
  const admin = ["--admin", first().api];
  const list = await run("get", "backends", "--all-replicas", "--no-headers", ...admin);
  assert.is(list.code, 0, list.out);
  const names = list.out
    .trim()
    .split("\n")
    .map((line) => line.split(" ")[0]);
  assert.equal(new Set(names), new Set(replicas.map(({ api }) => api)));
  const status = await run("status", "--all-replicas", ...admin);
  for (const { api } of replicas) assert.match(status.out, new RegExp(`^${api} +✓ live .* 1/1 `, "m"));
  const one = await run("status", "--replica", third().api, "-o", "json", ...admin);
  assert.is(JSON.parse(one.out).backends.items[0].name, "a");
});

test("a rate of 30/s for all replicas lets 30/s pass through the three together", async () => {
  const rate = await passedPerSecond(
    replicas.map(({ port }) => port),
    6000,
  );
  assertNear(rate);
});

test("a limit of an operator reaches all replicas, which share it", async () => {
  const set = ["limit", "agent=ci", "--rate", "9/s", "--for", "10m", "--all-replicas"];
  const done = await run(...set, "--admin", first().api);
  assert.is(done.code, 0, done.out);
  assert.match(done.out, "3 of 3 replicas have the limit");
  assert.is(done.out.match(/9\/s, shared by 3 replicas/g)?.length, 3);
  const listed = await run("limits", "--all-replicas", "--no-headers", "--admin", first().api);
  assert.is(listed.out.match(/agent=ci/g)?.length, 3);
  const ended = await run("unlimit", "1", "--replica", third().api, "--admin", first().api);
  assert.match(ended.out, "limit 1 has ended");
});

test("a replica that is killed is silent within 15 s; its page, its row and the commands say so", async () => {
  third().run.child.kill("SIGKILL");
  const killedAt = performance.now();
  await until("the third is silent", 25_000, async () => (await statesOf(first())).includes("silent"));
  const ms = performance.now() - killedAt;
  figure(`silent ${(ms / 1000).toFixed(1)} s after SIGKILL`);
  // A replica is silent 15 s after its last response. The rest is the time of the request that reads the list.
  assert.ok(ms < 16_000, `after ${Math.round(ms)} ms`);
  const path = `replicas/${encodeURIComponent(third().api)}/backends`;
  const { status, body } = await read(first().api, path);
  assert.is(status, 502);
  assert.match(String(body["message"]), /is silent: it has not answered for \d+ s: .*ECONNREFUSED/);
  const admin = ["--admin", first().api];
  const all = await run("status", "--all-replicas", ...admin);
  assert.is(all.code, 3);
  assert.match(all.out, new RegExp(`^${third().api} +✗ silent .*has not answered for`, "m"));
  const list = await run("get", "backends", "--all-replicas", ...admin);
  assert.is(list.code, 3);
  assert.match(list.out, `${third().api}: Replica ${third().api} has not answered for`);
  assert.is((await run("status", "--replica", third().api, ...admin)).code, 3);
  await until("the log says so", 10_000, async () => first().run.text().includes('"replica.lost"'));
});

test("the others take over its share, and together let 30/s pass again", async () => {
  const living = replicas.slice(0, 2);
  await until("two share the limits", 60_000, async () => {
    const pages = await Promise.all(
      living.map(async ({ metrics }) => (await fetch(`http://${metrics}/metrics`)).text()),
    );
    return pages.every((page) => page.includes("watchkeeper_limit_sharers 2"));
  });
  const page = await (await fetch(`http://${first().metrics}/metrics`)).text();
  assert.match(page, 'watchkeeper_replicas{state="live"} 2');
  assert.match(page, 'watchkeeper_replicas{state="silent"} 1');
  const rate = await passedPerSecond(
    living.map(({ port }) => port),
    6000,
  );
  assertNear(rate);
});

test.run();
