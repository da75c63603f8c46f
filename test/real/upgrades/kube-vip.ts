/**
 * Runs kube-vip as its guide for kubeadm does: a leader, elected through a Lease, announces the VIP with ARP. The kube-vip
 * of each machine connects to another apiserver, as it does on control-plane nodes. It does not check watchkeeper.
 */
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Child } from "../rig/child.ts";
import type { Cluster } from "../rig/cluster.ts";
import { pathOf } from "../rig/parts.ts";
import type { Host } from "./host.ts";

/** The settings of the manifest that `kube-vip manifest pod --controlplane --arp --leaderElection` prints. */
const settings = {
  vip_arp: "true",
  vip_interface: "eth0",
  vip_subnet: "32",
  cp_enable: "true",
  cp_namespace: "kube-system",
  vip_leaderelection: "true",
  vip_leasename: "plndr-cp-lock",
  vip_leaseduration: "5",
  vip_renewdeadline: "3",
  vip_retryperiod: "1",
};

export function startKubeVip(cluster: Cluster, hosts: readonly Host[], vip: string): readonly Child[] {
  return hosts.map((host, at) => {
    const { url } = cluster.apiserver(at % cluster.apiservers.length);
    const folder = join(cluster.folder, `kube-vip-${host.name}`);
    mkdirSync(folder);
    copyFileSync(cluster.kubeconfig(url), join(folder, "admin.conf"));
    const own = { ...settings, address: vip, vip_nodename: host.name, kubernetes_addr: url };
    const variables = Object.entries(own).map(([name, value]) => `${name}=${value}`);
    return host.startWith({ folder, at: "/etc/kubernetes" }, [
      "env",
      ...variables,
      pathOf("kube-vip"),
      "manager",
    ]);
  });
}
