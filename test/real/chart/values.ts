/** Values of the chart that several sets have in common. */
export type Values = Readonly<Record<string, unknown>>;

export const image = { repository: "registry.example.com/watchkeeper" };
export const onControlPlane = { nodeSelector: { "node-role.kubernetes.io/control-plane": "" } };
export const pair = { frontProxy: { secretName: "front-proxy", clientCASecretName: "client-ca" } };
export const replicas = { replicas: { enabled: true, serverName: "wk.example" } };
export const backends = { backends: [{ name: "cp-1", url: "https://10.0.0.11:8443" }] };
export const secure = { metrics: { secure: true } };
export const monitor = { serviceMonitor: { enabled: true } };
export const nodes = { mode: "DaemonSet" };
