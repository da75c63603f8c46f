/**
 * The manifests in deploy/ are rendered as a user renders them and pass a dry run with full admission on a real
 * apiserver. The configurations in them work in front of real apiservers.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { freePort } from "../support/free-port.ts";
import { call, type Output } from "./rig/call.ts";
import { Child } from "./rig/child.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, crdPath, figure, monitoringKinds, pathOf, testWith } from "./rig/parts.ts";

const test = suite("real/deploy");
const real = testWith(test, [...clusterNeeds, "kubectl", "helm", "crds"]);
const bin = fileURLToPath(new URL("../../bin/watchkeeper.js", import.meta.url));
const chart = "deploy/helm/watchkeeper";
const withImage = ["--set", "image.repository=registry.example.com/watchkeeper"];

let cluster: Cluster;

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2 });
  // The namespace has the Pod Security level "restricted", as the one in deploy/ has. It also warns, because Pod
  // Security rejects a Pod but only warns about a Deployment.
  const namespace = readFileSync("deploy/deployment/namespace.yaml", "utf8").replace(
    "enforce: restricted\n",
    "enforce: restricted\n    pod-security.kubernetes.io/warn: restricted\n",
  );
  await kubectl(["apply", "--server-side", "-f", "-"], namespace);
  // With the CRDs that the Prometheus operator publishes, the apiserver validates every field of its objects.
  for (const kind of monitoringKinds) {
    await kubectl(["apply", "--server-side", "-f", crdPath(kind)]);
    await kubectl(["wait", "--for=condition=Established", `crd/${kind}.monitoring.coreos.com`]);
  }
});

test.after(async () => {
  if (real.canRun) await cluster.stop();
});

async function kubectl(args: readonly string[], input?: string, url = cluster.admin.url): Promise<Output> {
  const all = ["--kubeconfig", cluster.kubeconfig(url), ...args];
  const said = await call(pathOf("kubectl"), all, input === undefined ? {} : { input });
  assert.is(said.code, 0, `kubectl ${args.join(" ")}: ${said.err}`);
  return said;
}

/** Returns the folder rendered by the kustomize that is built into kubectl. */
async function kustomized(folder: string): Promise<string> {
  return (await kubectl(["kustomize", folder])).out;
}

async function helm(...args: string[]): Promise<string> {
  const said = await call(pathOf("helm"), args, { env: { HOME: cluster.folder } });
  assert.is(said.code, 0, `helm ${args.join(" ")}: ${said.err}${said.out}`);
  return said.out;
}

async function printed(...args: string[]): Promise<string> {
  const said = await call(process.execPath, [bin, "manifest", ...args]);
  assert.is(said.code, 0, said.err);
  return said.out;
}

type Manifest = {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: { readonly template: { readonly spec: object } };
};

/** Returns the objects as the apiserver would store them. Fails if it rejects them or warns. */
async function dryRun(text: string): Promise<readonly Manifest[]> {
  const said = await kubectl(
    ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-"],
    text,
  );
  assert.not.match(said.err, /warning/i, said.err);
  const answer = JSON.parse(said.out) as Manifest & { readonly items?: readonly Manifest[] };
  return answer.items ?? [answer];
}

function kindsOf(manifests: readonly Manifest[]): string[] {
  return manifests.map(({ kind }) => kind).toSorted();
}

const whole = [
  "ConfigMap",
  "Deployment",
  "NetworkPolicy",
  "PodDisruptionBudget",
  "Role",
  "RoleBinding",
  "Service",
  "Service",
  "ServiceAccount",
];

