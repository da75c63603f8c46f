/**
 * [Conformance] specs that do not run, because a node without containers cannot pass them. All other [Conformance]
 * specs run. A spec is excluded if its full title contains one of these texts.
 */
export type Exclusion = { readonly why: string; readonly titles: readonly string[] };

export const excluded: readonly Exclusion[] = [
  {
    why: "the apiserver calls a webhook in a pod",
    titles: [
      "AdmissionWebhook [Privileged:ClusterAdmin]",
      "CustomResourceConversionWebhook",
      "CustomResourceFieldSelectors",
    ],
  },
  {
    why: "the apiserver asks an aggregated API server in a pod",
    titles: ["[sig-api-machinery] Aggregator Should be able to support the 1.17 Sample API Server"],
  },
  {
    why: "a container's output, files or environment is read",
    titles: [
      "[sig-auth] ServiceAccounts ServiceAccountIssuerDiscovery",
      "[sig-auth] ServiceAccounts should mount",
      "[sig-cli] Kubectl client Guestbook application",
      "[sig-cli] Kubectl client Kubectl expose",
      "[sig-cli] Kubectl client Update Demo",
      "[sig-cli] Kubectl logs",
      "[sig-node] ConfigMap should be consumable",
      "[sig-node] Containers should",
      "[sig-node] Downward API should",
      "[sig-node] Kubelet when scheduling",
      "[sig-node] KubeletManagedEtcHosts",
      "[sig-node] Pods should contain environment variables",
      "[sig-node] Pods should support remote command execution over websockets",
      "[sig-node] Pods should support retrieving logs",
      "[sig-node] Secrets should be consumable",
      "[sig-node] Security Context",
      "[sig-node] Sysctls [LinuxOnly] [NodeConformance] should support sysctls",
      "[sig-node] Variable Expansion",
      "[sig-storage] ConfigMap binary data should be reflected in volume",
      "[sig-storage] ConfigMap optional updates should be reflected in volume",
      "[sig-storage] ConfigMap should be consumable",
      "[sig-storage] ConfigMap updates should be reflected in volume",
      "[sig-storage] Downward API volume",
      "[sig-storage] EmptyDir",
      "[sig-storage] Projected",
      "[sig-storage] Secrets optional updates should be reflected in volume",
      "[sig-storage] Secrets should be able to mount",
      "[sig-storage] Secrets should be consumable",
      "[sig-storage] Subpath",
    ],
  },
  {
    why: "a kubelet acts: it starts, probes, resizes, restarts, rejects or ends containers, and says what came of it",
    titles: [
      "[sig-apps] Daemon set [Serial] should rollback without unnecessary restarts",
      "[sig-node] Container Lifecycle Hook",
      "[sig-node] Container Runtime",
      "[sig-node] Ephemeral Containers",
      "[sig-node] ImageVolume",
      "[sig-node] InitContainer",
      "[sig-node] Pod InPlace Resize",
      "[sig-node] Pods Extended (pod generation)",
      "[sig-node] Pods should allow activeDeadlineSeconds to be updated",
      "[sig-node] PreStop",
      "[sig-node] Probing container",
      "Should recreate evicted statefulset",
    ],
  },
  {
    why: "a command in a container makes a probe fail, and pods halt a rollout",
    titles: [
      "Burst scaling should run to completion even with unhealthy pods",
      "Scaling should happen in predictable order and halt if any stateful pod is unhealthy",
      "[StatefulSetBasic] should perform rolling updates and roll backs of template modifications",
    ],
  },
  {
    why: "a container's exit code depends on what it finds when it runs",
    titles: [
      "[sig-apps] Job should allow to use a pod failure policy to ignore failure matching on DisruptionTarget",
      "[sig-apps] Job should allow to use the pod failure policy on exit code",
      "[sig-apps] Job should execute all indexes despite some failing",
      "[sig-apps] Job should mark indexes as failed when the FailIndex action",
      "[sig-apps] Job should run a job to completion when tasks sometimes fail",
      "[sig-apps] Job with successPolicy",
    ],
  },
  {
    why: "packets travel to a pod, a Service or cluster DNS",
    titles: [
      "[sig-apps] ReplicaSet should serve a basic image",
      "[sig-apps] ReplicationController should serve a basic image",
      "[sig-network] DNS should",
      "[sig-network] EndpointSlice should support a Service with multiple",
      "[sig-network] HostPort",
      "[sig-network] Networking Granular Checks",
      "[sig-network] Proxy version v1",
      "[sig-network] Services should be able to",
      "[sig-network] Services should have session affinity",
      "[sig-network] Services should serve",
    ],
  },
];

/**
 * Returns the texts that exclude no spec of `titles`. There are some if the suite of another version has other titles.
 */
export function idleExclusions(titles: readonly string[]): readonly string[] {
  return excluded
    .flatMap((one) => one.titles)
    .filter((part) => !titles.some((title) => title.includes(part)));
}
