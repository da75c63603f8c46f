/**
 * One apiserver does not serve autoscaling/v2, as an older version of Kubernetes would not serve a new API. The other
 * apiserver answers the requests for this API, whichever apiserver the client is bound to.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ask, type Question, type Server } from "./rig/ask.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/missing-apis");
const real = testWith(test, clusterNeeds);

const api = "/apis/autoscaling/v2";
const path = `${api}/namespaces/default/horizontalpodautoscalers`;

let cluster: Cluster;
let proxy: Proxy;

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2 });
  await cluster.apiserver(0).restart(["--runtime-config=autoscaling/v2=false"]);
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
  await proxy.settled(2);
});

test.after(async () => {
  if (!real.canRun) return;
  await proxy.stop();
  await cluster.stop();
});

/** Sends 20 requests, each on a new connection, and returns the number of responses for each status. */
async function statusesOf(
  server: Server,
  question: (at: number) => Question,
): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (let at = 0; at < 20; at += 1) {
    const { status } = await ask(server, question(at));
    counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
}

function autoscaler(at: number): Question {
  const scaleTargetRef = { apiVersion: "apps/v1", kind: "Deployment", name: "web" };
  const body = {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: { name: `web-${at}` },
    spec: { scaleTargetRef, maxReplicas: 3 },
  };
  return { method: "POST", path, body };
}

real("reads, discovery and writes of an API that one apiserver lacks are answered by the other", async () => {
  const direct = { url: cluster.apiserver(0).url, caFile: cluster.caFile, token: cluster.token };
  const through = { ...direct, url: proxy.url };
  assert.is((await ask(direct, { path })).status, 404);
  // Requests in progress would bind all clients to the other apiserver. Without any, half of the clients are bound to
  // each apiserver.
  const reads = await statusesOf(through, () => ({ path }));
  const discovery = await statusesOf(through, () => ({ path: api }));
  const writes = await statusesOf(through, autoscaler);
  figure(
    `reads ${JSON.stringify(reads)}, discovery ${JSON.stringify(discovery)}, writes ${JSON.stringify(writes)}`,
  );
  assert.equal([reads, discovery, writes], [{ 200: 20 }, { 200: 20 }, { 201: 20 }]);
  const { text } = await ask(through, { path });
  assert.is((JSON.parse(text) as { items: unknown[] }).items.length, 20);
  assert.is((await ask(through, { path: "/apis/none.example.com/v1/things" })).status, 404);
});

real("the incident and the versions are in the metrics", async () => {
  const metrics = async (): Promise<string> => (await fetch(`${proxy.metricsUrl}/metrics`)).text();
  const through = { url: proxy.url, caFile: cluster.caFile, token: cluster.token };
  const { name } = cluster.apiserver(0);
  const incident = `watchkeeper_incident_active{kind="backend-api-missing",backend="${name}"} 1`;
  let text = await metrics();
  const isTold = (): boolean => text.includes(incident) && /^watchkeeper_backend_info.* 1$/m.test(text);
  // If the apiserver without the API had the higher load, all earlier requests may have gone to the other one, and the
  // proxy does not yet know that the API is missing.
  for (let tries = 0; tries < 100 && !isTold(); tries += 1) {
    await statusesOf(through, () => ({ path }));
    await sleep(100);
    text = await metrics();
  }
  assert.match(text, incident);
  assert.is(
    text.match(/^watchkeeper_backend_info\{backend="[^"]+",version="v1\.\d+\.\d+[^"]*"\} 1$/gm)?.length,
    2,
  );
});

test.run();