real(
  "the apiserver accepts the Deployment and all that belongs to it, from Kustomize, the command and the chart",
  async () => {
    const byKustomize = await dryRun(await kustomized("deploy/deployment"));
    assert.equal(kindsOf(byKustomize), ["Namespace", ...whole].toSorted());
    const byCommand = await dryRun(await printed("deployment", "--image", "w:1"));
    assert.equal(kindsOf(byCommand), kindsOf(byKustomize));
    const pods = byKustomize.filter(({ kind }) => kind === "Deployment").map(({ spec }) => spec.template);
    // The pod template as a Pod of its own: Pod Security only warns about a Deployment, but rejects a Pod.
    await dryRun(
      JSON.stringify({
        apiVersion: "v1",
        kind: "Pod",
        ...pods[0],
        metadata: { name: "one", namespace: "watchkeeper" },
      }),
    );
  },
);

real("its account may look for apiservers, and nothing else", async () => {
  await kubectl(["apply", "--server-side", "-f", "deploy/deployment/rbac.yaml"]);
  const as = "--as=system:serviceaccount:watchkeeper:watchkeeper";
  const may = async (...what: string[]): Promise<string> => {
    const args = ["--kubeconfig", cluster.kubeconfig(cluster.admin.url), "auth", "can-i", ...what, as];
    return (await call(pathOf("kubectl"), args)).out.trim();
  };
  assert.is(await may("get", "endpointslices.discovery.k8s.io/kubernetes", "-n", "default"), "yes");
  assert.is(await may("list", "endpointslices.discovery.k8s.io", "-n", "default"), "no");
  assert.is(await may("list", "secrets", "-n", "watchkeeper"), "no");
});

real(
  "with its component the Deployment has a ServiceMonitor, which finds the Service's own port",
  async () => {
    const manifests = await dryRun(await kustomized("deploy/deployment-monitored"));
    assert.equal(kindsOf(manifests), ["Namespace", "ServiceMonitor", ...whole].toSorted());
    const all: ReturnType<typeof JSON.parse>[] = JSON.parse(JSON.stringify(manifests));
    const monitor = all.find((one) => one.kind === "ServiceMonitor");
    const labels = Object.entries(monitor.spec.selector.matchLabels);
    const services = all.filter(
      ({ kind, metadata }) =>
        kind === "Service" && labels.every(([label, value]) => metadata.labels[label] === value),
    );
    assert.is(services.length, 1);
    const [service] = services;
    const ports = service.spec.ports.map(({ name }: { name: string }) => name);
    assert.ok(ports.includes(monitor.spec.endpoints[0].port), String(ports));
  },
);

real(
  "the alerts are rules that the operator of Prometheus takes, and a field that it has not is refused",
  async () => {
    const text = execFileSync(
      "sed",
      ["-f", "deploy/monitoring/prometheusrule.sed", "deploy/monitoring/rules.yaml"],
      {
        encoding: "utf8",
      },
    ).replace("  name: watchkeeper\n", "  name: watchkeeper\n  namespace: watchkeeper\n");
    assert.equal(kindsOf(await dryRun(text)), ["PrometheusRule"]);
    const pods = await dryRun(readFileSync("deploy/monitoring/podmonitor.yaml", "utf8"));
    const forToken = ["ClusterRoleBinding", "Secret", "ServiceAccount"];
    assert.equal(kindsOf(pods), ["PodMonitor", "PodMonitor", ...forToken].toSorted());
    const monitor = readFileSync("deploy/monitoring/servicemonitor.yaml", "utf8");
    const roles = await dryRun(readFileSync("config/rbac/metrics.yaml", "utf8"));
    assert.equal(kindsOf(roles), ["ClusterRole", "ClusterRoleBinding", "ClusterRoleBinding"]);
    for (const [good, wrong] of [
      [text, text.replace("expr:", "expression:")],
      [monitor, monitor.replace("endpoints:", "ports:")],
    ] as const) {
      assert.is.not(good, wrong);
      const args = ["--kubeconfig", cluster.kubeconfig(cluster.admin.url), "-n", "watchkeeper"];
      const apply = ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"];
      const said = await call(pathOf("kubectl"), [...args, ...apply], { input: wrong });
      assert.is.not(said.code, 0, said.out);
    }
  },
);

