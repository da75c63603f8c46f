/**
 * Generates a static pod that replaces the load balancer of kubeadm's HA guide on a control-plane node. Also generates
 * the pod's configuration file, because a static pod cannot use a ConfigMap.
 */
import { basename } from "node:path";
import { handoverDirectory, type NamedBackend, type SecureMetrics, shapeConfig } from "./shape-config.ts";

export type StaticPodWishes = {
  readonly image: string;
  readonly port: number;
  readonly metricsPort: number;
  /** True if TLS passes through to the apiservers. The proxy then needs no key, but cannot move watches. */
  readonly isPassthrough: boolean;
  /** True for the second of two pods on a node. Each serves while the other is replaced. */
  readonly isSecond: boolean;
  /** True if other machines can read the metrics, with TLS and a token. False: only the node itself can read them. */
  readonly hasSecureMetrics: boolean;
  readonly backends: readonly NamedBackend[];
};

const pki = "/etc/kubernetes/pki";
const directory = "/etc/watchkeeper";
const configFile = `${directory}/watchkeeper.yaml`;

/**
 * Returns the certificate of the metrics and the credentials for TokenReviews. With Passthrough, the pod must not hold
 * a key of the cluster, so both are files of its own. Otherwise the pod uses kubeadm's files, which kubeadm renews: the
 * role of kube-controller-manager permits TokenReviews, and grants less than the front-proxy key that the pod holds.
 */
const metricsFiles = ({ isPassthrough }: { readonly isPassthrough: boolean }): SecureMetrics =>
  isPassthrough
    ? {
        certFile: `${directory}/metrics.crt`,
        keyFile: `${directory}/metrics.key`,
        kubeconfigFile: `${directory}/reviewer.kubeconfig`,
      }
    : {
        certFile: `${pki}/apiserver.crt`,
        keyFile: `${pki}/apiserver.key`,
        kubeconfigFile: "/etc/kubernetes/controller-manager.conf",
      };

const metricsHost = ({ hasSecureMetrics }: Pick<StaticPodWishes, "hasSecureMetrics">): string =>
  hasSecureMetrics ? "" : "127.0.0.1";

