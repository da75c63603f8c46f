/** Runs Debian's keepalived with the files of deploy/keepalived. */
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Child } from "../rig/child.ts";
import type { Cluster } from "../rig/cluster.ts";
import { type Host, root } from "./host.ts";

export function startKeepalived(cluster: Cluster, hosts: readonly Host[], vip: string): readonly Child[] {
  return hosts.map((host, at) => {
    const peers = hosts.filter((one) => one !== host);
    return startOn(host, writeFiles(cluster, host, { peers, vip, priority: 101 - at }));
  });
}

type Router = { readonly peers: readonly Host[]; readonly vip: string; readonly priority: number };

/** Returns the folder with the shipped files, adapted to this machine. */
function writeFiles(cluster: Cluster, host: Host, { peers, vip, priority }: Router): string {
  const folder = join(cluster.folder, `keepalived-${host.name}`);
  mkdirSync(folder);
  const shipped = join(root, "deploy/keepalived");
  copyFileSync(join(shipped, "check_watchkeeper.sh"), join(folder, "check_watchkeeper.sh"));
  chmodSync(join(folder, "check_watchkeeper.sh"), 0o755);
  const addresses = peers.map(({ address }) => `    ${address}\n`).join("");
  const config = readFileSync(join(shipped, "keepalived.conf"), "utf8")
    .replace("router_id cp-1", `router_id ${host.name}`)
    .replace("priority 101", `priority ${priority}`)
    .replace("unicast_src_ip 10.0.0.11", `unicast_src_ip ${host.address}`)
    .replace(/(unicast_peer \{\n)(?: {4}[\d.]+\n)+/, (_, head: string) => head + addresses)
    .replace("10.0.0.10/24", `${vip}/24`);
  writeFileSync(join(folder, "keepalived.conf"), config, { mode: 0o644 });
  return folder;
}

function startOn(host: Host, folder: string): Child {
  const pids = ["pid", "vrrp_pid", "checkers_pid"].map((name) => `--${name}=${join(folder, name)}`);
  const command = ["keepalived", "--dont-fork", "--log-console", ...pids];
  return host.startWith({ folder, at: "/etc/keepalived" }, command);
}