for (const file of [
  "deploy/static-pod/watchkeeper.yaml",
  "deploy/static-pod/watchkeeper-b.yaml",
  "deploy/node-local/watchkeeper.yaml",
  "deploy/node-local/watchkeeper-b.yaml",
]) {
  real(`${file} is a pod that an apiserver takes`, async () => {
    assert.equal(kindsOf(await dryRun(readFileSync(file, "utf8"))), ["Pod"]);
  });
}

real("the sidecar component makes of a workload what `manifest sidecar` makes of it", async () => {
  const [component] = await dryRun(await kustomized("deploy/sidecar-example"));
  const [patched] = await dryRun(
    await printed("sidecar", "-f", "deploy/sidecar-example/app.yaml", "--image", "SET-THE-IMAGE"),
  );
  assert.is(component?.kind, "Deployment");
  assert.equal(component?.spec.template.spec, patched?.spec.template.spec);
});

real("the chart is a good one, in its usual form and with all that it can do", async () => {
  const render = (...more: string[]): Promise<string> =>
    helm(
      "template",
      "wk",
      chart,
      "--namespace",
      "watchkeeper",
      "--kube-version",
      "1.36.1",
      ...withImage,
      ...more,
    );
  const withTest = [...whole, "ConfigMap", "Job", "Pod"].toSorted();
  assert.equal(kindsOf(await dryRun(await render())), withTest);
  const sets = [
    "serviceMonitor.enabled=true,dashboard.enabled=true",
    "prometheusRule.enabled=true,prometheusRule.runbookBaseURL=https://git.example/runbooks",
    `fullnameOverride=other,image.digest=sha256:${"a".repeat(64)}`,
    "extraArgs[0]=--pid-file=/tmp/pid,extraEnv[0].name=A,extraEnv[0].value=b",
    "extraVolumes[0].name=tmp,extraVolumes[0].emptyDir.medium=Memory",
    "extraVolumeMounts[0].name=tmp,extraVolumeMounts[0].mountPath=/tmp",
    "strategy.type=Recreate,serviceAccount.annotations.a=b",
    "service.type=LoadBalancer,service.externalTrafficPolicy=Local,service.ipFamilyPolicy=PreferDualStack",
    "service.loadBalancerClass=example.com/vip,service.loadBalancerSourceRanges[0]=10.0.0.0/8",
    "frontProxy.secretName=fp,frontProxy.clientCASecretName=ca",
    "backends[0].name=cp-1,backends[0].url=https://10.0.0.11:6443",
    "config.drain.timeout=30s",
    "podAnnotations.a=b,podLabels.c=d,nodeSelector.e=f",
  ];
  const all = await render(...sets.flatMap((one) => ["--set", one]));
  const expected = withTest.filter((kind) => !kind.startsWith("Role"));
  const monitored = ["ConfigMap", "PrometheusRule", "ServiceMonitor"];
  assert.equal(kindsOf(await dryRun(all)), [...expected, ...monitored].toSorted());
  assert.match(all, `image: "registry.example.com/watchkeeper@sha256:${"a".repeat(64)}"`);
  const onNodes = await render("--namespace", "kube-system", "--set", "mode=DaemonSet");
  const parts = ["ConfigMap", "ConfigMap", "DaemonSet", "Job", "Role", "RoleBinding", "ServiceAccount"];
  assert.equal(kindsOf(await dryRun(onNodes)), parts);
  assert.match(all, "runbook_url: https://git.example/runbooks/WatchkeeperDown.md");
  const file = join(cluster.folder, "helm.yaml");
  const replicated = await render("--set", "replicas.enabled=true,replicas.serverName=wk.example");
  assert.equal(kindsOf(await dryRun(replicated)), [...withTest, "ClusterRoleBinding", "Service"].toSorted());
  const secure = "metrics.secure=true,serviceMonitor.enabled=true";
  const secured = await render("--set", secure);
  const forToken = ["ClusterRole", "ClusterRoleBinding", "ClusterRoleBinding", "Secret", "ServiceAccount"];
  assert.equal(kindsOf(await dryRun(secured)), [...withTest, ...forToken, "ServiceMonitor"].toSorted());
  const securedOnNodes = await render("--namespace", "kube-system", "--set", `mode=DaemonSet,${secure}`);
  assert.equal(kindsOf(await dryRun(securedOnNodes)), [...parts, ...forToken, "PodMonitor"].toSorted());
  for (const text of [secured, securedOnNodes]) {
    assert.match(text, /scheme: HTTPS[^]*path: \/readyz[^]*scheme: https[^]*serverName: \S+\.svc\n/);
    assert.not.match(text, "scheme: HTTP,");
  }
  for (const text of [all, onNodes, replicated, secured, securedOnNodes, await render()]) {
    // The command reports files that do not exist on this machine, but nothing about the configuration itself.
    writeFileSync(file, configIn(text));
    const said = await call(process.execPath, [bin, "check", "--offline", "--config", file]);
    assert.match(said.out, `✓ ${file}: valid`, said.err);
  }
});

