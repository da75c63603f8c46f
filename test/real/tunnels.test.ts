import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { within } from "../support/within.ts";
import { Call } from "./rig/call.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, pathOf, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";

/** What happens to a running exec when its own apiserver has a fault, and when another apiserver has one. */
const test = suite("real/tunnels");
const real = testWith(test, [...clusterNeeds, "kubectl"]);

let cluster: Cluster;
let proxy: Proxy;
let kubeconfig = "";

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2, pods: true });
  kubeconfig = cluster.kubeconfig(cluster.admin.url);
  const spec = { nodeName: cluster.node.name, containers: [{ name: "main", image: "none" }] };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "shell" }, spec };
  await kubectl(["apply", "-f", "-"], JSON.stringify(pod)).ended;
  await kubectl(["wait", "--for=condition=Ready", "pod/shell", "--timeout=20s"]).ended;
});

test.after(async () => {
  if (real.canRun) await cluster.stop();
});

// A new proxy for each test: after a fault, the proxy would send new work to the recovered apiserver only gradually,
// and no exec.
test.before.each(async () => {
  if (!real.canRun) return;
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
  kubeconfig = cluster.kubeconfig(proxy.url);
});

test.after.each(async () => {
  if (real.canRun) await proxy.stop();
});

function kubectl(args: readonly string[], input?: string): Call {
  const home = join(cluster.folder, "home");
  mkdirSync(home, { recursive: true });
  const options = { timeoutMs: 60_000, env: { HOME: home }, ...(input === undefined ? {} : { input }) };
  return new Call(pathOf("kubectl"), [`--kubeconfig=${kubeconfig}`, ...args], options);
}

type Exec = { readonly call: Call; endedAt: number };

/** Starts an exec that returns each line it gets, and records when it ended. */
async function exec(): Promise<Exec> {
  const call = kubectl(["exec", "-i", "shell", "--", "cat"]);
  const own = { call, endedAt: Number.NaN };
  call.ended.then(
    () => (own.endedAt = Date.now()),
    () => {},
  );
  call.write("begun\n");
  await call.says(/begun/);
  return own;
}

/** Starts two execs. The proxy sends them to different apiservers. */
async function pair(): Promise<[Exec, Exec]> {
  // If the proxy knew only one apiserver as ready, it would send both execs there.
  await proxy.settled(2);
  const first = await exec();
  return [first, await exec()];
}

async function letGo(execs: readonly Exec[]): Promise<void> {
  for (const { call } of execs) call.signal("SIGKILL");
  await Promise.all(execs.map(({ call }) => call.ended));
}

for (const [fault, hurt, mend] of [
  ["frozen", () => cluster.apiservers[0]?.freeze(), () => cluster.apiservers[0]?.thaw()],
  ["in a black hole", () => cluster.apiservers[0]?.blackHole(), () => cluster.apiservers[0]?.heal()],
] as const) {
  real(`an exec whose apiserver is ${fault} ends within seconds, the other one goes on`, async () => {
    const execs = await pair();
    const hurtAt = Date.now();
    hurt();
    await within(8000, "an exec to end", Promise.race(execs.map(({ call }) => call.ended)));
    const [gone] = execs.filter(({ endedAt }) => endedAt > 0);
    figure(`exec told of an apiserver ${fault} after ${(gone?.endedAt ?? 0) - hurtAt} ms`);
    assert.ok((gone?.endedAt ?? 0) - hurtAt < 8_000);
    const [left] = execs.filter((each) => each !== gone);
    left?.call.write("still here\n");
    await left?.call.says(/still here/);
    mend();
    await letGo(execs);
    await cluster.apiservers[0]?.ready();
  });
}

real("an exec in a hole that heals after a second lives on", async () => {
  const execs = await pair();
  cluster.apiservers[0]?.blackHole();
  await new Promise((resolve) => setTimeout(resolve, 1000));
  cluster.apiservers[0]?.heal();
  for (const { call } of execs) call.write("after the hole\n");
  for (const { call } of execs) await call.says(/after the hole/);
  await letGo(execs);
});

real("in a graceful stop an exec lives until its apiserver ends it", async () => {
  const execs = await pair();
  await cluster.apiservers[0]?.terminate();
  const terminatedAt = Date.now();
  await within(8000, "an exec to end", Promise.race(execs.map(({ call }) => call.ended)));
  const [gone] = execs.filter(({ endedAt }) => endedAt > 0);
  figure(`exec ended ${(gone?.endedAt ?? 0) - terminatedAt} ms after its apiserver had`);
  assert.ok((gone?.endedAt ?? 0) > terminatedAt - 300, "cut before its apiserver let it go");
  await letGo(execs);
});

test.run();