export function staticPodConfig(wishes: Omit<StaticPodWishes, "image" | "isSecond">): string {
  const { isPassthrough, port, metricsPort, backends } = wishes;
  const common = {
    name: "control-plane",
    address: `:${port}`,
    reusesPort: true,
    backends,
    caFile: `${pki}/ca.crt`,
    metricsAddress: `${metricsHost(wishes)}:${metricsPort}`,
    ...(wishes.hasSecureMetrics ? { secureMetrics: metricsFiles(wishes) } : {}),
  };
  if (isPassthrough)
    return shapeConfig({
      ...common,
      about: [`${configFile} on each control-plane node. The kube-apiservers terminate TLS.`],
    });
  return shapeConfig({
    ...common,
    about: [
      `${configFile} on each control-plane node. Uses the files that kubeadm makes there.`,
      "Serves with the apiserver's certificate: it contains the names of controlPlaneEndpoint, and kubeadm renews it.",
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

/**
 * Returns the kubeadm files that the pod mounts. The pod does not mount their directory, because the directory also
 * contains the CA's key.
 */
function filesOf(wishes: StaticPodWishes): readonly string[] {
  if (wishes.isPassthrough) return [`${pki}/ca.crt`];
  const keys = ["apiserver.crt", "apiserver.key", "front-proxy-client.crt", "front-proxy-client.key"];
  const files = ["ca.crt", ...keys].map((file) => `${pki}/${file}`);
  return wishes.hasSecureMetrics ? [...files, metricsFiles(wishes).kubeconfigFile] : files;
}

/** Returns the name of a file's volume, which must be a DNS label. */
const volumeOf = (file: string): string => basename(file).replaceAll(".", "-");

const passthroughUser = "runAsUser: 65532";
const kubeadmUser = `# Only root can read kubeadm's keys. Without capabilities root can do little else.
        runAsUser: 0`;

export function staticPod(wishes: StaticPodWishes): string {
  return `${podOf(wishes)}${volumesOf(filesOf(wishes), wishes.isPassthrough)}`;
}

/**
 * Returns the port of the pod's metrics and probes, the probes' scheme, and the option by which the second pod has its
 * own port.
 */
function metricsOf({ metricsPort: first, isSecond, hasSecureMetrics }: StaticPodWishes) {
  const metricsPort = isSecond ? first + 1 : first;
  return {
    metricsPort,
    scheme: hasSecureMetrics ? "scheme: HTTPS, " : "",
    own: isSecond ? `, --metrics-address, "${metricsHost({ hasSecureMetrics })}:${metricsPort}"` : "",
  };
}

/**
 * Returns the label of a pod whose metrics do not use kubeadm's certificate; "" for other pods. podmonitor.yaml selects
 * pods by this label, because their certificate has another name and another CA.
 */
const certificateLabel = ({ hasSecureMetrics, isPassthrough }: StaticPodWishes): string =>
  hasSecureMetrics && isPassthrough ? "    watchkeeper.dev/metrics: own-certificate\n" : "";

/**
 * Returns the pod without its volumes. The second pod has another name, because the kubelet runs two static pods at the
 * same time only if their names differ.
 */
function podOf(wishes: StaticPodWishes): string {
  const { image, isPassthrough, isSecond } = wishes;
  const name = isSecond ? "watchkeeper-b" : "watchkeeper";
  const { metricsPort, scheme, own } = metricsOf(wishes);
  return `# /etc/kubernetes/manifests/${name}.yaml on each control-plane node. Its configuration is ${configFile}.
apiVersion: v1
kind: Pod
metadata:
  name: ${name}
  namespace: kube-system
  labels:
    app.kubernetes.io/name: watchkeeper
    app.kubernetes.io/component: control-plane
${certificateLabel(wishes)}spec:
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
      args: [run, --config, ${configFile}, --wait-for-files, 10m${own}]
      ports: # for PodMonitors
        - {name: metrics, containerPort: ${metricsPort}}
      # Nothing answers while the process waits for its files, which may take 10 minutes.
      startupProbe:
        httpGet: {${scheme}host: 127.0.0.1, path: /livez, port: ${metricsPort}}
        periodSeconds: 2
        failureThreshold: 330
      # The check fails if the event loop hangs. A restart would not help if every apiserver is down, so that does not fail it.
      livenessProbe:
        httpGet: {${scheme}host: 127.0.0.1, path: /livez, port: ${metricsPort}}
        periodSeconds: 10
        failureThreshold: 6
      readinessProbe:
        httpGet: {${scheme}host: 127.0.0.1, path: /readyz, port: ${metricsPort}}
        periodSeconds: 2
      resources:
        requests: {cpu: 100m, memory: 256Mi}
      securityContext:
        ${isPassthrough ? passthroughUser : kubeadmUser}
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
`;
}

function volumesOf(files: readonly string[], isPassthrough: boolean): string {
  const owner = isPassthrough
    ? "The directory must belong to user 65532."
    : "The kubelet creates the directory.";
  const mounts = files.map(
    (file) => `        - {name: ${volumeOf(file)}, mountPath: ${file}, readOnly: true}\n`,
  );
  const volumes = files.map(
    (file) => `    - name: ${volumeOf(file)}\n      hostPath: {path: ${file}, type: File}\n`,
  );
  return `      volumeMounts:
        - {name: config, mountPath: /etc/watchkeeper, readOnly: true}
        # Only these files: the directory also has the keys of the cluster CA and of service account tokens. kubeadm
        # renews a certificate in the same file, so the mount shows the new one.
${mounts.join("")}        # A pod that stops passes its sockets on to the other pod of the node here. ${owner}
        - {name: handover, mountPath: ${handoverDirectory}}
  volumes:
    - name: config
      hostPath: {path: /etc/watchkeeper, type: Directory}
${volumes.join("")}    - name: handover
      hostPath: {path: ${handoverDirectory}, type: DirectoryOrCreate}
`;
}
