/**
 * Classifies callers by their role in a cluster. The admin page groups callers by this class. A caller's identity is a
 * claim that is not verified here.
 */
import type { Subject } from "./subject.ts";

export const clientKinds = ["node", "control-plane", "controller", "kubectl", "other"] as const;
export type ClientKind = (typeof clientKinds)[number];

const byAgent: ReadonlyMap<string, ClientKind> = new Map([
  ["kubelet", "node"],
  ["kube-proxy", "node"],
  ["kube-apiserver", "control-plane"],
  ["kube-scheduler", "control-plane"],
  ["kube-controller-manager", "control-plane"],
  ["cloud-controller-manager", "control-plane"],
  ["kubectl", "kubectl"],
  ["k9s", "kubectl"],
  ["helm", "kubectl"],
  ["oc", "kubectl"],
]);

/**
 * The program takes precedence over the identity, because kube-controller-manager uses the service accounts of its
 * controllers.
 */
export function clientKindOf(agent: string, subject: Subject): ClientKind {
  const known = byAgent.get(agent);
  if (known !== undefined) return known;
  if (subject.name.startsWith("system:node:")) return "node";
  if (/^system:(apiserver|kube-scheduler|kube-controller-manager)$/.test(subject.name))
    return "control-plane";
  return subject.name.startsWith("system:serviceaccount:") ? "controller" : "other";
}
