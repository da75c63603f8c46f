/**
 * What every pod of deploy/ must have, whatever its shape: probes that do not restart it while the apiservers are down,
 * and mounts that show a renewed file and no key that the pod does not need.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse, parseAllDocuments } from "yaml";
import { deploymentText } from "../../../../src/ops/cli/deploy/deployment.ts";
import { staticPod } from "../../../../src/ops/cli/deploy/static-pod.ts";

const test = suite("ops/cli/deploy/pod-specs");

const chart = "deploy/helm/watchkeeper/templates";
const read = (file: string): string => readFileSync(file, "utf8");
const generated = {
  image: "w",
  port: 8443,
  metricsPort: 7481,
  isSecond: false,
  hasSecureMetrics: false,
  backends: [],
};

/** Everything that makes a pod, by its name: files of deploy/, and what the generators print for other wishes. */
const sources: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    globSync("deploy/**/*.yaml", { exclude: ["**/values.yaml"] })
      .toSorted()
      .map((file) => [file, read(file)]),
  ),
  "manifest static-pod": staticPod({ ...generated, isPassthrough: false }),
  "manifest static-pod --passthrough": staticPod({ ...generated, isPassthrough: true }),
  "manifest static-pod --secure-metrics": staticPod({
    ...generated,
    isPassthrough: false,
    hasSecureMetrics: true,
  }),
  "manifest deployment": deploymentText({ image: "w", namespace: "edge", replicas: 3 }),
};

/** Returns the paths that the probes of this kind request, in YAML, in CEL and in the chart's template. */
function probed(text: string, kind: "startup" | "liveness" | "readiness"): readonly string[] {
  const asked = new RegExp(`${kind}Probe:[^]*?(?:path: "?|"watchkeeper.probe" \\(list \\. ")(/\\w+)`, "g");
  return Array.from(text.matchAll(asked), ([, path = ""]) => path);
}

test("the startup and liveness probes of every shape ask /livez, which passes while all apiservers are down", () => {
  const started = Object.entries(sources).filter(([, text]) => text.includes("startupProbe:"));
  assert.equal(
    started.map(([name]) => name),
    [
      "deploy/deployment/deployment.yaml",
      `${chart}/workload.yaml`,
      "deploy/node-local/watchkeeper-b.yaml",
      "deploy/node-local/watchkeeper.yaml",
      "deploy/sidecar/pod.yaml",
      "deploy/sidecar/policy.yaml",
      "deploy/static-pod/watchkeeper-b.yaml",
      "deploy/static-pod/watchkeeper.yaml",
      "manifest static-pod",
      "manifest static-pod --passthrough",
      "manifest static-pod --secure-metrics",
      "manifest deployment",
    ],
  );
  for (const [name, text] of started) {
    assert.equal(probed(text, "startup"), ["/livez"], name);
    // A sidecar has neither of the other probes: the kubelet would restart it, or take its pod out of its Service.
    const isSidecar = name.startsWith("deploy/sidecar/");
    assert.equal(probed(text, "liveness"), isSidecar ? [] : ["/livez"], name);
    assert.equal(probed(text, "readiness"), isSidecar ? [] : ["/readyz"], name);
  }
});

test("the chart's probes request the path that the template names, in each mode", () => {
  const [, probe = ""] =
    /define "watchkeeper.probe"([^]*?\{\{- end \}\}\n)\{\{- end \}\}/.exec(read(`${chart}/_names.tpl`)) ?? [];
  assert.equal(
    Array.from(probe.matchAll(/path: ([^,]+),/g), ([, path]) => path),
    ["{{ index . 1 }}", "{{ index . 1 }}"],
  );
});

type Mount = { readonly name: string; readonly mountPath: string; readonly subPath?: string };
type Pod = {
  readonly securityContext?: { readonly runAsNonRoot?: boolean; readonly runAsUser?: number };
  readonly containers: readonly {
    readonly volumeMounts?: readonly (Mount & { readonly readOnly?: boolean })[];
    readonly securityContext?: {
      readonly runAsNonRoot?: boolean;
      readonly runAsUser?: number;
      readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] };
    };
  }[];
  readonly volumes?: readonly {
    readonly name: string;
    readonly hostPath?: { readonly path: string; readonly type: string };
  }[];
};

const podOf = (text: string): Pod => {
  const [pod] = parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter(({ kind }) => kind === "Pod" || kind === "Deployment");
  return pod.kind === "Pod" ? pod.spec : pod.spec.template.spec;
};

