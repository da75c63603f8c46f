import * as assert from "uvu/assert";
import { kindsIn, type Rendered } from "./objects.ts";
import {
  backends,
  image,
  monitor,
  nodes,
  onControlPlane,
  pair,
  replicas,
  secure,
  type Values,
} from "./values.ts";

type Check = (objects: readonly Rendered[], text: string) => void;
const has =
  (kind: string, name?: string): Check =>
  (objects) =>
    assert.ok(
      kindsIn(objects, kind).some((one) => name === undefined || one.metadata.name === name),
      `${kind} ${name}`,
    );
const hasNot =
  (kind: string, name?: string): Check =>
  (objects) =>
    assert.not.ok(
      kindsIn(objects, kind).some((one) => name === undefined || one.metadata.name === name),
      `${kind} ${name}`,
    );
const pod = (objects: readonly Rendered[]): Rendered =>
  [...kindsIn(objects, "Deployment"), ...kindsIn(objects, "DaemonSet")][0].spec.template.spec;
const all =
  (...checks: readonly Check[]): Check =>
  (objects, text) =>
    checks.forEach((one) => one(objects, text));

const wk = "wk-watchkeeper";

/** Sets of values that the chart takes, and what is special about their objects. */
export const taken: readonly (readonly [name: string, values: Values, check: Check])[] = [
  [
    "the defaults",
    {},
    all(
      has("Service", `${wk}-metrics`),
      has("Job"),
      has("NetworkPolicy"),
      has("PodDisruptionBudget"),
      hasNot("ClusterRoleBinding"),
      hasNot("PrometheusRule"),
    ),
  ],
  [
    "a tag",
    { image: { ...image, tag: "1.2.3" } },
    (objects) => assert.is(pod(objects).containers[0].image, "registry.example.com/watchkeeper:1.2.3"),
  ],
  [
    "a digest instead of the tag",
    { image: { ...image, tag: "1.2.3", digest: `sha256:${"a".repeat(64)}` } },
    (objects) =>
      assert.is(
        pod(objects).containers[0].image,
        `registry.example.com/watchkeeper@sha256:${"a".repeat(64)}`,
      ),
  ],
  [
    "a numeric tag",
    { image: { ...image, tag: "20261128" } },
    (objects) => assert.is(pod(objects).containers[0].image, "registry.example.com/watchkeeper:20261128"),
  ],
  [
    "a Service of type LoadBalancer",
    {
      service: {
        type: "LoadBalancer",
        externalTrafficPolicy: "Local",
        loadBalancerClass: "example.com/vip",
        loadBalancerSourceRanges: ["10.0.0.0/8"],
      },
    },
    (objects) =>
      assert.equal(
        kindsIn(objects, "Service").map((one) => [one.spec.type, one.spec.ports[0].name]),
        [
          ["LoadBalancer", "https"],
          ["ClusterIP", "metrics"],
        ],
      ),
  ],
  [
    "a Service of type NodePort",
    { service: { type: "NodePort", externalTrafficPolicy: "Cluster" } },
    (objects) =>
      assert.equal(kindsIn(objects, "Service")[0].spec.ports, [
        { name: "https", port: 443, targetPort: "https" },
      ]),
  ],
  [
    "a Service on another port",
    { service: { port: 6443 } },
    (objects) => assert.is(kindsIn(objects, "Service")[0].spec.ports[0].port, 6443),
  ],
  [
    "a dual-stack Service with annotations",
    { service: { ipFamilyPolicy: "PreferDualStack", annotations: { a: "1" } } },
    (objects) => assert.equal(kindsIn(objects, "Service")[0].metadata.annotations, { a: "1" }),
  ],
  [
    "metricsFrom with one namespace",
    { networkPolicy: { metricsFrom: [{ podSelector: {} }] } },
    has("NetworkPolicy"),
  ],
  [
    "an empty metricsFrom admits no pod",
    { networkPolicy: { metricsFrom: [] } },
    (objects) =>
      assert.equal(kindsIn(objects, "NetworkPolicy")[0].spec.ingress, [
        { ports: [{ protocol: "TCP", port: "https" }] },
      ]),
  ],
  ["no NetworkPolicy", { networkPolicy: { enabled: false } }, hasNot("NetworkPolicy")],
  [
    "no NetworkPolicy, and a monitor",
    { networkPolicy: { enabled: false, metricsFrom: [] }, ...monitor },
    has("ServiceMonitor"),
  ],
  [
    "ports of the apiservers",
    { networkPolicy: { apiserverPorts: [16443] } },
    (objects) => assert.is(kindsIn(objects, "NetworkPolicy")[0].spec.egress[0].ports[0].port, 16443),
  ],
  [
    "an account of the operator's",
    { serviceAccount: { create: false, name: "own" } },
    all(hasNot("ServiceAccount"), (objects) => assert.is(pod(objects).serviceAccountName, "own")),
  ],
  [
    "an account with a numeric name",
    { serviceAccount: { create: true, name: "123" } },
    (objects) => assert.is(pod(objects).serviceAccountName, "123"),
  ],
  [
    "an account with annotations",
    { serviceAccount: { annotations: { "example.com/role": "1" } } },
    has("ServiceAccount", wk),
  ],
  [
    "an account of the operator's, with secure metrics",
    { serviceAccount: { create: false, name: "own" }, ...secure },
    has("ClusterRoleBinding", `${wk}.watchkeeper-reviewer`),
  ],
  [
    "an account of the operator's, with replicas",
    { serviceAccount: { create: false, name: "own" }, ...replicas },
    has("ClusterRoleBinding", `${wk}.watchkeeper-reviewer`),
  ],
  [
    "the account default, without rights of the cluster",
    { serviceAccount: { create: false, name: "default" }, ...backends },
    all(hasNot("RoleBinding"), hasNot("ClusterRoleBinding")),
  ],
  ["replicas", replicas, all(has("Service", `${wk}-replicas`), has("ClusterRoleBinding"))],
  [
    "replicas with secure metrics and a monitor",
    { ...replicas, ...secure, ...monitor },
    all(has("Service", `${wk}-replicas`), has("ServiceMonitor")),
  ],
  [
    "replicas behind a LoadBalancer",
    { ...replicas, service: { type: "LoadBalancer" } },
    has("Service", `${wk}-replicas`),
  ],
  [
    "replicas without a NetworkPolicy",
    { ...replicas, networkPolicy: { enabled: false } },
    hasNot("NetworkPolicy"),
  ],
  [
    "backends",
    backends,
    all(hasNot("Role"), (objects) =>
      assert.equal(
        kindsIn(objects, "NetworkPolicy")[0].spec.egress[0].ports.map((one: Rendered) => one.port),
        [6443, 443, 8443],
      ),
    ),
  ],
  ["a backend without a port", { backends: [{ name: "a", url: "https://api.example" }] }, hasNot("Role")],
  [
    "a backend with a numeric name",
    { backends: [{ name: "1", url: "https://10.0.0.1:6443" }] },
    hasNot("Role"),
  ],
  [
    "discovery by DNS",
    { cluster: { discovery: { type: "DNS", hostname: "api.example", port: 6443 } } },
    hasNot("Role"),
  ],
  [
    "discovery with an interval",
    { cluster: { discovery: { interval: "5s" } } },
    has("Role", `${wk}.watchkeeper`),
  ],
  [
    "a front-proxy pair on control-plane nodes",
    { ...pair, ...onControlPlane },
    (objects) =>
      assert.equal(
        pod(objects).volumes.map((one: Rendered) => one.name),
        ["config", "tls", "front-proxy", "client-ca"],
      ),
  ],
  [
    "a front-proxy pair with replicas and secure metrics",
    { ...pair, ...onControlPlane, ...replicas, ...secure },
    has("ClusterRoleBinding"),
  ],
  [
    "a front-proxy pair with numeric names",
    { frontProxy: { secretName: "1", clientCASecretName: "2" }, tls: { secretName: "3" }, ...onControlPlane },
    (objects) => assert.is(pod(objects).volumes[1].secret.secretName, "3"),
  ],
  ["no disruption budget", { podDisruptionBudget: { enabled: false } }, hasNot("PodDisruptionBudget")],
  [
    "a disruption budget in per cent",
    { podDisruptionBudget: { maxUnavailable: "25%" } },
    (objects) => assert.is(kindsIn(objects, "PodDisruptionBudget")[0].spec.maxUnavailable, "25%"),
  ],
  ["secure metrics", secure, all(has("ClusterRoleBinding"), hasNot("ServiceMonitor"))],
  [
    "secure metrics with a monitor",
    { ...secure, ...monitor },
    all(has("ServiceMonitor"), has("Secret", `${wk}-metrics-reader`)),
  ],
  [
    "secure metrics with a name",
    { metrics: { secure: true, serverName: "wk.example" }, ...monitor },
    (objects) =>
      assert.is(kindsIn(objects, "ServiceMonitor")[0].spec.endpoints[0].tlsConfig.serverName, "wk.example"),
  ],
  [
    "a monitor with an interval and labels",
    { serviceMonitor: { enabled: true, interval: "30s", labels: { release: "1" } } },
    (objects) => assert.is(kindsIn(objects, "ServiceMonitor")[0].metadata.labels.release, "1"),
  ],
  [
    "alerts",
    { prometheusRule: { enabled: true } },
    (objects) => {
      const { rules } = kindsIn(objects, "PrometheusRule")[0].spec.groups[0];
      assert.ok(rules.length > 10);
      assert.is(rules[0].annotations.runbook, "watchkeeper docs runbooks/WatchkeeperDown");
    },
  ],
  [
    "alerts with the address of the runbooks",
    { prometheusRule: { enabled: true, runbookBaseURL: "https://git.example/runbooks" } },
    (objects) =>
      assert.is(
        kindsIn(objects, "PrometheusRule")[0].spec.groups[0].rules[0].annotations.runbook_url,
        "https://git.example/runbooks/WatchkeeperDown.md",
      ),
  ],
  [
    "alerts, a monitor and the dashboard",
    { prometheusRule: { enabled: true }, ...monitor, dashboard: { enabled: true } },
    has("ConfigMap", `${wk}-dashboard`),
  ],
  [
    "the dashboard",
    { dashboard: { enabled: true } },
    (objects) =>
      assert.ok(
        JSON.parse(
          kindsIn(objects, "ConfigMap").find((one) => one.metadata.name === `${wk}-dashboard`).data[
            "watchkeeper.json"
          ],
        ).panels.length > 5,
      ),
  ],
  [
    "the dashboard with other labels",
    { dashboard: { enabled: true, labels: { a: "b" } } },
    has("ConfigMap", `${wk}-dashboard`),
  ],
  ["no check", { configCheck: { enabled: false } }, all(hasNot("Job"), hasNot("ConfigMap", `${wk}-check`))],
  [
    "one replica",
    { replicaCount: 1 },
    (objects) => assert.is(kindsIn(objects, "Deployment")[0].spec.replicas, 1),
  ],
  [
    "the strategy Recreate",
    { strategy: { type: "Recreate" } },
    (objects) => assert.equal(kindsIn(objects, "Deployment")[0].spec.strategy, { type: "Recreate" }),
  ],
  [
    "labels and annotations of pods",
    { podLabels: { a: "1" }, podAnnotations: { b: "2" } },
    (objects) => assert.is(kindsIn(objects, "Deployment")[0].spec.template.metadata.labels.a, "1"),
  ],
  [
    "tolerations, affinity and a selector",
    { tolerations: [{ operator: "Exists" }], affinity: { podAntiAffinity: {} }, nodeSelector: { zone: "1" } },
    (objects) => assert.equal(pod(objects).nodeSelector, { zone: "1" }),
  ],
  [
    "its own spread",
    { topologySpreadConstraints: [{ maxSkew: 2, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" }] },
    (objects) => assert.is(pod(objects).topologySpreadConstraints.length, 1),
  ],
  [
    "extra volumes, arguments, variables and containers",
    {
      extraVolumes: [{ name: "tmp", emptyDir: {} }],
      extraVolumeMounts: [{ name: "tmp", mountPath: "/tmp" }],
      extraArgs: ["--pid-file=/tmp/pid"],
      extraEnv: [{ name: "A", value: "1" }],
      extraContainers: [{ name: "b", image: "b" }],
      extraInitContainers: [{ name: "c", image: "c" }],
    },
    (objects) => assert.equal([pod(objects).containers.length, pod(objects).initContainers.length], [2, 1]),
  ],
  [
    "secrets for the registry",
    { imagePullSecrets: [{ name: "123" }] },
    (objects) => assert.equal(pod(objects).imagePullSecrets, [{ name: "123" }]),
  ],
  [
    "no priority class",
    { priorityClassName: "" },
    (objects) => assert.not.ok("priorityClassName" in pod(objects)),
  ],
  [
    "keys of the configuration",
    {
      config: { drain: { timeout: "30s" }, logging: { level: "Debug" } },
      cluster: { connectionPool: { perClient: true } },
    },
    (_, text) => assert.match(text, "perClient: true"),
  ],
  [
    "a longer drain with more time",
    { config: { drain: { timeout: "5m" } }, terminationGracePeriodSeconds: 600 },
    (objects) => assert.is(pod(objects).terminationGracePeriodSeconds, 600),
  ],
  ["a full name", { fullnameOverride: "other" }, has("Deployment", "other")],
  ["another label", { nameOverride: "other" }, has("Deployment", "wk-other")],
  [
    "a DaemonSet",
    nodes,
    all(
      has("DaemonSet"),
      hasNot("Service"),
      hasNot("NetworkPolicy"),
      hasNot("PodDisruptionBudget"),
      (objects) => assert.is(pod(objects).hostNetwork, true),
    ),
  ],
  ["a DaemonSet with secure metrics", { ...nodes, ...secure }, hasNot("PodMonitor")],
  ["a DaemonSet with secure metrics and a monitor", { ...nodes, ...secure, ...monitor }, has("PodMonitor")],
  ["a DaemonSet with backends", { ...nodes, ...backends }, hasNot("Role")],
  [
    "a DaemonSet that is replaced by hand",
    { ...nodes, strategy: { type: "OnDelete" } },
    (objects) => assert.equal(kindsIn(objects, "DaemonSet")[0].spec.updateStrategy, { type: "OnDelete" }),
  ],
  [
    "a DaemonSet with alerts and the dashboard",
    { ...nodes, prometheusRule: { enabled: true }, dashboard: { enabled: true } },
    has("PrometheusRule"),
  ],
  ["a DaemonSet without a check", { ...nodes, configCheck: { enabled: false } }, hasNot("Job")],
];
