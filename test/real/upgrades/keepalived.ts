/** Runs Debian's keepalived with the files of deploy/keepalived, and records which machine has the VIP. */
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Child } from "../rig/child.ts";
import type { Cluster } from "../rig/cluster.ts";
import { type Host, root } from "./host.ts";

const lookMs = 200;

export class Keepalived {
  readonly #hosts: readonly Host[];
  readonly #vip: string;
  readonly #children: readonly Child[];
  readonly #timer: ReturnType<typeof setInterval>;
  #holder = "";
  /** How often the VIP has moved to another machine. */
  moves = 0;

  constructor(cluster: Cluster, hosts: readonly Host[], vip: string) {
    this.#hosts = hosts;
    this.#vip = vip;
    this.#children = hosts.map((host, at) => this.#start(cluster, host, 101 - at));
    this.#timer = setInterval(() => this.#look(), lookMs);
  }

  /**
   * The process has a mount namespace in which /etc/keepalived is this run's own folder. So the shipped files can keep
   * their paths.
   */
  #start(cluster: Cluster, host: Host, priority: number): Child {
    const folder = join(cluster.folder, `keepalived-${host.name}`);
    mkdirSync(folder);
    const shipped = join(root, "deploy/keepalived");
    copyFileSync(join(shipped, "check_watchkeeper.sh"), join(folder, "check_watchkeeper.sh"));
    chmodSync(join(folder, "check_watchkeeper.sh"), 0o755);
    const peers = this.#hosts.filter((one) => one !== host).map(({ address }) => `    ${address}\n`);
    const config = readFileSync(join(shipped, "keepalived.conf"), "utf8")
      .replace("router_id cp-1", `router_id ${host.name}`)
      .replace("priority 101", `priority ${priority}`)
      .replace("unicast_src_ip 10.0.0.11", `unicast_src_ip ${host.address}`)
      .replace(/(unicast_peer \{\n)(?: {4}[\d.]+\n)+/, (_, head: string) => head + peers.join(""))
      .replace("10.0.0.10/24", `${this.#vip}/24`);
    writeFileSync(join(folder, "keepalived.conf"), config, { mode: 0o644 });
    const pids = ["pid", "vrrp_pid", "checkers_pid"].map((name) => `--${name}=${join(folder, name)}`);
    const run = `mkdir -p /etc/keepalived && mount --bind ${folder} /etc/keepalived && exec keepalived --dont-fork --log-console ${pids.join(" ")}`;
    return host.start("unshare", ["--mount", "sh", "-c", run]);
  }

  #look(): void {
    const holders = this.#hosts.filter(({ namespace = "" }) => {
      const { stdout } = spawnSync("ip", ["-n", namespace, "-o", "-4", "addr", "show", "dev", "eth0"]);
      return stdout.toString().includes(` ${this.#vip}/`);
    });
    const [holder] = holders;
    if (holder === undefined || holders.length > 1 || holder.name === this.#holder) return;
    if (this.#holder !== "") this.moves += 1;
    this.#holder = holder.name;
  }

  get holder(): string {
    return this.#holder;
  }

  async ready(): Promise<void> {
    const deadline = Date.now() + 30_000;
    while (this.#holder === "") {
      if (Date.now() > deadline)
        throw new Error(`No machine has the VIP:\n${this.#children[0]?.tail() ?? ""}`);
      await sleep(lookMs);
    }
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#children.map((child) => child.stop()));
  }
}
