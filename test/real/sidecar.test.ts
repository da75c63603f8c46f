/**
 * Clients that know nothing of the proxy, in a pod with a sidecar. All their files are where a kubelet would put them.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ask, order } from "./rig/ask.ts";
import { type Call, call } from "./rig/call.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, pathOf, pythonPath, testWith } from "./rig/parts.ts";
import { boundToken, Pod } from "./rig/pod.ts";
import { saidSince } from "./rig/said.ts";
import { until } from "./rig/until.ts";

const test = suite("real/sidecar");
const real = testWith(test, [...clusterNeeds, "informer", "python", "kubectl"]);

const namespace = "shop";
const account = "app";
const configmaps = `/api/v1/namespaces/${namespace}/configmaps`;
let cluster: Cluster;
let pod: Pod;
let token = "";

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2, serviceAccounts: true });
  await make("/api/v1/namespaces", { kind: "Namespace", metadata: { name: namespace } });
  for (const name of [account, "default"])
    await make(`/api/v1/namespaces/${namespace}/serviceaccounts`, {
      kind: "ServiceAccount",
      metadata: { name },
    });
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["*"] }];
  await make(`${rbac}/roles`, { apiVersion, kind: "Role", metadata: { name: account }, rules });
  await make(`${rbac}/rolebindings`, {
    apiVersion,
    kind: "RoleBinding",
    metadata: { name: account },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: account },
    subjects: [{ kind: "ServiceAccount", name: account, namespace }],
  });
  token = await boundToken(cluster, { namespace, account, until: "token-1" });
  pod = await Pod.make(cluster, namespace);
  pod.project({ token, ca: readFileSync(cluster.caFile, "utf8") });
  await pod.startSidecar();
});

test.after(async () => {
  if (!real.canRun) return;
  await pod.stop();
  await cluster.stop();
});

async function make(path: string, body: object): Promise<void> {
  await order(cluster.admin, { method: "POST", path, body: { apiVersion: "v1", ...body } });
}

/** Returns the names of the backends that are ready from the sidecar's view. */
async function ready(): Promise<string[]> {
  const text = await (await fetch(`${pod.metricsUrl}/metrics`)).text();
  return [...text.matchAll(/^watchkeeper_backend_ready\{.*backend="([^"]+)".*\} 1$/gm)]
    .map(([, name = ""]) => name)
    .toSorted();
}

function untilReady(names: readonly string[], ms = 45_000): Promise<void> {
  return until(`${names.join()} to be ready`, async () => (await ready()).join() === names.join(), ms);
}

const found = (): string[] => cluster.apiservers.map(({ url }) => new URL(url).host).toSorted();

real("a service account that may not look for apiservers is served by the service's address", async () => {
  const said = saidSince(pod.logFile, 0).find(({ msg }) => msg === "discovery.failed");
  assert.match(String(said?.["err"]), "answered 403");
  assert.equal(await ready(), ["service"]);
});

real("allowed to, it finds every apiserver and leaves the service's address", async () => {
  const args = [
    `--kubeconfig=${cluster.kubeconfig(cluster.admin.url)}`,
    "apply",
    "-f",
    "config/rbac/sidecar.yaml",
  ];
  const applied = await call(pathOf("kubectl"), args, { timeoutMs: 30_000 });
  assert.is(applied.code, 0, applied.err);
  await untilReady(found());
});

type Seen = [kind: string, name: string, version: string];

/** Checks that each object was added once and deleted once, in the order of versions. */
function checkStory({ names, events }: { names: readonly string[]; events: readonly Seen[] }): void {
  assert.equal(
    events.map(([kind, name]) => `${kind} ${name}`),
    ["ADDED", "DELETED"].flatMap((kind) => names.map((name) => `${kind} ${name}`)),
  );
}

real("the Python client runs unchanged", async () => {
  const script = fileURLToPath(new URL("python/story.py", import.meta.url));
  const said = await pod.run(pythonPath(), [script, "in-cluster", namespace, "20"]);
  assert.is(said.code, 0, said.err);
  const story = JSON.parse(said.out) as { events: Seen[] };
  checkStory({ ...story, names: Array.from({ length: 20 }, (_, number) => `python-${number}`) });
});

real("@kubernetes/client-node runs unchanged", async () => {
  const script = fileURLToPath(new URL("in-cluster.ts", import.meta.url));
  const said = await pod.run(process.execPath, [script, namespace, "20"]);
  assert.is(said.code, 0, said.err);
  checkStory(JSON.parse(said.out) as { names: string[]; events: Seen[] });
});

type Summary = {
  readonly added: number;
  readonly lists: number;
  readonly streamed: number;
  readonly fails: number;
  readonly objects: Record<string, string>;
};

function informer(): Call {
  return pod.start(pathOf("informer"), [`-namespace=${namespace}`, "-for=4m"], 250_000);
}

async function summaryOf(running: Call): Promise<Summary> {
  running.signal("SIGTERM");
  const { out } = await running.ended;
  return JSON.parse(out.trimEnd().split("\n").at(-1) ?? "") as Summary;
}

async function create(name: string): Promise<void> {
  await make(configmaps, { kind: "ConfigMap", metadata: { name } });
}

/** Returns the resource version of each object by its name, read directly from an apiserver. */
async function objects(): Promise<Record<string, string>> {
  const { items } = JSON.parse(await order(cluster.admin, { path: configmaps })) as {
    items: { metadata: { name: string; resourceVersion: string } }[];
  };
  return Object.fromEntries(items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
}

real(
  "client-go runs unchanged, through another token, another CA and a sidecar that was killed",
  async () => {
    const [first, second] = [informer(), informer()];
    for (const one of [first, second]) await one.says(/"kind":"synced"/);
    const kept = readFileSync(cluster.caFile, "utf8");

    // A new token. client-go reads its token file again once a minute.
    const renewed = await boundToken(cluster, { namespace, account, until: "token-2" });
    pod.project({ token: renewed, ca: kept });
    const rotatedAt = Date.now();
    await create("after-token");

    // A new CA, in the usual three steps of a rotation: clients trust it in addition, the apiservers use it, and then
    // clients trust only it.
    const next = cluster.pki.authority("next-ca");
    appendFileSync(cluster.caFile, readFileSync(next.certFile));
    pod.project({ token: renewed, ca: readFileSync(cluster.caFile, "utf8") });
    await sleep(3_000);
    for (const apiserver of cluster.apiservers) apiserver.presentSignedBy(next);
    pod.project({ token: renewed, ca: readFileSync(next.certFile, "utf8") });
    await sleep(3_000);
    for (const apiserver of cluster.apiservers) {
      await apiserver.restart();
      await untilReady(found());
      await create(`after-${apiserver.name}`);
    }
    const refused = saidSince(pod.logFile, rotatedAt).filter(({ msg }) => msg === "config.refused");
    assert.equal(refused, []);
    for (const one of [first, second]) await one.says(/"name":"after-api-1"/);
    const calm = await summaryOf(first);
    assert.equal([calm.lists + calm.streamed, calm.fails], [1, 0]);
    assert.equal(calm.objects, await objects());

    // From now on, the first token is invalid, and every client must open its watch again.
    await sleep(Math.max(0, rotatedAt + 61_000 - Date.now()));
    await order(cluster.admin, { method: "DELETE", path: `/api/v1/namespaces/${namespace}/secrets/token-1` });
    await pod.killSidecar();
    await pod.startSidecar();
    await create("after-restart");
    await second.says(/"name":"after-restart"/, 60_000);
    const last = await summaryOf(second);
    assert.equal(last.objects, await objects());
    const old = { url: cluster.admin.url, caFile: cluster.caFile, token };
    await sleep(11_000); // the apiserver caches the review of a token for 10 s
    assert.is((await ask(old, { path: configmaps })).status, 401);
    figure(
      `client-go in a pod: ${calm.lists + calm.streamed} list through another token, another CA and both apiservers ` +
        `restarted; ${last.lists + last.streamed} with the sidecar killed on top`,
    );
    const rss = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pod.sidecarPid}/status`, "utf8"))?.[1];
    figure(`the sidecar's memory: ${Math.round(Number(rss) / 1024)} MiB`);
  },
);

const kinds: Record<string, (template: object) => object> = {
  Pod: (template) => ({ apiVersion: "v1", ...template }),
  Deployment: (template) => ({ apiVersion: "apps/v1", spec: { selector, template } }),
  StatefulSet: (template) => ({ apiVersion: "apps/v1", spec: { selector, serviceName: "x", template } }),
  DaemonSet: (template) => ({ apiVersion: "apps/v1", spec: { selector, template } }),
  Job: (template) => ({ apiVersion: "batch/v1", spec: { template } }),
  CronJob: (template) => ({
    apiVersion: "batch/v1",
    spec: { schedule: "0 * * * *", jobTemplate: { spec: { template } } },
  }),
};
const selector = { matchLabels: { app: "x" } };

for (const [kind, shape] of Object.entries(kinds)) {
  real(`a ${kind} with a sidecar passes the apiserver, and admission leaves its mounts alone`, async () => {
    const restartPolicy = kind.endsWith("Job") ? { restartPolicy: "Never" } : {};
    const template = {
      metadata: { labels: { app: "x" } },
      spec: { ...restartPolicy, serviceAccountName: account, containers: [{ name: "app", image: "app:1" }] },
    };
    const whole = { kind, ...shape(template) };
    const workload = { ...whole, metadata: { name: "x", labels: { app: "x" } } };
    const bin = fileURLToPath(new URL("../../bin/watchkeeper.js", import.meta.url));
    const input = JSON.stringify(workload);
    const patched = await call(process.execPath, [bin, "manifest", "sidecar", "-f", "-", "--image", "w:1"], {
      input,
    });
    assert.is(patched.code, 0, patched.err);
    const args = [
      `--kubeconfig=${cluster.kubeconfig(cluster.admin.url)}`,
      `--namespace=${namespace}`,
      "create",
    ];
    args.push("--dry-run=server", "-o", "json", "-f", "-");
    const said = await call(pathOf("kubectl"), args, { input: patched.out });
    assert.is(said.code, 0, said.err);
    assert.is(said.out.includes("kube-api-access-"), false, "admission mounted a token of its own");
    assert.match(said.out, '"restartPolicy": "Always"');
  });
}

test.run();
