/**
 * Which users may use the proxy's API. Real apiservers decide it by a user's token, by RBAC, and by a ClusterRole that
 * every user has.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse } from "yaml";
import { freePort } from "../support/free-port.ts";
import { ask, order } from "./rig/ask.ts";
import { call } from "./rig/call.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";
import { saidSince } from "./rig/said.ts";

const test = suite("real/authorization");
const real = testWith(test, clusterNeeds);

let cluster: Cluster;
let proxy: Proxy;
let url: string;
let metricsUrl: string;
const tokens = new Map<string, string>();

const rbac = "rbac.authorization.k8s.io";
const accounts = "/api/v1/namespaces/default/serviceaccounts";

/** Creates a service account, and a ClusterRole that permits it these verbs on the proxy's API. */
async function account(name: string, verbs: readonly string[]): Promise<void> {
  await order(cluster.admin, { method: "POST", path: accounts, body: { metadata: { name } } });
  if (verbs.length > 0) {
    const rules = [{ nonResourceURLs: ["/watchkeeper/*"], verbs }];
    await order(cluster.admin, {
      method: "POST",
      path: `/apis/${rbac}/v1/clusterroles`,
      body: { metadata: { name }, rules },
    });
    await bind(name, name);
  }
  tokens.set(name, await tokenOf(name));
}

function bind(name: string, role: string): Promise<string> {
  const body = {
    metadata: { name: `${name}-${role.replaceAll(":", "-")}` },
    roleRef: { apiGroup: rbac, kind: "ClusterRole", name: role },
    subjects: [{ kind: "ServiceAccount", name, namespace: "default" }],
  };
  return order(cluster.admin, { method: "POST", path: `/apis/${rbac}/v1/clusterrolebindings`, body });
}

/** Returns a token of the service account, by default for the proxy's audience. */
async function tokenOf(name: string, audiences: readonly string[] = ["watchkeeper"]): Promise<string> {
  const path = `${accounts}/${name}/token`;
  const body = { spec: { audiences, expirationSeconds: 600 } };
  const answer = JSON.parse(await order(cluster.admin, { method: "POST", path, body }));
  return String(answer.status.token);
}

const statusOf = async (token: string | undefined, path: string, method = "GET"): Promise<number> => {
  const server = { url, caFile: cluster.caFile, ...(token === undefined ? {} : { token }) };
  return (await ask(server, { path, method })).status;
};

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2 });
  await account("reviewer", []);
  await bind("reviewer", "system:auth-delegator");
  await account("nobody", []);
  await account("prometheus", []);
  const [role = ""] = readFileSync("config/rbac/metrics.yaml", "utf8").split("\n---\n");
  const path = `/apis/${rbac}/v1/clusterroles`;
  await order(cluster.admin, { method: "POST", path, body: parse(role) });
  await bind("prometheus", "watchkeeper-metrics-reader");
  await account("reader", ["get"]);
  await account("operator", ["get", "post"]);
  const kubeconfigFile = join(cluster.folder, "reviewer.kubeconfig");
  const user = { user: { token: await tokenOf("reviewer", []) }, name: "rig" };
  const server = { server: cluster.apiserver(0).url, "certificate-authority": cluster.caFile };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "rig",
    clusters: [{ name: "rig", cluster: server }],
    users: [user],
    contexts: [{ name: "rig", context: { cluster: "rig", user: "rig" } }],
  };
  writeFileSync(kubeconfigFile, JSON.stringify(config), { mode: 0o600 });
  const tls = cluster.pki.issue({ name: "admin", subject: "/CN=watchkeeper", names: ["DNS:localhost"] });
  const [port, metrics] = [await freePort(), await freePort()];
  url = `https://localhost:${port}`;
  metricsUrl = `https://localhost:${metrics}`;
  const admin = {
    address: `0.0.0.0:${port}`,
    metricsAddress: `0.0.0.0:${metrics}`,
    metrics: { tls, authorization: { mode: "Webhook", kubeconfigFile, audiences: ["watchkeeper"] } },
    tls,
    authorization: { mode: "Webhook", kubeconfigFile, audiences: ["watchkeeper"] },
  };
  const backends = cluster.apiservers.map(({ name, url: own }) => ({ name, url: own }));
  const { folder, pki } = cluster;
  proxy = await Proxy.start({ name: "guarded", folder, pki, backends, config: { admin } });
});

test.after(async () => {
  if (!real.canRun) return;
  await proxy.stop();
  await cluster.stop();
});

const drain = "/api/v1/backends/api-0/drain";

/** Runs a command of the CLI with the account's token and returns its exit code and output. */
async function said(name: string, ...words: readonly string[]): Promise<string> {
  const tokenFile = join(cluster.folder, `${name}.token`);
  writeFileSync(tokenFile, tokens.get(name) ?? name, { mode: 0o600 });
  const bin = join(import.meta.dirname, "../../bin/watchkeeper.js");
  const options = ["--admin", url, "--ca-file", cluster.caFile, "--token-file", tokenFile];
  const { code, out, err } = await call(process.execPath, [bin, ...words, ...options]);
  return `${code} ${out}${err}`;
}

