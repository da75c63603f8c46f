import { readFileSync } from "node:fs";
import { request } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { replicaClient } from "../../../src/fleet/replicas/replica-client.ts";
import { parseConfig } from "../../../src/ops/config/config.ts";
import { isProblems, lineOf } from "../../../src/ops/config/problem.ts";
import { freePort } from "../../support/free-port.ts";
import { startProxy, type TestProxy } from "../../support/proxy.ts";
import { within } from "../../support/within.ts";

const test = suite("ops/admin/admin-servers");

let proxy: TestProxy;
test.before(async () => {
  proxy = await startProxy({ backends: 1 });
});
test.after(() => proxy.stop());

async function seen(address: string, path: string): Promise<number> {
  const answer = await within(20_000, path, fetch(`http://${address}${path}`));
  await answer.text();
  return answer.status;
}

test("data for every client and data for this machine alone are on different ports", async () => {
  const { adminAddress, apiAddress } = proxy.running;
  assert.equal(
    [await seen(adminAddress, "/metrics"), await seen(adminAddress, "/api/v1/clients")],
    [200, 404],
  );
  assert.equal([await seen(apiAddress, "/metrics"), await seen(apiAddress, "/api/v1/clients")], [404, 200]);
});

test("without a thread for probes the data path's thread answers them and the metrics", async () => {
  const alone = await startProxy({ backends: 1, admin: "probeThread: false" });
  try {
    const { adminAddress } = alone.running;
    const checks = await (await fetch(`http://${adminAddress}/livez?verbose`)).text();
    assert.is(checks, "[+]ping ok\n[+]loop ok\nlivez check passed\n");
    assert.is(await seen(adminAddress, "/metrics"), 200);
  } finally {
    await alone.stop();
  }
});

test("all lists are there", async () => {
  for (const list of ["incidents", "backends", "watches", "clients", "leases", "certificates"])
    assert.is(await seen(proxy.running.apiAddress, `/api/v1/${list}`), 200, list);
});

/** Applies another `admin` section as a reload does. Returns the reason if the proxy refuses it. */
async function reload(admin: string, target = proxy): Promise<readonly string[] | string> {
  const file = join(target.directory, "watchkeeper.yaml");
  const text = readFileSync(file, "utf8").replace(/^admin: .*$/m, `admin: ${admin}`);
  const config = parseConfig(text, file);
  if (isProblems(config)) throw new Error(config.map(lineOf).join("\n"));
  const outcome = await within(20_000, "the reload", target.running.reload(config));
  return outcome instanceof Failure ? outcome.message : outcome;
}

function portOf(address: string): number {
  return Number(address.split(":").at(-1));
}

async function isClosed(address: string): Promise<boolean> {
  return fetch(`http://${address}/`).then(
    () => false,
    () => true,
  );
}

/** Posts an operation without the header fields by which a browser, or fetch, names the page that sends it. */
function post(path: string): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const headers = { "content-type": "application/json", "x-watchkeeper-operator": "test" };
  const url = `http://${proxy.running.apiAddress}${path}`;
  request(url, { method: "POST", headers, agent: false }, (response) => {
    response.resume();
    resolve(response.statusCode ?? 0);
  }).end("{}");
  return within(20_000, path, promise);
}

async function scrape(): Promise<string> {
  return (await fetch(`http://${proxy.running.adminAddress}/metrics`)).text();
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  if (await isSo()) return;
  await new Promise((resolve) => setTimeout(resolve, 100));
  await until(isSo);
}

test("admin.address and admin.metricsAddress move with a reload, and the old ports close", async () => {
  const { adminAddress, apiAddress } = proxy.running;
  const [api, metrics] = [await freePort(), await freePort()];
  const admin = `{address: "127.0.0.1:${api}", metricsAddress: "127.0.0.1:${metrics}"}`;
  assert.equal(await reload(admin), []);
  assert.equal([portOf(proxy.running.apiAddress), portOf(proxy.running.adminAddress)], [api, metrics]);
  assert.is(await seen(proxy.running.adminAddress, "/metrics"), 200);
  assert.is(await seen(proxy.running.apiAddress, "/api/v1/clients"), 200);
  assert.equal([await isClosed(adminAddress), await isClosed(apiAddress)], [true, true]);
});

test("on a shared port, a reload is applied although another process of the node has the API's port", async () => {
  const second = await startProxy({ backends: 1, listener: "reusePort: true" });
  try {
    const api = proxy.running.apiAddress;
    assert.equal(await reload(`{address: "${api}", metricsAddress: "127.0.0.1:0"}`, second), []);
    assert.is(second.running.apiAddress, "");
  } finally {
    await second.stop();
  }
});

