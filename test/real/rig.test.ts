/**
 * Tests the test rig itself: if a fault did not have the effect that it claims, every other suite would prove nothing.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ask, order, type Server } from "./rig/ask.ts";
import { type Cluster, startCluster, users } from "./rig/cluster.ts";
import { clusterNeeds, testWith } from "./rig/parts.ts";

const test = suite("real/rig");
const real = testWith(test, clusterNeeds);

let cluster: Cluster;
test.before(async () => {
  if (real.canRun) cluster = await startCluster({ apiservers: 2, pods: true });
});
test.after(async () => {
  if (real.canRun) await cluster.stop();
});

function server(number: number): Server {
  return { url: cluster.apiserver(number).url, caFile: cluster.caFile, token: cluster.token };
}

async function answers(number: number): Promise<boolean> {
  return ask(server(number), { path: "/api/v1/namespaces" }, 1_500).then(
    ({ status }) => status === 200,
    () => false,
  );
}

real("both apiservers serve the same etcd", async () => {
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "seen-by-both" } };
  await order(server(0), { method: "POST", path: "/api/v1/namespaces/default/configmaps", body });
  const seen = await order(server(1), { path: "/api/v1/namespaces/default/configmaps/seen-by-both" });
  assert.match(seen, /"uid"/);
});

real("tokens name users, and RBAC binds them", async () => {
  const asked = (token: string): Promise<{ status: number }> =>
    ask({ ...server(0), token }, { path: "/api/v1/namespaces/default/configmaps" });
  assert.is((await asked(users.alice.token)).status, 200);
  assert.is((await asked(users.bob.token)).status, 403);
  assert.is((await asked("nobody-knows-this-token")).status, 401);
});

for (const direction of ["both", "in", "out"] as const) {
  real(`a black hole (${direction}) silences one apiserver until it is healed, and no other`, async () => {
    cluster.apiserver(0).blackHole(direction);
    assert.is(await answers(0), false);
    assert.is(await answers(1), true);
    cluster.apiserver(0).heal();
    assert.is(await answers(0), true);
  });
}

real("a frozen apiserver answers nothing until it is thawed", async () => {
  cluster.apiserver(0).freeze();
  assert.is(await answers(0), false);
  cluster.apiserver(0).thaw();
  assert.is(await answers(0), true);
});

real("a killed apiserver comes back at its address with another pid", async () => {
  const { pid } = cluster.apiserver(0);
  await cluster.apiserver(0).kill();
  assert.is(await answers(0), false);
  await cluster.apiserver(0).restart();
  assert.is(await answers(0), true);
  assert.is.not(cluster.apiserver(0).pid, pid);
});

real("a terminated apiserver ends by itself", async () => {
  await cluster.apiserver(0).terminate();
  assert.is(await answers(0), false);
  await cluster.apiserver(0).restart();
  assert.is(await answers(0), true);
});

test.run();
