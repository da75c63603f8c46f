/**
 * Watches of a custom resource and of two aggregated APIs, while an apiserver is killed. The server of the aggregated
 * APIs has resource versions of its own. For one of these APIs, its responses have the header Audit-Id, as those of
 * k8s.io/apiserver do; for the other API, they do not. The proxy moves the watches of the custom resource. The watches
 * of the aggregated APIs end with their apiserver. The client's user may only read these resources.
 */
import { readFileSync } from "node:fs";
import { type ClientHttp2Stream, connect } from "node:http2";
import { createServer, type Server as HttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ask, order, type Server } from "./rig/ask.ts";
import { type Cluster, startCluster, users } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/aggregated");
const real = testWith(test, clusterNeeds);

const groups = {
  custom: "stable.example.com",
  alike: "alike.example.com",
  bare: "bare.example.com",
} as const;
const pathOf = (group: string): string => `/apis/${group}/v1/namespaces/default/things`;

let cluster: Cluster;
let proxy: Proxy;
let far: HttpsServer;
let farWatches = 0;

/**
 * Starts the server of the aggregated APIs. It sends a different version for each watch, whatever version the client
 * asked for.
 */
function startFar(host: string): Promise<HttpsServer> {
  const pair = cluster.pki.issue({ name: "far", subject: "/CN=far", names: [`IP:${host}`] });
  const files = { cert: readFileSync(pair.certFile), key: readFileSync(pair.keyFile) };
  const server = createServer(files, (request, response) => {
    const url = request.url ?? "";
    const isAlike = url.includes(groups.alike);
    const group = isAlike ? groups.alike : groups.bare;
    response.setHeader("content-type", "application/json");
    if (isAlike) response.setHeader("audit-id", "of-the-other-server");
    if (url === `/apis/${group}/v1`) {
      const resources = [{ name: "things", namespaced: true, kind: "Thing", verbs: ["watch", "list"] }];
      const list = { kind: "APIResourceList", apiVersion: "v1", groupVersion: `${group}/v1`, resources };
      return void response.end(JSON.stringify(list));
    }
    if (!url.includes("watch=")) return void response.writeHead(404).end("{}");
    farWatches += 1;
    const metadata = { name: "x", namespace: "default", resourceVersion: String(100 - farWatches) };
    const object = { kind: "Thing", apiVersion: `${group}/v1`, metadata };
    return void response.write(`${JSON.stringify({ type: "MODIFIED", object })}\n`);
  });
  return new Promise((resolve) => server.listen(0, host, () => resolve(server)));
}

async function arrange(server: Server): Promise<void> {
  const host = new URL(cluster.etcdUrl).hostname;
  far = await startFar(host);
  const { port } = far.address() as AddressInfo;
  const make = (path: string, body: unknown): Promise<string> =>
    order(server, { method: "POST", path, body });
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  await make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
    metadata: { name: `things.${groups.custom}` },
    spec: {
      group: groups.custom,
      scope: "Namespaced",
      names: { plural: "things", kind: "Thing" },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  });
  const spec = { type: "ExternalName", externalName: host, ports: [{ port }] };
  await make("/api/v1/namespaces/default/services", { metadata: { name: "far" }, spec });
  const service = { name: "far", namespace: "default", port };
  for (const group of [groups.alike, groups.bare])
    await make("/apis/apiregistration.k8s.io/v1/apiservices", {
      metadata: { name: `v1.${group}` },
      spec: {
        group,
        version: "v1",
        groupPriorityMinimum: 1000,
        versionPriority: 10,
        insecureSkipTLSVerify: true,
        service,
      },
    });
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const rules = [{ apiGroups: Object.values(groups), resources: ["things"], verbs: ["list", "watch"] }];
  await make(`${rbac}/clusterroles`, { metadata: { name: "things" }, rules });
  await make(`${rbac}/clusterrolebindings`, {
    metadata: { name: "things" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "things" },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "bob" }],
  });
}

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2 });
  await arrange(cluster.admin);
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
  await proxy.settled(2);
});

test.after(async () => {
  if (!real.canRun) return;
  far.closeAllConnections();
  far.close();
  await proxy.stop();
  await cluster.stop();
});

