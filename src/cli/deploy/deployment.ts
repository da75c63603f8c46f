/**
 * Generates the manifests of a Deployment, for clients inside the cluster or behind a load balancer. The proxy
 * discovers the apiservers through the EndpointSlice of default/kubernetes, and passes bearer tokens through.
 */
import { shapeConfig } from "./shape-config.ts";

export type DeploymentWishes = {
  readonly image: string;
  readonly namespace: string;
  readonly replicas: number;
};

const name = "watchkeeper";
const labels = `app.kubernetes.io/name: ${name}`;
/**
 * Directory of the certificate. It must not lie in the configuration's directory, because that is a read-only ConfigMap
 * volume, below which no other volume can be mounted.
 */
const served = `/var/run/secrets/${name}-tls`;
const ports = { kube: 8443, metrics: 7481 };

export function deploymentConfig(): string {
  return shapeConfig({
    about: [
      "Discovers the apiservers. Bearer tokens pass through; requests with a client certificate are refused.",
    ],
    name: "in-cluster",
    address: `:${ports.kube}`,
    serving: { certFile: `${served}/tls.crt`, keyFile: `${served}/tls.key` },
    backends: [],
    cluster: ["discovery: {type: EndpointSlice}"],
    caFile: "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
    metricsAddress: `:${ports.metrics}`,
  });
}

/** Returns the YAML documents. The key of each is its file name in deploy/deployment, without the extension. */
export function deploymentParts(wishes: DeploymentWishes): Readonly<Record<string, string>> {
  const isPlain = /^(?!(?:true|false|yes|no|on|off|y|n|null)$)[a-z]/.test(wishes.namespace);
  const namespace = isPlain ? wishes.namespace : JSON.stringify(wishes.namespace);
  return {
    namespace: namespaceOf(namespace),
    rbac: rbac(namespace),
    config: `apiVersion: v1
kind: ConfigMap
metadata:
${metadata(namespace)}
data:
  watchkeeper.yaml: |
${indented(deploymentConfig(), 4)}`,
    deployment: deployment({ ...wishes, namespace }),
    service: service(namespace),
    disruption: disruption(namespace),
    network: network(namespace),
  };
}

export function deploymentText(wishes: DeploymentWishes): string {
  return Object.values(deploymentParts(wishes)).join("---\n");
}

function metadata(namespace: string): string {
  return `  name: ${name}\n  namespace: ${namespace}\n  labels: {${labels}}`;
}

function indented(text: string, by: number): string {
  return text.replace(/^(?=.)/gm, " ".repeat(by));
}

function namespaceOf(namespace: string): string {
  return `apiVersion: v1
kind: Namespace
metadata:
  name: ${namespace}
  labels:
    pod-security.kubernetes.io/enforce: restricted
`;
}

function rbac(namespace: string): string {
  return `apiVersion: v1
kind: ServiceAccount
metadata:
${metadata(namespace)}
---
# Allows reading the apiservers' addresses, and nothing else.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: ${name}
  namespace: default
  labels: {${labels}}
rules:
  - apiGroups: [discovery.k8s.io]
    resources: [endpointslices]
    resourceNames: [kubernetes] # the one that the apiservers write
    verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: ${name}
  namespace: default
  labels: {${labels}}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: ${name}
subjects:
  - {kind: ServiceAccount, name: ${name}, namespace: ${namespace}}
`;
}

function deployment({ image, namespace, replicas }: DeploymentWishes): string {
  return `apiVersion: apps/v1
kind: Deployment
metadata:
${metadata(namespace)}
spec:
  replicas: ${replicas}
  selector:
    matchLabels: {${labels}}
  strategy:
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  template:
    metadata:
      labels: {${labels}}
    spec:
      serviceAccountName: ${name}
      priorityClassName: system-cluster-critical
      terminationGracePeriodSeconds: 90 # above drain.shutdownDelay and drain.timeout together
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      topologySpreadConstraints:
        - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {${labels}}}}
        - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {${labels}}}}
${containers(image)}`;
}

function containers(image: string): string {
  return `      containers:
        - name: ${name}
          image: ${image}
          args: [run, --config, /etc/${name}/watchkeeper.yaml]
          ports:
            - {name: https, containerPort: ${ports.kube}}
            - {name: metrics, containerPort: ${ports.metrics}}
          # /livez and not /readyz: a pod that starts while every apiserver is down waits for them, and is not restarted again and again.
          startupProbe:
            httpGet: {path: /livez, port: metrics}
            periodSeconds: 1
            failureThreshold: 60
          # The check fails if the event loop hangs. A restart would not help if every apiserver is down, so that does not fail it.
          livenessProbe:
            httpGet: {path: /livez, port: metrics}
            periodSeconds: 10
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /readyz, port: metrics}
            periodSeconds: 2
          resources:
            requests: {cpu: 100m, memory: 256Mi}
            limits: {memory: 1Gi}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - {name: config, mountPath: /etc/${name}, readOnly: true}
            - {name: tls, mountPath: ${served}, readOnly: true}
      volumes:
        - name: config
          configMap: {name: ${name}}
        - name: tls
          secret: {secretName: ${name}-tls}
`;
}

function service(namespace: string): string {
  return `apiVersion: v1
kind: Service
metadata:
${metadata(namespace)}
spec:
  selector: {${labels}}
  ports:
    - {name: https, port: 443, targetPort: https}
---
# A Service of its own, so that the metrics stay in the cluster if you publish the other one.
apiVersion: v1
kind: Service
metadata:
  name: ${name}-metrics
  namespace: ${namespace}
  labels: {${labels}, app.kubernetes.io/component: metrics}
spec:
  selector: {${labels}}
  ports:
    - {name: metrics, port: ${ports.metrics}, targetPort: metrics}
`;
}

function disruption(namespace: string): string {
  return `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
${metadata(namespace)}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {${labels}}
`;
}

function network(namespace: string): string {
  return `# Ingress: clients and the metrics scraper. Egress: the apiservers (at node addresses) and DNS.
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
${metadata(namespace)}
spec:
  podSelector:
    matchLabels: {${labels}}
  policyTypes: [Ingress, Egress]
  ingress:
    - ports:
        - {protocol: TCP, port: https}
    - ports:
        - {protocol: TCP, port: metrics}
      from:
        - namespaceSelector:
            matchLabels: {kubernetes.io/metadata.name: monitoring}
  egress:
    - ports:
        - {protocol: TCP, port: 6443}
        - {protocol: TCP, port: 443}
    - ports:
        - {protocol: UDP, port: 53}
        - {protocol: TCP, port: 53}
`;
}
