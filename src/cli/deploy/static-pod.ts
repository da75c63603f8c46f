/**
 * A static pod on a control-plane node, in the slot of the load balancer of kubeadm's HA guide: the host's network, one
 * port, no API needed to start. Also its configuration, since a static pod cannot have a ConfigMap. Pure.
 */
import { type NamedBackend, shapeConfig } from "./shape-config.ts";

export type StaticPodWishes = {
  readonly image: string;
  readonly port: number;
  readonly metricsPort: number;
  /** TLS is left to the apiservers: no key, and watches that cannot be moved. */
  readonly isPassthrough: boolean;
  readonly backends: readonly NamedBackend[];
};

const pki = "/etc/kubernetes/pki";
const configFile = "/etc/watchkeeper/watchkeeper.yaml";

export function staticPodConfig({ isPassthrough, port, metricsPort, backends }: StaticPodWishes): string {
  const common = {
    name: "control-plane",
    address: `:${port}`,
    backends,
    caFile: `${pki}/ca.crt`,
    metricsAddress: `127.0.0.1:${metricsPort}`,
  };
  if (isPassthrough)
    return shapeConfig({
      ...common,
      about: [`${configFile} on each control-plane node; TLS is left to the kube-apiservers.`],
    });
  return shapeConfig({
    ...common,
    about: [
      `${configFile} on each control-plane node, with the files that kubeadm makes there.`,
      "The apiserver's certificate serves here too: it has the names of controlPlaneEndpoint, and kubeadm renews it.",
    ],
    serving: {
      certFile: `${pki}/apiserver.crt`,
      keyFile: `${pki}/apiserver.key`,
      clientCAFile: `${pki}/ca.crt`,
    },
    frontProxy: {
      certFile: `${pki}/front-proxy-client.crt`,
      keyFile: `${pki}/front-proxy-client.key`,
    },
  });
}

export function staticPod({ image, metricsPort }: StaticPodWishes): string {
  return `# /etc/kubernetes/manifests/watchkeeper.yaml on each control-plane node. Its configuration is ${configFile}.
apiVersion: v1
kind: Pod
metadata:
  name: watchkeeper
  namespace: kube-system
  labels:
    app.kubernetes.io/name: watchkeeper
    app.kubernetes.io/component: control-plane
spec:
  hostNetwork: true
  dnsPolicy: Default
  priorityClassName: system-node-critical
  terminationGracePeriodSeconds: 90 # above drain.shutdownDelay and drain.timeout together
  securityContext:
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: watchkeeper
      image: ${image}
      args: [run, --config, ${configFile}]
      # Alive as long as its event loop turns: that every apiserver is down is no reason to start it again.
      livenessProbe:
        httpGet: {host: 127.0.0.1, path: /livez, port: ${metricsPort}}
        periodSeconds: 10
        failureThreshold: 6
      readinessProbe:
        httpGet: {host: 127.0.0.1, path: /readyz, port: ${metricsPort}}
        periodSeconds: 2
      resources:
        requests: {cpu: 100m, memory: 256Mi}
      securityContext:
        # kubeadm's keys are root's alone. Without a capability root may read them, and little else.
        runAsUser: 0
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - {name: config, mountPath: /etc/watchkeeper, readOnly: true}
        - {name: pki, mountPath: ${pki}, readOnly: true}
  volumes:
    - name: config
      hostPath: {path: /etc/watchkeeper, type: Directory}
    - name: pki
      hostPath: {path: ${pki}, type: Directory}
`;
}