real("a service account that may read reads, and one that is allowed nothing does not", async () => {
  const startedAt = Date.now();
  assert.is(await statusOf(tokens.get("reader"), "/api/v1/backends"), 200);
  const first = Date.now() - startedAt;
  const again = Date.now();
  assert.is(await statusOf(tokens.get("reader"), "/api/v1/backends"), 200);
  figure(
    `reviews: ${first} ms for the first request, with the child's start; ${Date.now() - again} ms for the next`,
  );
  // This account may get /api/* of Kubernetes, as every user may.
  const own = { url: cluster.apiserver(0).url, caFile: cluster.caFile, token: await tokenOf("nobody", []) };
  assert.is((await ask(own, { path: "/api/v1" })).status, 200);
  for (const path of ["/api/v1/backends", "/api/v1/leases", "/api/v1/events", "/version", "/openapi.json"])
    assert.is(await statusOf(tokens.get("nobody"), path), 403, path);
});

real(
  "metrics go to a service account that may get /metrics as of other components, probes need no token",
  async () => {
    const code = async (path: string, token?: string): Promise<number> => {
      const server = { url: metricsUrl, caFile: cluster.caFile, ...(token === undefined ? {} : { token }) };
      const { status, text } = await ask(server, { path });
      if (path === "/metrics") assert.is(text.includes("watchkeeper_build_info"), status === 200, text);
      return status;
    };
    assert.is(await code("/metrics", tokens.get("prometheus")), 200);
    // This account may read the API below /watchkeeper, but no metrics.
    assert.is(await code("/metrics", tokens.get("reader")), 403);
    assert.is(await code("/metrics", tokens.get("nobody")), 403);
    assert.is(await code("/metrics", "garbage"), 401);
    assert.is(await code("/metrics"), 401);
    for (const path of ["/livez", "/readyz", "/healthz"]) assert.is(await code(path), 200, path);
    assert.is(await statusOf(tokens.get("prometheus"), "/api/v1/backends"), 403, "and no more than metrics");
  },
);

real("a missing, garbage or altered token, and one for another audience, identify no user", async () => {
  const good = tokens.get("reader") ?? "";
  const foreign = await tokenOf("reader", ["https://kubernetes.default.svc"]);
  const altered = `${good.slice(0, -8)}AAAAAAAA`;
  for (const token of [undefined, "garbage", altered, foreign])
    assert.is(await statusOf(token, "/api/v1/backends"), 401, String(token).slice(0, 8));
  assert.is(await statusOf(undefined, "/"), 200, "the page's own files");
});

real("one that may read may not drain, by the command line either; one that may operate may", async () => {
  assert.is(await statusOf(tokens.get("reader"), drain, "POST"), 403);
  assert.match(await said("reader", "get", "backends"), /^0 .*api-0/s);
  assert.match(
    await said("reader", "drain", "api-0"),
    /^1 User "system:serviceaccount:default:reader" cannot post/,
  );
  assert.match(await said("operator", "drain", "api-0"), /^0 api-0 is draining/);
  assert.match(await said("operator", "undrain", "api-0"), /^0 /);
  const done = saidSince(proxy.logFile, 0).filter(({ msg }) => msg === "operation.done");
  assert.match(String(done[0]?.["by"]), /^system:serviceaccount:default:operator at /);
});

real("a token whose account is deleted identifies no user within ten seconds", async () => {
  await account("leaving", ["get"]);
  const token = tokens.get("leaving");
  assert.is(await statusOf(token, "/api/v1/backends"), 200);
  await order(cluster.admin, { method: "DELETE", path: `${accounts}/leaving` });
  const startedAt = Date.now();
  while ((await statusOf(token, "/api/v1/backends")) === 200 && Date.now() - startedAt < 25_000)
    await sleep(250);
  figure(`a deleted account's token was refused after ${Date.now() - startedAt} ms`);
  assert.is(await statusOf(token, "/api/v1/backends"), 401);
  // The apiserver itself caches the review of a token for ten seconds.
  assert.ok(Date.now() - startedAt < 22_000);
});

real("with one apiserver in a black hole the other is asked, and with both no client is let in", async () => {
  const fresh = await tokenOf("reader");
  cluster.apiserver(0).blackHole();
  await sleep(3_000);
  assert.is(await statusOf(fresh, "/api/v1/leases"), 200);
  cluster.apiserver(1).blackHole();
  const other = await tokenOf("reader").catch(() => "unheard-of");
  assert.is(await statusOf(other, "/api/v1/leases"), 503);
  const failed = saidSince(proxy.logFile, 0).filter(({ msg }) => msg === "review.failed");
  assert.ok(failed.length > 0);
  assert.not.match(JSON.stringify(saidSince(proxy.logFile, 0)), fresh);
  for (const apiserver of cluster.apiservers) apiserver.heal();
});

test.run();
