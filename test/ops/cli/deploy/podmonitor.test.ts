import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse, parseAllDocuments } from "yaml";
import { isLoopback } from "../../../../src/base/address.ts";
import { staticPod, staticPodConfig } from "../../../../src/ops/cli/deploy/static-pod.ts";
import { hasUnprotectedMetrics } from "../../../../src/ops/config/admin.ts";
import { parseConfig } from "../../../../src/ops/config/config.ts";
import { isProblems } from "../../../../src/ops/config/problem.ts";

const test = suite("ops/cli/deploy/podmonitor");

const read = (file: string): string => readFileSync(file, "utf8");
const objectsIn = (file: string): Map<string, ReturnType<typeof JSON.parse>> =>
  new Map(
    parseAllDocuments(read(file)).map((document) => {
      const one = document.toJS();
      return [`${one.kind}/${one.metadata.name}`, one];
    }),
  );

const nodeLocal = "deploy/node-local";
const objects = objectsIn("deploy/monitoring/podmonitor.yaml");
const monitors = ["watchkeeper", "watchkeeper-own-certificate"].map((name) =>
  objects.get(`PodMonitor/${name}`),
);
const [{ metadata, spec }] = monitors;
const [endpoint] = spec.podMetricsEndpoints;

const wishes = {
  image: "w",
  port: 8443,
  metricsPort: 7481,
  backends: [{ name: "cp-1", url: "https://10.0.0.11:6443" }],
};
const secured = (file: string, input = read(`${nodeLocal}/${file}`)): string => {
  const { stdout, status } = spawnSync("sed", ["-f", `${nodeLocal}/secure-metrics.sed`], { input });
  assert.is(status, 0);
  return String(stdout);
};

/** For each shape with secure metrics: its configuration, its two pods, and the name of the PodMonitor that selects them. */
const shapes = [
  ...[false, true].map((isPassthrough) => {
    const own = { ...wishes, isPassthrough, hasSecureMetrics: true };
    return {
      name: `static-pod${isPassthrough ? " --passthrough" : ""}`,
      config: staticPodConfig(own),
      pods: [false, true].map((isSecond) => staticPod({ ...own, isSecond })),
      monitor: isPassthrough ? "watchkeeper-own-certificate" : "watchkeeper",
    };
  }),
  {
    name: "node-local",
    config: secured("config.yaml"),
    pods: ["watchkeeper.yaml", "watchkeeper-b.yaml"].map((file) => secured(file)),
    monitor: "watchkeeper-own-certificate",
  },
];

type Labels = Readonly<Record<string, string>>;

/** The names of the PodMonitors that select a pod with these labels. */
function selecting(labels: Labels): readonly string[] {
  const chosen = monitors.filter(({ spec: { selector } }) => {
    const { matchLabels, matchExpressions = [] } = selector;
    for (const { operator } of matchExpressions) assert.is(operator, "DoesNotExist");
    return (
      Object.entries(matchLabels).every(([label, value]) => labels[label] === value) &&
      matchExpressions.every(({ key }: { key: string }) => !(key in labels))
    );
  });
  return chosen.map((one) => one.metadata.name);
}

for (const { name, config, pods, monitor } of shapes) {
  test(`${name}: one PodMonitor selects both pods, as the job of the alerts, and the port of their probes`, () => {
    const { spec: own } = objects.get(`PodMonitor/${monitor}`);
    for (const [at, text] of pods.entries()) {
      const pod = parse(text);
      assert.is(pod.metadata.namespace, metadata.namespace);
      assert.equal(selecting(pod.metadata.labels), [monitor]);
      assert.is(pod.metadata.labels[own.jobLabel], "watchkeeper");
      const [container] = pod.spec.containers;
      const [{ port, scheme }] = own.podMetricsEndpoints;
      const { containerPort } = container.ports.find((one: { name: string }) => one.name === port);
      assert.is(containerPort, 7481 + at);
      assert.is(container.args.includes(":7482"), at === 1);
      for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
        const { httpGet } = container[probe];
        assert.equal([httpGet.port, httpGet.scheme], [containerPort, scheme.toUpperCase()], probe);
      }
    }
  });

  test(`${name}: other machines reach the metrics, with TLS and a token of the cluster`, () => {
    const parsed = parseConfig(config, "config.yaml");
    if (isProblems(parsed)) throw new Error(JSON.stringify(parsed));
    const { admin } = parsed;
    assert.not.ok(isLoopback(admin.metricsAddress.host) || hasUnprotectedMetrics(admin));
    assert.ok(admin.metrics.authorization?.kubeconfigFile);
  });
}

test("secure-metrics.sed changes nothing in files that it has changed before", () => {
  for (const file of ["config.yaml", "watchkeeper.yaml", "watchkeeper-b.yaml"])
    assert.is(secured(file, secured(file)), secured(file));
});

test("no PodMonitor selects the node-local pods as shipped, because their metrics are on loopback", () => {
  assert.equal(selecting(parse(read(`${nodeLocal}/watchkeeper.yaml`)).metadata.labels), []);
});

test("keepalived's check requests /readyz from both pods by the scheme that is its argument; default: http", () => {
  const script = read("deploy/keepalived/check_watchkeeper.sh");
  const asked = (...args: string[]): string =>
    String(spawnSync("sh", ["-c", `curl() { echo "$*"; return 1; }\n${script}`, "check", ...args]).stdout);
  for (const port of [7481, 7482]) {
    assert.match(asked(), ` http://127.0.0.1:${port}/readyz?exclude=intake`);
    assert.match(asked("https"), `--insecure`);
    assert.match(asked("https"), ` https://127.0.0.1:${port}/readyz?exclude=intake`);
  }
});

test("its token belongs to an account that has the role of config/rbac/metrics.yaml, and no other", () => {
  const secret = objects.get(`Secret/${endpoint.authorization.credentials.name}`);
  const account = secret.metadata.annotations["kubernetes.io/service-account.name"];
  assert.is(secret.type, "kubernetes.io/service-account-token");
  for (const one of [secret, objects.get(`ServiceAccount/${account}`)])
    assert.is(one.metadata.namespace, metadata.namespace);
  const { roleRef, subjects } = objects.get("ClusterRoleBinding/watchkeeper-podmonitor");
  assert.equal(subjects, [{ kind: "ServiceAccount", name: account, namespace: metadata.namespace }]);
  const role = objectsIn("config/rbac/metrics.yaml").get(`ClusterRole/${roleRef.name}`);
  assert.equal(role.rules, [{ nonResourceURLs: ["/metrics"], verbs: ["get"] }]);
});

test("the static pod serves metrics with the apiserver's certificate, and all other pods with the name of the second PodMonitor", () => {
  const [own, other] = monitors.map((one) => one.spec.podMetricsEndpoints[0]);
  const config = parse(shapes[0]?.config ?? "");
  assert.is(own.tlsConfig.serverName, config.clusters[0].tls.serverName);
  const readme = read("deploy/monitoring/README.md");
  assert.match(readme, `watchkeeper pki init --dir metrics-pki --host ${other.tlsConfig.serverName}\``);
  assert.match(
    readme,
    `create configmap ${other.tlsConfig.ca.configMap.name} --from-file=${other.tlsConfig.ca.configMap.key}=`,
  );
  assert.equal(other.authorization, own.authorization);
  assert.equal([own.scheme, other.scheme], ["https", "https"]);
});

test.run();
