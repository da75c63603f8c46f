/**
 * deploy/sidecar/policy.yaml on a real apiserver. An unmodified pod in a labelled namespace gets the same containers,
 * variables and volumes that `watchkeeper manifest sidecar` adds to a manifest. test/real/sidecar.test.ts runs clients
 * in exactly this environment.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { order } from "./rig/ask.ts";
import { call } from "./rig/call.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, pathOf, testWith } from "./rig/parts.ts";

const test = suite("real/sidecar-policy");
const real = testWith(test, [...clusterNeeds, "kubectl"]);
const bin = fileURLToPath(new URL("../../bin/watchkeeper.js", import.meta.url));

type Container = {
  readonly name: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
};

type PodSpec = {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes: readonly { readonly name: string }[];
};

let cluster: Cluster;

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 1, serviceAccounts: true });
  for (const [name, labels] of [
    ["plain", {}],
    ["labelled", { "watchkeeper.dev/sidecar": "enabled" }],
  ] as const) {
    await make("/api/v1/namespaces", { kind: "Namespace", metadata: { name, labels } });
    const path = `/api/v1/namespaces/${name}/serviceaccounts`;
    await make(path, { kind: "ServiceAccount", metadata: { name: "default" } });
  }
  await kubectl(["apply", "-f", "deploy/sidecar/policy.yaml"]);
});

test.after(async () => {
  if (real.canRun) await cluster.stop();
});

async function make(path: string, body: object): Promise<void> {
  await order(cluster.admin, { method: "POST", path, body: { apiVersion: "v1", ...body } });
}

async function kubectl(args: readonly string[], input = ""): Promise<string> {
  const all = ["--kubeconfig", cluster.kubeconfig(cluster.admin.url), ...args];
  const said = await call(pathOf("kubectl"), all, { input });
  assert.is(said.code, 0, said.err);
  assert.not.match(said.err, /warning/i);
  return said.out;
}

const second = { name: "second", image: "second:1" };
const helper = { name: "helper", image: "busybox" };
const app = { name: "app", image: "app:1", env: [{ name: "A", value: "b" }] };

function podOf(spec: object, labels: Record<string, string> = {}): string {
  return JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "app", labels }, spec });
}

const unmodified = podOf({
  initContainers: [helper],
  containers: [app, second],
});

/** Returns the pod spec that the apiserver would store. */
async function admitted(namespace: string, manifest: string): Promise<PodSpec> {
  const args = [`--namespace=${namespace}`, "create", "--dry-run=server", "-o", "json", "-f", "-"];
  const { spec } = JSON.parse(await kubectl(args, manifest)) as { spec: PodSpec };
  return spec;
}

/** Returns the parts of a pod spec that concern the sidecar, sorted by name, so that two pods can be compared. */
function viewOf({ initContainers = [], containers, volumes }: PodSpec): object {
  const byName = <T extends { readonly name: string }>(all: readonly T[]): readonly T[] =>
    all.toSorted((a, b) => a.name.localeCompare(b.name));
  const view = (one: Container): object => ({
    ...one,
    env: byName(one.env ?? []),
    volumeMounts: byName(one.volumeMounts),
  });
  return {
    initContainers: initContainers.map(view),
    containers: containers.map(view),
    volumes: byName(volumes.filter(({ name }) => !name.startsWith("kube-api-access-"))),
  };
}

const hasSidecar = ({ initContainers = [] }: PodSpec): boolean =>
  initContainers.some(({ name }) => name === "watchkeeper");

real("an unmodified pod gets the environment, the CA and the sidecar of `manifest sidecar`", async () => {
  const printed = await call(
    process.execPath,
    [bin, "manifest", "sidecar", "-f", "-", "--image", "SET-THE-IMAGE"],
    {
      input: unmodified,
    },
  );
  assert.is(printed.code, 0, printed.err);
  const patched = await admitted("plain", printed.out);
  // A new policy takes effect a moment after it is created.
  let got = await admitted("labelled", unmodified);
  for (let tries = 0; tries < 50 && !hasSidecar(got); tries += 1) {
    await sleep(200);
    got = await admitted("labelled", unmodified);
  }
  assert.equal(viewOf(got), viewOf(patched));
});

real("a pod that cannot use the sidecar, or has one, stays as it is", async () => {
  const own = { name: "app", image: "app:1", env: [{ name: "KUBERNETES_SERVICE_HOST", value: "10.0.0.1" }] };
  const mountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
  const mounting = { ...app, volumeMounts: [{ name: "own", mountPath }] };
  // A pod with a second container, to which the apiserver also adds its own token volume.
  const volumes = [{ name: "own", emptyDir: {} }];
  for (const [why, namespace, pod] of [
    ["namespace without the label", "plain", unmodified],
    ["host network", "labelled", podOf({ hostNetwork: true, containers: [app] })],
    ["no service account", "labelled", podOf({ automountServiceAccountToken: false, containers: [app] })],
    ["an address of its own", "labelled", podOf({ containers: [own] })],
    [
      "a port of the sidecar",
      "labelled",
      podOf({ containers: [{ ...app, ports: [{ containerPort: 7443 }] }] }),
    ],
    ["a service account of its own", "labelled", podOf({ containers: [mounting, second], volumes })],
    ["label", "labelled", podOf({ containers: [app] }, { "watchkeeper.dev/sidecar": "disabled" })],
  ] as const) {
    const spec = await admitted(namespace, pod);
    assert.not.ok(hasSidecar(spec), why);
    assert.equal(
      spec.containers.flatMap(({ env = [] }) => env).filter(({ value }) => value === "127.0.0.1"),
      [],
      why,
    );
  }
});

test.run();
