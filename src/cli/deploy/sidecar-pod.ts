/**
 * What a sidecar adds to a pod, as plain values for a manifest. Each has a name or a path by which a second run
 * recognises it. Pure.
 */
import { usual } from "./sidecar-shape.ts";

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
  const ports: (keyof Ports)[] = ["port", "metricsPort"];
  const given = { port, metricsPort };
  const flags = { port: "--port", metricsPort: "--metrics-port" };
  const args = ports
    .filter((one) => given[one] !== usual[one])
    .flatMap((one) => [flags[one], String(given[one])]);
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

type Ports = Pick<Addition, "port" | "metricsPort">;
