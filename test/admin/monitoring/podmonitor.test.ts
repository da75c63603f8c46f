import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse, parseAllDocuments } from "yaml";
import { parseConfig } from "../../../src/config/config.ts";
import { isProblems } from "../../../src/config/problem.ts";

const test = suite("admin/monitoring/podmonitor");

const read = (file: string): string => readFileSync(file, "utf8");
const objectsIn = (file: string): Map<string, ReturnType<typeof JSON.parse>> =>
  new Map(
    parseAllDocuments(read(file)).map((document) => {
      const one = document.toJS();
      return [`${one.kind}/${one.metadata.name}`, one];
    }),
  );

const objects = objectsIn("config/monitoring/podmonitor.yaml");
const { metadata, spec } = objects.get("PodMonitor/watchkeeper");
const [endpoint] = spec.podMetricsEndpoints;

for (const name of ["watchkeeper", "watchkeeper-b"])
  test(`the PodMonitor selects the static pod ${name}, as the job of the alerts, and the port of its probes`, () => {
    const pod = parse(read(`deploy/static-pod/${name}.yaml`));
    assert.is(pod.metadata.namespace, metadata.namespace);
    for (const [label, value] of Object.entries(spec.selector.matchLabels))
      assert.is(pod.metadata.labels[label], value);
    assert.is(pod.metadata.labels[spec.jobLabel], "watchkeeper");
    const [container] = pod.spec.containers;
    const port = container.ports?.find((one: { name: string }) => one.name === endpoint.port);
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"])
      assert.is(port?.containerPort, container[probe].httpGet.port, probe);
  });

test("the PodMonitor selects no node-local pod, because its metrics are on loopback", () => {
  const { labels } = parse(read("deploy/node-local/watchkeeper.yaml")).metadata;
  assert.not.ok(Object.entries(spec.selector.matchLabels).every(([label, value]) => labels[label] === value));
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

test("it expects TLS and a token, which the setting on the page security.md turns on in the static pod", () => {
  const [, section = ""] =
    /### Authorization of metrics.*?```yaml\n(.*?)```/s.exec(read("docs/security.md")) ?? [];
  const text = read("deploy/static-pod/config.yaml").replace(/^admin:\n.*/ms, section);
  const config = parseConfig(text, "config.yaml");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  const { admin, clusters } = config;
  assert.ok(admin.metrics.tls && admin.metrics.authorization);
  assert.is(endpoint.scheme, "https");
  assert.is(endpoint.tlsConfig.serverName, clusters[0].tls?.serverName);
});

test.run();
