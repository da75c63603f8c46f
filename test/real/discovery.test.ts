/** The proxy discovers real apiservers from what Kubernetes itself publishes about them. */
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ask } from "./rig/ask.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";
import { saidSince } from "./rig/said.ts";

const test = suite("real/discovery");
const real = testWith(test, clusterNeeds);

let cluster: Cluster;

test.before(async () => {
  if (real.canRun) cluster = await startCluster({ apiservers: 2 });
});

test.after(async () => {
  if (real.canRun) await cluster.stop();
});

for (const type of ["EndpointSlice", "Lease"] as const) {
  real(`every apiserver is found by ${type}, when only one was listed`, async () => {
    const { name, url } = cluster.apiserver(1);
    const kubeconfigFile = cluster.kubeconfig(url);
    const found = {
      name: "default",
      backends: [{ name, url }],
      tls: { caFile: cluster.caFile, serverName: "kubernetes.default.svc" },
      discovery: { type, kubeconfigFile, interval: "1s" },
    };
    const { folder, pki } = cluster;
    const startedAt = Date.now();
    const proxy = await Proxy.start({ name: type, folder, pki, backends: [], config: { clusters: [found] } });
    try {
      await proxy.settled(2, 20_000);
      figure(`${type}: both ready after ${Date.now() - startedAt} ms`);
      const added = saidSince(proxy.logFile, 0).find(({ msg }) => msg === "discovery.changed")?.["added"];
      assert.ok(
        Array.isArray(added) && added.includes(new URL(cluster.apiserver(0).url).host),
        String(added),
      );
      const server = { url: proxy.url, caFile: cluster.caFile, token: cluster.token };
      assert.is((await ask(server, { path: "/api/v1/namespaces" })).status, 200);
      // No discovery.failed is logged: discovery succeeds each second and never finds an empty list.
      await sleep(3_000);
      const complaints = saidSince(proxy.logFile, 0).filter(({ msg }) => msg === "discovery.failed");
      assert.equal(complaints, []);
    } finally {
      await proxy.stop();
    }
  });
}

test.run();
