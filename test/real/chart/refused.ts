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

const volume = (name: string): Values => ({ extraVolumes: [{ name, emptyDir: {} }] });
const mount = (mountPath: string): Values => ({ extraVolumeMounts: [{ name: "tmp", mountPath }] });
const label = { "app.kubernetes.io/name": "x" };

/** Sets of values that the chart refuses, and the reason. */
export const refused: readonly (readonly [name: string, values: Values, reason: RegExp])[] = [
  ["no image", { image: {} }, /image\.repository: the name of watchkeeper's image/],
  ["an image with its tag", { image: { repository: "r.example/watchkeeper:1" } }, /at '\/image\/repository'/],
  [
    "a tag that is a number",
    { image: { ...image, tag: 2026 } },
    /at '\/image\/tag': got number, want string/,
  ],
  ["a digest that is none", { image: { ...image, digest: "x" } }, /at '\/image\/digest'/],
  ["an unknown mode", { mode: "Pod" }, /at '\/mode'/],
  ["an unknown key", { servce: {} }, /'servce' not allowed/],
  ["no replica", { replicaCount: 0 }, /at '\/replicaCount'/],
  [
    "a null that removes a switch",
    { networkPolicy: { enabled: null } },
    /at '\/networkPolicy': missing property 'enabled'/,
  ],
  ["a null that removes a section", { networkPolicy: null }, /missing property 'networkPolicy'/],
  ["a null for metricsFrom", { networkPolicy: { metricsFrom: null } }, /missing property 'metricsFrom'/],
  [
    "a peer that is everybody",
    { networkPolicy: { metricsFrom: [{}] } },
    /at '\/networkPolicy\/metricsFrom\/0'/,
  ],
  [
    "a monitor that no rule lets in",
    { networkPolicy: { metricsFrom: [] }, ...monitor },
    /networkPolicy\.metricsFrom: is empty/,
  ],
  ["no account", { serviceAccount: { create: false } }, /serviceAccount\.name: needed/],
  [
    "no account, with backends",
    { serviceAccount: { create: false }, ...backends },
    /serviceAccount\.name: needed/,
  ],
  [
    "the account default, with replicas",
    { serviceAccount: { create: false, name: "default" }, ...replicas },
    /serviceAccount\.name: every pod of the namespace/,
  ],
  [
    "the account default, with secure metrics",
    { serviceAccount: { create: false, name: "default" }, ...secure },
    /serviceAccount\.name: every pod of the namespace/,
  ],
  [
    "replicas without a name",
    { replicas: { enabled: true } },
    /replicas\.serverName: the name in the certificate/,
  ],
  ["a front-proxy pair on any node", pair, /nodeSelector: needed/],
  [
    "a front-proxy pair of the cluster's keys on any node",
    { cluster: { tls: { frontProxy: { certFile: "/a", keyFile: "/b" } } } },
    /nodeSelector: needed/,
  ],
  [
    "an impersonator on any node",
    { cluster: { tls: { impersonator: { certFile: "/a", keyFile: "/b" } } } },
    /nodeSelector: needed/,
  ],
  [
    "a front-proxy pair in a list of clusters, on any node",
    {
      config: {
        clusters: [
          {
            name: "a",
            backends: [{ name: "a", url: "https://a.example" }],
            tls: { caFile: "/ca", frontProxy: { certFile: "/a", keyFile: "/b" } },
          },
        ],
      },
    },
    /nodeSelector: needed/,
  ],
  [
    "a front-proxy pair without a CA",
    { frontProxy: { secretName: "a" }, ...onControlPlane },
    /frontProxy\.clientCASecretName: the CA/,
  ],
  [
    "a CA without a front-proxy pair",
    { frontProxy: { clientCASecretName: "a" } },
    /frontProxy\.clientCASecretName: has no effect/,
  ],
  [
    "the serving certificate as front-proxy pair",
    { frontProxy: { secretName: "watchkeeper-tls", clientCASecretName: "ca" }, ...onControlPlane },
    /frontProxy\.secretName: is also tls\.secretName/,
  ],
  [
    "a DaemonSet with a front-proxy pair",
    { ...nodes, ...pair, ...onControlPlane },
    /frontProxy: a DaemonSet does not terminate TLS/,
  ],
  ["a DaemonSet with replicas", { ...nodes, ...replicas }, /replicas: the pods of a DaemonSet/],
  [
    "a DaemonSet with a monitor of plain metrics",
    { ...nodes, ...monitor },
    /serviceMonitor: the pods of a DaemonSet/,
  ],
  [
    "a DaemonSet with a LoadBalancer",
    { ...nodes, service: { type: "LoadBalancer" } },
    /service\.type: a DaemonSet has no Service/,
  ],
  [
    "a DaemonSet with a spread",
    { ...nodes, topologySpreadConstraints: [{ maxSkew: 1 }] },
    /topologySpreadConstraints: a DaemonSet/,
  ],
  [
    "a DaemonSet with Recreate",
    { ...nodes, strategy: { type: "Recreate" } },
    /strategy\.type: a DaemonSet has RollingUpdate or OnDelete/,
  ],
  [
    "a Deployment with OnDelete",
    { strategy: { type: "OnDelete" } },
    /strategy\.type: a Deployment has RollingUpdate or Recreate/,
  ],
  [
    "a traffic policy of a ClusterIP",
    { service: { externalTrafficPolicy: "Local" } },
    /service\.externalTrafficPolicy: needs/,
  ],
  ["a class of a ClusterIP", { service: { loadBalancerClass: "a.example/b" } }, /service\.loadBalancerClass/],
  [
    "source ranges of a NodePort",
    { service: { type: "NodePort", loadBalancerSourceRanges: ["10.0.0.0/8"] } },
    /loadBalancerSourceRanges: need/,
  ],
  [
    "a source range that is an address",
    { service: { type: "LoadBalancer", loadBalancerSourceRanges: ["10.0.0.1"] } },
    /at '\/service\/loadBalancerSourceRanges\/0'/,
  ],
  [
    "a disruption budget of none",
    { podDisruptionBudget: { maxUnavailable: 0 } },
    /at '\/podDisruptionBudget\/maxUnavailable'/,
  ],
  ["a label of the chart on pods", { podLabels: label }, /podLabels: app\.kubernetes\.io\/name is a label/],
  [
    "a label of the chart on the monitor",
    { serviceMonitor: { enabled: true, labels: label } },
    /serviceMonitor\.labels: app/,
  ],
  [
    "a label of the chart on alerts",
    { prometheusRule: { enabled: true, labels: label } },
    /prometheusRule\.labels: app/,
  ],
  [
    "a label of the chart on the dashboard",
    { dashboard: { enabled: true, labels: label } },
    /dashboard\.labels: app/,
  ],
  [
    "the chart's annotation",
    { podAnnotations: { "checksum/config": "x" } },
    /podAnnotations: checksum\/config/,
  ],
  ["a label that is a number", { podLabels: { a: 1 } }, /at '\/podLabels\/a': got number, want string/],
  ["a selector that is a boolean", { nodeSelector: { a: true } }, /at '\/nodeSelector\/a'/],
  ["a volume of the chart", volume("tls"), /extraVolumes: tls is a volume of the chart/],
  ["a mount over the configuration", mount("/etc/watchkeeper"), /extraVolumeMounts: the chart mounts/],
  [
    "a mount over the certificate",
    mount("/var/run/secrets/watchkeeper-tls/x"),
    /extraVolumeMounts: the chart mounts/,
  ],
  [
    "a second container of that name",
    { extraContainers: [{ name: "watchkeeper", image: "a" }] },
    /extraContainers: watchkeeper/,
  ],
  ["a second configuration", { extraArgs: ["--config=/a"] }, /extraArgs: --config/],
  [
    "backends and discovery",
    { ...backends, cluster: { discovery: { type: "DNS" } } },
    /cluster\.discovery: contradicts backends/,
  ],
  ["backends of the cluster's keys", { cluster: backends }, /cluster\.backends: write the apiservers/],
  [
    "discovery by leases, which the account may not read",
    { cluster: { discovery: { type: "Lease" } } },
    /cluster\.discovery\.type: the chart gives no right/,
  ],
  [
    "another port for the metrics",
    { config: { admin: { metricsAddress: ":9000" } } },
    /config\.admin\.metricsAddress: the probes/,
  ],
  [
    "TLS of the metrics past metrics.secure",
    { config: { admin: { metrics: { tls: { certFile: "/a", keyFile: "/b" } } } } },
    /config\.admin\.metrics: set metrics\.secure/,
  ],
  [
    "no listener for the Service",
    { config: { listeners: [{ name: "a", address: ":9443", mode: "Passthrough" }] } },
    /config\.listeners: the Service needs/,
  ],
  [
    "a drain longer than the pod lives",
    { config: { drain: { timeout: "10m" } } },
    /terminationGracePeriodSeconds: must exceed/,
  ],
  [
    "a pod that lives shorter than its drain",
    { terminationGracePeriodSeconds: 60 },
    /terminationGracePeriodSeconds: must exceed/,
  ],
  ["an unknown key of the configuration", { config: { dran: {} } }, /'dran' not allowed/],
  [
    "a wrong value of the configuration",
    { config: { logging: { level: "loud" } } },
    /at '\/config\/logging\/level'/,
  ],
  [
    "a map as a value of the configuration",
    { config: { logging: { format: { accessLog: "All" } } } },
    /at '\/config\/logging\/format'/,
  ],
  [
    "a wrong duration of the configuration",
    { config: { drain: { timeout: "soon" } } },
    /at '\/config\/drain\/timeout'/,
  ],
  [
    "a foreign version of the configuration",
    { config: { apiVersion: "watchkeeper.dev/v1" } },
    /at '\/config\/apiVersion'/,
  ],
  [
    "a listener without a name",
    { config: { listeners: [{ address: ":8443" }] } },
    /at '\/config\/listeners\/0'/,
  ],
  ["an unknown key of the cluster", { cluster: { tsl: {} } }, /'tsl' not allowed/],
  [
    "a wrong number of the cluster",
    { cluster: { connectionPool: { maxStreamsPerConnection: 0 } } },
    /at '\/cluster\/connectionPool\/maxStreamsPerConnection'/,
  ],
  [
    "a backend without https",
    { backends: [{ name: "a", url: "http://a.example" }] },
    /at '\/backends\/0\/url'/,
  ],
  [
    "a label by which no alert finds it",
    { nameOverride: "other", ...monitor },
    /nameOverride: the alerts select/,
  ],
  [
    "alerts for another label",
    { nameOverride: "other", prometheusRule: { enabled: true } },
    /nameOverride: the alerts select/,
  ],
  ["a name that is a number", { fullnameOverride: "123" }, /"123" cannot be the name/],
  ["a name that is too long", { fullnameOverride: "a".repeat(49) }, /cannot be the name/],
];