real(
  "helm installs, upgrades and removes the chart, and a changed configuration replaces the pods",
  async () => {
    const flags = ["--kubeconfig", cluster.kubeconfig(cluster.admin.url), "--namespace", "watchkeeper"];
    const checksum = async (): Promise<string> => {
      const path = "{.spec.template.metadata.annotations.checksum/config}";
      const get = ["get", "deployment", "wk-watchkeeper", "-n", "watchkeeper", "-o", `jsonpath=${path}`];
      return (await kubectl(get)).out;
    };
    // No kubelet runs the check's Job.
    flags.push(...withImage, "--set", "configCheck.enabled=false");
    await helm("install", "wk", chart, ...flags);
    const first = await checksum();
    assert.match(first, /^[0-9a-f]{64}$/);
    await helm("upgrade", "wk", chart, ...flags, "--set", "replicaCount=3");
    assert.is(await checksum(), first);
    await helm("upgrade", "wk", chart, ...flags, "--set", "config.drain.timeout=30s");
    assert.is.not(await checksum(), first);
    await helm("uninstall", "wk", ...flags.slice(0, 4));
    assert.is(
      (await kubectl(["get", "all,configmap", "-n", "watchkeeper", "-l", "helm.sh/chart", "-o", "name"])).out,
      "",
    );
  },
);

real("the test pod of `helm test` succeeds only if an apiserver answers", async () => {
  const pod = (
    await helm(
      "template",
      "wk",
      chart,
      ...withImage,
      "--kube-version",
      "1.36.1",
      "-s",
      "templates/tests/connection.yaml",
    )
  )
    .split("args:\n")
    .at(-1);
  const [, script = ""] = /- \|\n([^]*?)\n {8}- /.exec(pod ?? "") ?? [];
  const outcome = async (host: string, port: string): Promise<string> => {
    const { code, out, err } = await call(process.execPath, ["-e", script, host, port]);
    return `${code} ${out}${err}`;
  };
  const { hostname, port } = new URL(cluster.apiserver(0).url);
  assert.match(await outcome(hostname, port), /^0 status (200|401)\n$/);
  assert.match(await outcome("127.0.0.1", `${await freePort()}`), /^1 .*ECONNREFUSED/);
});

/** Returns the configuration in a rendered ConfigMap. */
function configIn(text: string): string {
  const [, block = ""] = /\n {2}watchkeeper\.yaml: \|\n((?: {4}.*\n|\n)+)/.exec(text) ?? [];
  assert.ok(block.length > 0, text);
  return block.replace(/^ {4}/gm, "");
}