test("admin.readOnly applies with a reload, and the API's port stays open", async () => {
  const { adminAddress, apiAddress } = proxy.running;
  assert.is(await post("/api/v1/backends/a/undrain"), 200);
  const addresses = `address: "${apiAddress}", metricsAddress: "${adminAddress}"`;
  assert.equal(await reload(`{${addresses}, readOnly: true}`), []);
  assert.is(await post("/api/v1/backends/a/undrain"), 403);
  assert.is(await post("/api/v1/replicas/wk-2/limits"), 403);
  const refused = proxy.entries.findLast((entry) => entry.kind === "operation.refused");
  assert.ok(refused?.kind === "operation.refused" && refused.target === "replicas/wk-2/limits");
  assert.is(await reload(`{${addresses}}`).then(() => post("/api/v1/backends/a/undrain")), 200);
  assert.equal(
    proxy.entries.filter((entry) => entry.kind === "listener.opened" && entry.listener === "admin").length,
    2,
  );
});

test("admin.tls and admin.authorization apply with a reload, and can be taken back", async () => {
  const { adminAddress, apiAddress } = proxy.running;
  const addresses = `address: "${apiAddress}", metricsAddress: "${adminAddress}"`;
  const secured = `tls: {certFile: tls.crt, keyFile: tls.key}, authorization: {mode: Webhook}`;
  assert.equal(await reload(`{${addresses}, ${secured}}`), []);
  assert.ok(await isClosed(apiAddress), "plain HTTP is refused");
  const expiry = 'certificate_expiry_timestamp_seconds{purpose="serving",name="admin"}';
  await within(
    20_000,
    "the certificate's expiry",
    until(async () => (await scrape()).includes(expiry)),
  );
  assert.equal(await reload(`{${addresses}}`), []);
  assert.is(await seen(proxy.running.apiAddress, "/api/v1/clients"), 200);
});

test("admin.replicas applies with a reload; under TLS and authorization only /replicaz needs no token", async () => {
  const { adminAddress, apiAddress } = proxy.running;
  const addresses = `address: "${apiAddress}", metricsAddress: "${adminAddress}"`;
  const listed = `addresses: ["${apiAddress}", "127.0.0.1:1"]`;
  const has = (line: string): Promise<void> =>
    within(
      20_000,
      line,
      until(async () => (await scrape()).includes(line)),
    );
  const secured = `tls: {certFile: tls.crt, keyFile: tls.key}, authorization: {mode: Webhook}`;
  const replicas = `replicas: {${listed}, caFile: ca.crt, serverName: localhost}`;
  assert.equal(await reload(`{${addresses}, ${secured}, ${replicas}}`), []);
  await has('watchkeeper_replicas{state="unknown"} 1');
  await has("watchkeeper_limit_sharers 2");
  const send = replicaClient(wallClock);
  const [host = "", port = ""] = apiAddress.split(":");
  const caFile = join(proxy.directory, "ca.crt");
  const target = { address: { host, port: Number(port) }, tls: { caFile, serverName: "localhost" } };
  const asked = async (path: string): Promise<number | string> => {
    const outcome = await send(target, { path, headers: {}, timeoutMs: 10_000, mostBytes: 10_000 });
    return outcome instanceof Failure ? outcome.message : outcome.status;
  };
  assert.is(await asked("/replicaz"), 200);
  for (const path of ["/api/v1/replicas", "/api/v1/replicas/x/stats", "/replicaz/", "/version"])
    assert.is(await asked(path), 401, path);
  assert.equal(await reload(`{${addresses}}`), []);
  await has("watchkeeper_limit_sharers 1");
  await has('watchkeeper_replicas{state="unknown"} 0');
});

test("a reload to a port that another process has is refused, and both ports stay as they were", async () => {
  const { apiAddress } = proxy.running;
  const other = createServer();
  await new Promise<void>((resolve) => {
    other.listen(0, "127.0.0.1", resolve);
  });
  const bound = other.address();
  const taken = typeof bound === "object" && bound !== null ? bound.port : 0;
  for (const admin of [
    `{address: "${apiAddress}", metricsAddress: "127.0.0.1:${taken}"}`,
    `{address: "127.0.0.1:${taken}", metricsAddress: "127.0.0.1:${await freePort()}"}`,
  ]) {
    assert.match(String(await reload(admin)), "cannot listen on");
    assert.equal(
      [await seen(proxy.running.apiAddress, "/api/v1/clients"), proxy.running.apiAddress],
      [200, apiAddress],
    );
    assert.is(await seen(proxy.running.adminAddress, "/metrics"), 200);
  }
  other.close();
});

test.run();
