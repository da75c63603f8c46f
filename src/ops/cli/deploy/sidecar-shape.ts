/** The sidecar's configuration, paths, ports, names and part of a manifest, in one file because they must agree. */
import { join } from "node:path";

export const usual = {
  /** Directory that the sidecar fills. In-cluster clients look there for token and CA (client-go: InClusterConfig). */
  shared: "/var/run/secrets/kubernetes.io/serviceaccount",
  /** Directory in which the kubelet puts the token, the cluster's CA and the namespace. */
  direct: "/var/run/secrets/watchkeeper",
  /**
   * Directory of the sidecar's certificate. It is kept across restarts, because the application reads the CA only once.
   */
  state: "/var/run/watchkeeper",
  port: 7443,
  metricsPort: 7481,
} as const;

export type Shape = {
  readonly direct: string;
  readonly state: string;
  readonly port: number;
  readonly metricsPort: number;
  /** Address of the in-cluster service, from the environment variables that the kubelet sets. */
  readonly service: { readonly host: string; readonly port: string };
};

/** Names in the sidecar's certificate. Clients in the pod connect to a loopback address or to the service's name. */
export const sidecarHosts = [
  "127.0.0.1",
  "::1",
  "localhost",
  "kubernetes",
  "kubernetes.default",
  "kubernetes.default.svc",
  "kubernetes.default.svc.cluster.local",
];

export function stateFiles(state: string): {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
} {
  return { ca: join(state, "ca.crt"), cert: join(state, "tls.crt"), key: join(state, "tls.key") };
}

/**
 * Returns the sidecar's configuration file. Until discovery finds the apiservers, the only backend is the address of
 * the service "kubernetes". Discovery may fail because of a missing permission or a network policy.
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
admin: {metricsAddress: ":${metricsPort}", probeThread: false} # no thread for probes, which would take 20 MB
`;
}

export type Addition = { readonly image: string; readonly port: number; readonly metricsPort: number };

export const sidecarName = "watchkeeper";
const volumes = { shared: "kube-api-via-watchkeeper", direct: "kube-api-direct", state: "watchkeeper-state" };

/**
 * Volumes that the application's containers mount. If a container mounts them already, an earlier run of the command
 * has added them.
 */
export const clientMounts = [
  { name: volumes.shared, mountPath: usual.shared, readOnly: true },
  { name: volumes.direct, mountPath: usual.direct, readOnly: true },
];

/** Returns the environment variables from which in-cluster clients take the apiserver's address. */
export function clientEnv({ port }: Addition): readonly { readonly name: string; readonly value: string }[] {
  return [
    { name: "KUBERNETES_SERVICE_HOST", value: "127.0.0.1" },
    { name: "KUBERNETES_SERVICE_PORT", value: String(port) },
  ];
}

export const podVolumes = [
  // A volume at this path keeps the ServiceAccount admission plugin from mounting a token there.
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

/** Returns the sidecar container. It is a native sidecar, which starts before the application and ends after it. */
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
    startupProbe: { httpGet: { path: "/livez", port: metricsPort }, periodSeconds: 1, failureThreshold: 60 },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      runAsUser: 65_532,
      capabilities: { drop: ["ALL"] },
      seccompProfile: { type: "RuntimeDefault" },
    },
    resources: { requests: { cpu: "20m", memory: "112Mi" }, limits: { memory: "256Mi" } },
    volumeMounts: [
      { name: volumes.shared, mountPath: usual.shared },
      { name: volumes.state, mountPath: usual.state },
      { name: volumes.direct, mountPath: usual.direct, readOnly: true },
    ],
  };
}