/**
 * Writes this configuration to a file, with this cluster's addresses and keys and with ports that are free on this
 * machine. Returns the file, and the URLs of the listener and of the metrics for a proxy that is started with the file.
 */
async function served(text: string): Promise<{ url: string; metrics: string; file: string }> {
  const [port, metrics] = [await freePort(), await freePort()];
  const kubeconfigFile = cluster.kubeconfig(cluster.admin.url);
  const backends = cluster.apiservers.map(
    ({ url }, index) => `    - {name: cp-${index + 1}, url: "${url}"}\n`,
  );
  const here = text
    .replace(/( {4}backends:\n)(?: {6}- .*\n)+/, (_, head: string) => head + backends.join(""))
    .replace("{type: EndpointSlice}", `{type: EndpointSlice, kubeconfigFile: ${kubeconfigFile}}`)
    .replace(/":8443"|127\.0\.0\.1:7443/, `"127.0.0.1:${port}"`)
    .replace(/metricsAddress: .*/, `metricsAddress: "127.0.0.1:${metrics}"\n  address: 127.0.0.1:0`)
    .replaceAll("/etc/kubernetes/pki/", `${cluster.folder}/`)
    .replaceAll("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", cluster.caFile)
    .replaceAll("/var/run/secrets/watchkeeper-tls/tls.", `${cluster.folder}/apiserver.`);
  const file = join(cluster.folder, `shape-${port}.yaml`);
  writeFileSync(file, here);
  return { url: `https://127.0.0.1:${port}`, metrics: `http://127.0.0.1:${metrics}`, file };
}

/** Issues every file that kubeadm would create, under kubeadm's file name. */
function issueServing(): void {
  const names = ["DNS:localhost", "DNS:kubernetes.default.svc", "IP:127.0.0.1"];
  cluster.pki.issue({ name: "apiserver", subject: "/CN=kube-apiserver", names });
}

const shapes: readonly (readonly [shape: string, text: () => string])[] = [
  ["static pod", () => readFileSync("deploy/static-pod/config.yaml", "utf8")],
  ["node-local pod", () => readFileSync("deploy/node-local/config.yaml", "utf8")],
  ["deployment", () => configIn(readFileSync("deploy/deployment/config.yaml", "utf8"))],
];

for (const [shape, text] of shapes) {
  real(`the ${shape}'s configuration serves kubectl, with one apiserver killed as with both`, async () => {
    issueServing();
    const { url, metrics, file } = await served(text());
    const logFile = join(cluster.folder, `${shape.replaceAll(" ", "-")}.log`);
    const started = Date.now();
    const child = new Child({
      name: shape,
      command: process.execPath,
      args: [bin, "run", "--config", file],
      logFile,
    });
    try {
      await child.ready(60_000, () => isReady(metrics));
      figure(`${shape}: ready after ${Date.now() - started} ms`);
      await sleep(2_500);
      const before = await kubectl(["get", "namespaces", "-o", "name"], undefined, url);
      assert.match(before.out, "namespace/kube-system");
      const client = cluster.pki.issue({ name: "kubelet", subject: "/O=system:masters/CN=kubelet" });
      const cert = [`--client-certificate=${client.certFile}`, `--client-key=${client.keyFile}`];
      const asClient = ["--server", url, `--certificate-authority=${cluster.caFile}`, ...cert];
      const whoami = await call(pathOf("kubectl"), [...asClient, "auth", "whoami", "-o", "name"]);
      if (shape === "deployment") assert.is.not(whoami.code, 0, "a client certificate is refused by name");
      else assert.is(whoami.code, 0, whoami.err);
      const victim = cluster.apiserver(0);
      await victim.kill();
      const during = await kubectl(["get", "namespaces", "-o", "name"], undefined, url);
      assert.is(during.out, before.out);
      await victim.restart();
    } finally {
      await child.stop();
    }
  });
}

async function isReady(metrics: string): Promise<boolean> {
  return fetch(`${metrics}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

test.run();