const pods = Object.entries(sources)
  .filter(([name, text]) => !name.startsWith(chart) && /^kind: (Pod|Deployment)$/m.test(text))
  .map(([name, text]) => [name, podOf(text)] as const);

const secretKeys = ["ca.key", "sa.key", "front-proxy-ca.key", "etcd/ca.key"].map(
  (file) => `/etc/kubernetes/pki/${file}`,
);

/** The paths of a node that the pod mounts. */
const hostPaths = ({ volumes = [] }: Pod): readonly string[] =>
  volumes.flatMap(({ hostPath }) => (hostPath === undefined ? [] : [hostPath.path.replace(/\/+$/, "")]));

const shows = (path: string, key: string): boolean => path === key || key.startsWith(`${path}/`);

/** The pods that mount a directory of the node with a CA's key in it, because they need another file there. */
const withDirectory = ["deploy/node-local/watchkeeper-b.yaml", "deploy/node-local/watchkeeper.yaml"];

test("no pod mounts the key of a CA, and only node-local pods mount a directory that may contain one", () => {
  assert.ok(pods.length >= 8);
  const mounting = pods.filter(([, pod]) =>
    hostPaths(pod).some((path) => secretKeys.some((key) => shows(path, key))),
  );
  assert.equal(
    mounting.map(([name]) => name),
    withDirectory,
  );
  for (const [name, pod] of mounting)
    for (const path of hostPaths(pod)) assert.not.ok(secretKeys.includes(path), name);
});

test("a pod that mounts such a directory runs as a user that cannot read the keys, and cannot write there", () => {
  for (const name of withDirectory) {
    const { securityContext, containers, volumes } = podOf(sources[name] ?? "");
    // kubeadm's keys belong to root and have mode 0600, so only root or CAP_DAC_OVERRIDE reads them.
    assert.is(securityContext?.runAsNonRoot, true, name);
    assert.ok((securityContext?.runAsUser ?? 0) > 0, name);
    const kept = volumes?.find(({ hostPath }) => hostPath?.path === "/etc/kubernetes/pki");
    for (const { securityContext: own = {}, volumeMounts = [] } of containers) {
      assert.equal([own.runAsUser, own.runAsNonRoot], [undefined, undefined], name);
      assert.equal([own.capabilities?.drop, own.capabilities?.add], [["ALL"], undefined], name);
      const mounts = volumeMounts.filter((mount) => mount.name === kept?.name);
      assert.ok(
        mounts.every(({ readOnly }) => readOnly === true),
        name,
      );
    }
  }
});

test("node-local pods mount the directory of the CA, because a mounted file does not follow a rotation by rename", () => {
  const { clusters } = parse(read("deploy/node-local/config.yaml"));
  const files: readonly string[] = clusters.map(({ tls }: { tls: { caFile: string } }) => tls.caFile);
  assert.equal(files, ["/etc/kubernetes/pki/ca.crt"]);
  for (const name of withDirectory) {
    const { containers, volumes = [] } = podOf(sources[name] ?? "");
    const mounts = containers.flatMap(({ volumeMounts = [] }) => volumeMounts);
    for (const file of files) {
      // A mount further down hides what a mount above it shows, so the longest path decides.
      const [mount] = mounts
        .filter(({ mountPath }) => shows(mountPath, file))
        .toSorted((a, b) => b.mountPath.length - a.mountPath.length);
      assert.equal([mount?.mountPath, mount?.subPath], [dirname(file), undefined], name);
      const volume = volumes.find((one) => one.name === mount?.name);
      assert.equal(volume?.hostPath, { path: dirname(file), type: "Directory" }, name);
    }
  }
});

test("no pod mounts a part of a volume by subPath, which a change of the volume does not reach", () => {
  for (const [name, text] of Object.entries(sources)) assert.not.match(text, /\bsubPath/, name);
});

test("the chart mounts nothing of the node, and only the certificate of the CA that verifies clients", () => {
  const text = ["workload.yaml", "check.yaml", "_names.tpl", "_config.tpl"]
    .map((one) => read(`${chart}/${one}`))
    .join("");
  assert.not.match(text, "hostPath");
  const [, clientCA = ""] = /- name: client-ca\n {2}secret:\n((?: {4}.*\n)+)/.exec(text) ?? [];
  assert.match(clientCA, "items: [{key: ca.crt, path: ca.crt}]");
  assert.match(text, '"clientCAFile" "/var/run/secrets/watchkeeper-client-ca/ca.crt"');
});

test.run();
