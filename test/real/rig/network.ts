/**
 * A bridge in the root namespace and, connected to it, one network namespace for each backend. Sockets and packets are
 * real, and each namespace has a firewall of its own, so a black hole behaves as in a real network.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { onLeave } from "./leave.ts";

/**
 * Interface names have at most 15 bytes: `wk`, a pid of at most 7 digits, a letter from the second network on, `-`, and
 * a number.
 */
const prefix = "wk";
let networks = 0;

/** Which packets a black hole drops, from the backend's view. */
export type Direction = "both" | "in" | "out";
/** `clients`: only packets to and from the API port. `host`: all packets, including those to etcd. */
export type Reach = "clients" | "host";

function attempt(command: string, ...args: string[]): string | undefined {
  const { status, stdout } = spawnSync(command, args, { encoding: "utf8" });
  return status === 0 ? stdout : undefined;
}

function must(command: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`Cannot run ${command} ${args.join(" ")}: ${stderr.trim()}`);
}

/**
 * All rules are set with one command. Between two commands, packets would be dropped in one direction only, for tens of
 * milliseconds.
 */
function drop(namespace: string, rules: readonly string[], target = "DROP"): void {
  const table = ["*filter", ...rules.map((rule) => `-A ${rule} -j ${target}`), "COMMIT", ""].join("\n");
  const args = ["netns", "exec", namespace, "iptables-restore", "-w", "--noflush"];
  const { status, stderr } = spawnSync("ip", args, { encoding: "utf8", input: table });
  if (status !== 0) throw new Error(`Cannot drop ${rules.join("; ")}: ${stderr.trim()}`);
}

/**
 * Removes the namespaces and bridges of runs that were killed, which are those named after a process that no longer
 * exists.
 */
export function sweep(): void {
  const isStale = (name: string): boolean => {
    const pid = new RegExp(`^${prefix}(\\d+)[a-z]?(-|$)`).exec(name)?.[1];
    return pid !== undefined && !existsSync(`/proc/${pid}`);
  };
  for (const line of (attempt("ip", "netns", "list") ?? "").split("\n")) {
    const name = line.split(" ")[0] ?? "";
    if (!isStale(name)) continue;
    for (const pid of (attempt("ip", "netns", "pids", name) ?? "").split("\n").filter(Boolean)) {
      process.kill(Number(pid), "SIGKILL");
    }
    attempt("ip", "netns", "del", name);
  }
  for (const name of Object.keys(networkInterfaces())) if (isStale(name)) attempt("ip", "link", "del", name);
}

export class Network {
  readonly #bridge = `${prefix}${process.pid}${["", "b", "c"][networks++] ?? "d"}`;
  readonly #subnet: string;
  readonly #namespaces: string[] = [];
  readonly #leave: () => void;

  constructor() {
    sweep();
    this.#subnet = freeSubnet();
    this.#leave = onLeave(() => this.#remove());
    must("ip", "link", "add", this.#bridge, "type", "bridge");
    must("ip", "addr", "add", `${this.address}/24`, "dev", this.#bridge);
    must("ip", "link", "set", this.#bridge, "up");
  }

  /** The address of the root namespace in the other namespaces. */
  get address(): string {
    return `${this.#subnet}.1`;
  }

  /** Creates a namespace with one interface, and returns its name and address. */
  add(): { readonly namespace: string; readonly address: string } {
    const number = this.#namespaces.length;
    const namespace = `${this.#bridge}-${number}`;
    const address = `${this.#subnet}.${11 + number}`;
    must("ip", "netns", "add", namespace);
    this.#namespaces.push(namespace);
    must("ip", "link", "add", namespace, "type", "veth", "peer", "name", "eth0", "netns", namespace);
    must("ip", "link", "set", namespace, "master", this.#bridge, "up");
    must("ip", "-n", namespace, "addr", "add", `${address}/24`, "dev", "eth0");
    must("ip", "-n", namespace, "link", "set", "eth0", "up");
    must("ip", "-n", namespace, "link", "set", "lo", "up");
    return { namespace, address };
  }

  /** Drops packets silently, as `iptables -j DROP` on the host does. */
  blackHole(namespace: string, port: number, direction: Direction, reach: Reach): void {
    const only = (side: string): string => (reach === "host" ? "" : ` -p tcp ${side} ${port}`);
    const rules: string[] = [];
    if (direction !== "out") rules.push(`INPUT -i eth0${only("--dport")}`);
    if (direction !== "in") rules.push(`OUTPUT -o eth0${only("--sport")}`);
    drop(namespace, rules);
  }

  /** Drops the packets of one connection in both directions. The client's port identifies the connection. */
  sever(namespace: string, port: number, clientPort: number): void {
    drop(namespace, [
      `INPUT -p tcp --dport ${port} --sport ${clientPort}`,
      `OUTPUT -p tcp --sport ${port} --dport ${clientPort}`,
    ]);
  }

  /** Drops packets between a namespace and one port of the root namespace, also of existing connections. */
  cut(namespace: string, port: number): void {
    drop(namespace, [
      `OUTPUT -p tcp -d ${this.address} --dport ${port}`,
      `INPUT -p tcp -s ${this.address} --sport ${port}`,
    ]);
  }

  /**
   * Answers packets from a namespace to one port of the root namespace with a TCP reset, also on existing connections.
   */
  refuse(namespace: string, port: number): void {
    const target = "REJECT --reject-with tcp-reset";
    drop(namespace, [`OUTPUT -p tcp -d ${this.address} --dport ${port}`], target);
  }

  /** Drops this share (0 to 1) of the packets to and from `port`, each at random. */
  lose(namespace: string, port: number, share: number): void {
    const dice = `-m statistic --mode random --probability ${share}`;
    drop(namespace, [`INPUT -p tcp --dport ${port} ${dice}`, `OUTPUT -p tcp --sport ${port} ${dice}`]);
  }

  /**
   * Drops packets that are larger than `bytes`. With segmentation offload (GSO), the segments of one write are still
   * one large packet here; each retransmitted segment is checked by its own length.
   */
  loseLarge(
    namespace: string,
    port: number,
    { bytes, way }: { readonly bytes: number; readonly way: "from" | "to" },
  ): void {
    const side = way === "from" ? `OUTPUT -p tcp --sport ${port}` : `INPUT -p tcp --dport ${port}`;
    drop(namespace, [`${side} -m length --length ${bytes + 1}:65535`]);
  }

  heal(namespace: string): void {
    must("ip", "netns", "exec", namespace, "iptables", "-w", "-F");
  }

  remove(): void {
    this.#leave();
  }

  #remove(): void {
    for (const namespace of this.#namespaces) {
      attempt("ip", "netns", "del", namespace);
      attempt("ip", "link", "del", namespace); // its peer is deleted with the namespace, but only later
    }
    attempt("ip", "link", "del", this.#bridge);
  }
}

/**
 * Returns a free 10.x.y subnet. The search begins at a subnet derived from the pid, so that two runs on one machine
 * rarely collide.
 */
function freeSubnet(): string {
  const taken = Object.values(networkInterfaces()).flatMap(
    (list) => list?.map(({ address }) => address) ?? [],
  );
  for (let number = process.pid; ; number++) {
    const subnet = `10.${128 + ((number >> 8) % 64)}.${number % 256}`;
    if (!taken.some((address) => address.startsWith(`${subnet}.`))) return subnet;
  }
}
