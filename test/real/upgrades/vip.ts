/** Records which machine has the VIP, whatever program assigns it: keepalived or kube-vip. */
import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Child } from "../rig/child.ts";
import type { Cluster } from "../rig/cluster.ts";
import type { Host } from "./host.ts";

/** Starts the program that assigns the VIP, once on each machine. */
export type StartVip = (cluster: Cluster, hosts: readonly Host[], vip: string) => readonly Child[];

const lookMs = 200;

export class Vip {
  readonly #hosts: readonly Host[];
  readonly #address: string;
  readonly #children: readonly Child[];
  readonly #timer: ReturnType<typeof setInterval>;
  #holder = "";
  /** How often the VIP has moved to another machine. */
  moves = 0;

  constructor(hosts: readonly Host[], address: string, children: readonly Child[]) {
    this.#hosts = hosts;
    this.#address = address;
    this.#children = children;
    this.#timer = setInterval(() => this.#look(), lookMs);
  }

  #look(): void {
    const holders = this.#hosts.filter(({ namespace = "" }) => {
      const { stdout } = spawnSync("ip", ["-n", namespace, "-o", "-4", "addr", "show", "dev", "eth0"]);
      return stdout.toString().includes(` ${this.#address}/`);
    });
    const [holder] = holders;
    if (holder === undefined || holders.length > 1 || holder.name === this.#holder) return;
    if (this.#holder !== "") this.moves += 1;
    this.#holder = holder.name;
  }

  /** Name of the machine that has the VIP. */
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