class Watch {
  readonly #stream: ClientHttp2Stream;
  text = "";
  status = 0;
  end: "open" | "ended" | "broken" = "open";

  constructor(group: string, version: string) {
    const session = connect(proxy.url, { ca: readFileSync(cluster.caFile) });
    session.on("error", () => (this.end = "broken"));
    this.#stream = session.request({
      ":path": `${pathOf(group)}?watch=true&resourceVersion=${version}`,
      authorization: `Bearer ${users.bob.token}`,
    });
    this.#stream.on("response", (head) => (this.status = Number(head[":status"])));
    this.#stream.on("data", (chunk: Buffer) => (this.text += chunk.toString()));
    this.#stream.on("error", () => (this.end = "broken"));
    this.#stream.on("end", () => (this.end = this.end === "open" ? "ended" : this.end));
  }

  close(): void {
    this.#stream.session?.destroy();
  }
}

async function apis(): Promise<string> {
  const text = await (await fetch(`${proxy.metricsUrl}/metrics`)).text();
  const rows = [...text.matchAll(/^watchkeeper_watched_apis\{.*?kind="(\w+)".*\} (\d+)$/gm)];
  return rows.map(([, kind, count]) => `${kind} ${count}`).join(", ");
}

async function eventually(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 30_000; !(await isTrue()); await sleep(100))
    if (Date.now() > deadline) throw new Error(`Waited 30 s for ${what}: ${await apis()}`);
}

real(
  "a CRD's watches go on when their apiserver is killed; those of aggregated APIs are asked for nowhere else",
  async () => {
    const server = { url: proxy.url, caFile: cluster.caFile, token: users.bob.token };
    // On each apiserver, because each one discovers an APIService at a time of its own.
    for (const at of [0, 1].map((index) => ({ ...server, url: cluster.apiserver(index).url })))
      for (const group of Object.values(groups))
        await eventually(`${group} to be served`, async () => {
          const path = group === groups.custom ? pathOf(group) : `/apis/${group}/v1`;
          return (await ask(at, { path })).status === 200;
        });
    const listed = JSON.parse((await ask(server, { path: pathOf(groups.custom) })).text) as {
      metadata: { resourceVersion: string };
    };
    assert.ok(Number(listed.metadata.resourceVersion) > 0);
    const startedAt = Date.now();
    const of = (group: string, version = "1"): Watch[] =>
      Array.from({ length: 4 }, () => new Watch(group, version));
    const custom = of(groups.custom, listed.metadata.resourceVersion);
    const [alike, bare] = [of(groups.alike), of(groups.bare)];
    await eventually("all to be answered", () =>
      [...custom, ...alike, ...bare].every(({ status }) => status === 200),
    ).catch((error: Error) => {
      const told = (all: readonly Watch[]): string => all.map(({ status, end }) => `${status} ${end}`).join();
      throw new Error(`${error.message}: ${told(custom)} | ${told(alike)} | ${told(bare)}`);
    });
    await eventually(
      "the kinds to be known",
      async () => (await apis()) === "custom 1, aggregated 1, unknown 1",
    );
    figure(`known after ${Date.now() - startedAt} ms`);
    assert.is(farWatches, 8);
    await cluster.apiserver(0).kill();
    await sleep(4_000);
    const body = { apiVersion: `${groups.custom}/v1`, kind: "Thing", metadata: { name: "late" } };
    await order(cluster.admin, { method: "POST", path: pathOf(groups.custom), body });
    await eventually("the event", () => custom.every(({ text }) => text.includes('"late"'))).catch(
      (error: Error) => {
        const seen = custom.map(({ end, text }) => `${end} ${text.slice(0, 300)}`);
        throw new Error(`${error.message}: ${seen.join(" | ")}`);
      },
    );
    assert.equal(
      custom.map(({ end }) => end),
      ["open", "open", "open", "open"],
    );
    const ends = [...alike, ...bare].map(({ end }) => end);
    figure(`ends of aggregated watches: ${ends.join(" ")}`);
    assert.is(farWatches, 8, "none was asked for again");
    assert.ok(ends.includes("ended") && !ends.includes("broken"), ends.join());
    for (const watch of [...custom, ...alike, ...bare]) watch.close();
  },
);

test.run();
