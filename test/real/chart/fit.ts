import * as assert from "uvu/assert";
import { parseConfig } from "../../../src/ops/config/config.ts";
import { isProblems } from "../../../src/ops/config/problem.ts";
import { kindsIn, type Rendered } from "./objects.ts";
import type { Values } from "./values.ts";

const isPart = (part: Values, whole: Values): boolean =>
  Object.entries(part).every(([key, value]) => whole[key] === value);

const isName = (text: unknown): boolean =>
  typeof text === "string" && text.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text);

type Parts = {
  readonly objects: readonly Rendered[];
  readonly of: (kind: string) => readonly Rendered[];
  readonly workload: Rendered;
  /** Those of the pod template. */
  readonly metadata: Rendered;
  readonly spec: Rendered;
  readonly container: Rendered;
  /** Names and numbers of the container's ports. */
  readonly ports: ReadonlyMap<unknown, unknown>;
};

/** Names are names, and labels, annotations and selectors are strings. */
function assertNames({ objects, metadata, spec }: Parts): void {
  for (const { kind, metadata: own } of objects) {
    assert.ok(
      /Role/.test(kind) ? /^[a-z][-a-z0-9.]*$/.test(own.name) : isName(own.name),
      `${kind} ${own.name}`,
    );
    if (kind === "Service") assert.match(own.name, /^[a-z]/);
    assert.ok(own.namespace === undefined ? kind.startsWith("Cluster") : isName(own.namespace), kind);
  }
  for (const map of objects.flatMap((one) => [one.metadata.labels, one.metadata.annotations]))
    for (const value of Object.values(map ?? {})) assert.type(value, "string");
  for (const map of [metadata.labels, metadata.annotations, spec.nodeSelector ?? {}])
    for (const value of Object.values(map)) assert.type(value, "string");
}

/** Selectors select the pods, and ports are ports of the container. */
function assertServices({ of, workload, metadata, ports }: Parts): void {
  assert.ok(isPart(workload.spec.selector.matchLabels, metadata.labels));
  for (const service of of("Service")) {
    assert.ok(isPart(service.spec.selector, metadata.labels), service.metadata.name);
    for (const { name, targetPort } of service.spec.ports) {
      assert.ok(ports.has(targetPort), `${service.metadata.name} ${targetPort}`);
      // Only the port of the clients may be reached from outside of the cluster.
      if (name !== "https") assert.ok(["ClusterIP", undefined].includes(service.spec.type), name);
    }
  }
  for (const { spec: own } of of("PodDisruptionBudget"))
    assert.ok(isPart(own.selector.matchLabels, metadata.labels));
}

/** Only the port of the clients is open to every pod. */
function assertNetwork({ of, metadata, ports }: Parts): void {
  for (const { spec: own } of of("NetworkPolicy")) {
    assert.ok(isPart(own.podSelector.matchLabels, metadata.labels));
    for (const { ports: opened, from } of own.ingress)
      for (const { port } of opened) {
        assert.ok(ports.has(port), port);
        assert.ok(port === "https" || (Array.isArray(from) && from.length > 0), port);
      }
    for (const { port } of own.egress.flatMap((rule: Rendered) => rule.ports))
      assert.ok(ports.has(port) || Number.isInteger(port), String(port));
  }
}

/** A monitor finds one Service, or the pods, as the job of the alerts. */
function assertMonitors({ of, metadata, ports }: Parts): void {
  for (const { spec: own } of of("ServiceMonitor")) {
    const found = of("Service").filter((one) => isPart(own.selector.matchLabels, one.metadata.labels));
    assert.is(found.length, 1);
    assert.is(own.endpoints[0].port, found[0].spec.ports[0].name);
    assert.is(found[0].metadata.labels[own.jobLabel], "watchkeeper");
  }
  for (const { spec: own } of of("PodMonitor")) {
    assert.ok(isPart(own.selector.matchLabels, metadata.labels));
    assert.ok(ports.has(own.podMetricsEndpoints[0].port));
    assert.is(metadata.labels[own.jobLabel], "watchkeeper");
  }
}

