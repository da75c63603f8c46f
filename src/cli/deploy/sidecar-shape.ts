/**
 * What a sidecar is: its configuration, and what its pod must have. One file, because the two must agree: ports, paths
 * and names stand here once. Pure.
 */
import { join } from "node:path";

/** Where things are in a pod, unless somebody says otherwise. */
export const usual = {
  /** Where every in-cluster client looks (client-go's rest.InClusterConfig). The sidecar writes here. */
  shared: "/var/run/secrets/kubernetes.io/serviceaccount",
  /** What the kubelet projects: the token, the cluster's CA, the namespace. */
  direct: "/var/run/secrets/watchkeeper",
  /** The sidecar's own certificate, so that a restarted sidecar is the one whom its application knows. */
  state: "/var/run/watchkeeper",
  port: 7443,
  metricsPort: 7481,
} as const;

export type Shape = {
  readonly direct: string;
  readonly state: string;
  readonly port: number;
  readonly metricsPort: number;
  /** The in-cluster service, as the kubelet names it to every container. */
  readonly service: { readonly host: string; readonly port: string };
};

/** Names by which a client in the pod may call us: by address, or as it would the service. */
export const sidecarHosts = [
  "127.0.0.1",
  "::1",
  "localhost",
  "kubernetes",
  "kubernetes.default",
  "kubernetes.default.svc",
  "kubernetes.default.svc.cluster.local",
];

/** The files of `state`, which the certificate of the listener below is made of. */
export function stateFiles(state: string): {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
} {
  return { ca: join(state, "ca.crt"), cert: join(state, "tls.crt"), key: join(state, "tls.key") };
}

/**
 * The file that somebody would write by hand. The service's address serves until an apiserver that was found does: a
 * service account may not ask for EndpointSlices unless it is allowed to, and some networks let nothing else through.
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
health: # half as many PINGs and a tenth of the handshakes: there are thousands of sidecars
  ping: {interval: 500ms, suspectAfter: 500ms, deadAfter: 2s}
  probe: {interval: 10s, timeout: 2s}
drain: {shutdownDelay: 0s, timeout: 10s}
admin: {metricsAddress: ":${metricsPort}"}
`;
}
