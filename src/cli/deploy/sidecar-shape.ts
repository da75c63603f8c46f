/**
 * A sidecar's configuration, the paths, ports and names in its pod, and what a manifest must add to the pod. One file,
 * because they must agree. Pure.
 */
import { join } from "node:path";

/** Default paths and ports in the pod. */
export const usual = {
  /** Where every in-cluster client looks (client-go's rest.InClusterConfig). The sidecar writes here. */
  shared: "/var/run/secrets/kubernetes.io/serviceaccount",
  /** Where the kubelet projects the token, the cluster's CA and the namespace. */
  direct: "/var/run/secrets/watchkeeper",
  /** Where the sidecar keeps its certificate: after a restart it serves with the one that its application trusts. */
  state: "/var/run/watchkeeper",
  port: 7443,
  metricsPort: 7481,
} as const;

export type Shape = {
  readonly direct: string;
  readonly state: string;
  readonly port: number;
  readonly metricsPort: number;
  /** The in-cluster service, from the kubelet's environment variables. */
  readonly service: { readonly host: string; readonly port: string };
};

/** Names in the sidecar's certificate: clients in the pod connect by loopback address or by the service's names. */
export const sidecarHosts = [
  "127.0.0.1",
  "::1",
  "localhost",
  "kubernetes",
  "kubernetes.default",
  "kubernetes.default.svc",
  "kubernetes.default.svc.cluster.local",
];

/** Paths of the CA and of the listener's certificate and key. */
export function stateFiles(state: string): {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
} {
  return { ca: join(state, "ca.crt"), cert: join(state, "tls.crt"), key: join(state, "tls.key") };
}

/**
 * Returns the sidecar's configuration file. The service's address is a backend until discovery finds an apiserver: a
 * service account may lack permission to list EndpointSlices, and some network policies allow only the service.
 */
export function sidecarConfig({ direct, state, port, metricsPort, service }: Shape): string {
  const { cert, key } = stateFiles(state);
  const host = service.host.includes(":") ? `[${service.host}]` : service.host;
  return `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
metadata: {name: sidecar}
listeners:
  - name: sidecar
    address: 127.0.0.1:${port}
    tls: {certFile: ${JSON.stringify(cert)}, keyFile: ${JSON.stringify(key)}}
clusters:
  - name: default
    discovery:
      type: EndpointSlice
      fallback: {name: service, url: ${JSON.stringify(`https://${host}:${service.port}`)}}
    tls: {caFile: ${JSON.stringify(join(direct, "ca.crt"))}, serverName: kubernetes.default.svc}
health: # half as many PINGs and a tenth of the probes, because there may be thousands of sidecars
  ping: {interval: 500ms, suspectAfter: 500ms, deadAfter: 2s}
  probe: {interval: 10s, timeout: 2s}
drain: {shutdownDelay: 0s, timeout: 10s}
admin: {metricsAddress: ":${metricsPort}"}
`;
}

export type Addition = { readonly image: string; readonly port: number; readonly metricsPort: number };

/** The container's name, also used for its volumes. */
export const sidecarName = "watchkeeper";
const volumes = { shared: "kube-api-via-watchkeeper", direct: "kube-api-direct", state: "watchkeeper-state" };

/** What the application mounts. A second run recognises a patched container by these. */
export const clientMounts = [
  { name: volumes.shared, mountPath: usual.shared, readOnly: true },
  { name: volumes.direct, mountPath: usual.direct, readOnly: true },
];

/** The variables in which every in-cluster client finds the apiserver's address. */
export function clientEnv({ port }: Addition): readonly { readonly name: string; readonly value: string }[] {
  return [
    { name: "KUBERNETES_SERVICE_HOST", value: "127.0.0.1" },
    { name: "KUBERNETES_SERVICE_PORT", value: String(port) },
  ];
}

export const podVolumes = [
  // Admission does not mount a token at a service account's path where another volume is mounted.
  { name: volumes.shared, emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
  { name: volumes.state, emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
  {
    name: volumes.direct,
    projected: {
      sources: [
        { serviceAccountToken: { path: "token" } },
        { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
        { downwardAPI: { items: [{ path: "namespace", fieldRef: { fieldPath: "metadata.namespace" } }] } },
      ],
    },
  },
];

/** A native sidecar: it starts before the application and ends after it. */
export function sidecarContainer({ image, port, metricsPort }: Addition): Readonly<Record<string, unknown>> {
  const args = [
    ...(port === usual.port ? [] : ["--port", String(port)]),
    ...(metricsPort === usual.metricsPort ? [] : ["--metrics-port", String(metricsPort)]),
  ];
  return {
    name: sidecarName,
    image,
    restartPolicy: "Always",
    args: ["sidecar", ...args],
    ports: [{ name: "wk-metrics", containerPort: metricsPort }],
    startupProbe: { httpGet: { path: "/readyz", port: metricsPort }, periodSeconds: 1, failureThreshold: 60 },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      runAsUser: 65_532,
      capabilities: { drop: ["ALL"] },
      seccompProfile: { type: "RuntimeDefault" },
    },
    resources: { requests: { cpu: "20m", memory: "160Mi" }, limits: { memory: "256Mi" } },
    volumeMounts: [
      { name: volumes.shared, mountPath: usual.shared },
      { name: volumes.state, mountPath: usual.state },
      { name: volumes.direct, mountPath: usual.direct, readOnly: true },
    ],
  };
}