/** Every binding is for the account of the pods, or for that of Prometheus. */
function assertAccounts({ objects, of, spec }: Parts): void {
  const accounts = of("ServiceAccount").map((one) => one.metadata.name);
  for (const binding of [...of("RoleBinding"), ...of("ClusterRoleBinding")]) {
    const isReader = binding.metadata.name.endsWith("metrics-reader");
    for (const subject of binding.subjects) {
      assert.is(subject.namespace, "watchkeeper");
      assert.is.not(subject.name, "default");
      if (isReader) assert.ok(accounts.includes(subject.name));
      else assert.is(subject.name, spec.serviceAccountName);
    }
    const role = objects.find(
      (one) => one.kind === binding.roleRef.kind && one.metadata.name === binding.roleRef.name,
    );
    assert.ok(role !== undefined || binding.roleRef.name === "system:auth-delegator");
  }
}

/** No volume and no path occurs twice, and the containers have the least rights. */
function assertVolumes({ of, spec }: Parts): void {
  for (const pod of [spec, ...of("Job").map((one) => one.spec.template.spec)]) {
    const volumes = pod.volumes.map((one: Rendered) => one.name);
    assert.is(new Set(volumes).size, volumes.length, String(volumes));
    for (const { volumeMounts, image: own, securityContext } of pod.containers.slice(0, 1)) {
      const paths = volumeMounts.map((one: Rendered) => one.mountPath);
      assert.is(new Set(paths).size, paths.length, String(paths));
      for (const { name } of volumeMounts) assert.ok(volumes.includes(name), name);
      assert.match(own, /^registry\.example\.com\/watchkeeper[:@]./);
      assert.equal([securityContext.readOnlyRootFilesystem, pod.securityContext.runAsNonRoot], [true, true]);
    }
  }
}

/** watchkeeper takes the configuration, whose files are mounted and whose ports are those of the probes. */
function assertConfig({ of, workload, spec, container, ports }: Parts): void {
  const text: string = of("ConfigMap").find((one) => one.metadata.name === workload.metadata.name).data[
    "watchkeeper.yaml"
  ];
  const config = parseConfig(text, "watchkeeper.yaml");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  for (const job of of("ConfigMap").filter((one) => one.metadata.name.endsWith("-check")))
    assert.is(job.data["watchkeeper.yaml"], text);
  const mounts: readonly string[] = container.volumeMounts.map((one: Rendered) => `${one.mountPath}/`);
  for (const [, file = ""] of text.matchAll(/File: (\S+)/g)) {
    const isMounted = mounts.some((one) => file.startsWith(one));
    assert.ok(isMounted || file.startsWith("/var/run/secrets/kubernetes.io/serviceaccount/"), file);
  }
  const hasTls = config.admin.metrics.tls !== undefined;
  for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
    assert.is(ports.get(probe.httpGet.port) ?? probe.httpGet.port, config.admin.metricsAddress.port);
    assert.is(probe.httpGet.scheme, hasTls ? "HTTPS" : "HTTP");
    assert.is(probe.httpGet.host, workload.kind === "DaemonSet" ? "127.0.0.1" : undefined);
  }
  if (config.clusters.some(({ tls }) => tls?.frontProxy !== undefined || tls?.impersonator !== undefined))
    assert.ok(Object.keys(spec.nodeSelector).length > 0);
}

/** Asserts what holds for the objects of every set of values. */
export function assertFit(objects: readonly Rendered[]): void {
  const of = (kind: string): readonly Rendered[] => kindsIn(objects, kind);
  const [workload] = [...of("Deployment"), ...of("DaemonSet")];
  const { metadata, spec } = workload.spec.template;
  const [container] = spec.containers;
  const ports = new Map<unknown, unknown>(
    (container.ports ?? []).map((one: Rendered) => [one.name, one.containerPort]),
  );
  const parts: Parts = { objects, of, workload, metadata, spec, container, ports };
  assertNames(parts);
  assertServices(parts);
  assertNetwork(parts);
  assertMonitors(parts);
  assertAccounts(parts);
  assertVolumes(parts);
  assertConfig(parts);
}
