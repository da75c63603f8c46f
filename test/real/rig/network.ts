/**
 * A bridge in the root namespace and, on it, one network namespace a backend: real sockets, real packets, and a
 * firewall of its own for each, so that a black hole is what it is in life.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { onLeave } from "./leave.ts";

/** Interface names are at most 15 bytes: `wk`, a pid of at most 7 digits, a letter from the second network on, `-`, a number. */
const prefix = "wk";
let networks = 0;

/** Which packets a black hole swallows, seen from the backend. */
export type Direction = "both" | "in" | "out";
/** `clients`: only what goes to and comes from the API port. `host`: everything, etcd included. */
export type Reach = "clients" | "host";

function attempt(command: string, ...args: string[]): string | undefined {
  const { status, stdout } = spawnSync(command, args, { encoding: "utf8" });
  return status === 0 ? stdout : undefined;
}

function must(command: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`Cannot run ${command} ${args.join(" ")}: ${stderr.trim()}`);
}

/** All rules at once: between two commands a hole would be open on one side only, for tens of milliseconds. */
function drop(namespace: string, rules: readonly string[], target = "DROP"): void {
  const table = ["*filter", ...rules.map((rule) => `-A ${rule} -j ${target}`), "COMMIT", ""].join("\n");
  const args = ["netns", "exec", namespace, "iptables-restore", "-w", "--noflush"];
  const { status, stderr } = spawnSync("ip", args, { encoding: "utf8", input: table });
  if (status !== 0) throw new Error(`Cannot drop ${rules.join("; ")}: ${stderr.trim()}`);
}

/** Removes what runs that were killed have left: everything named after a process that is no more. */
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

  /** Where the root namespace is reached from inside the others. */
  get address(): string {
    return `${this.#subnet}.1`;
  }

  /** A new namespace with one interface; its address and name. */
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

  /** Swallows packets without a word, as `iptables -j DROP` on the host does. */
  blackHole(namespace: string, port: number, direction: Direction, reach: Reach): void {
    const only = (side: string): string => (reach === "host" ? "" : ` -p tcp ${side} ${port}`);
    const rules: string[] = [];
    if (direction !== "out") rules.push(`INPUT -i eth0${only("--dport")}`);
    if (direction !== "in") rules.push(`OUTPUT -o eth0${only("--sport")}`);
    drop(namespace, rules);
  }

  /** Swallows one connection alone, both ways: the client's port is what tells it from the others. */
  sever(namespace: string, port: number, clientPort: number): void {
    drop(namespace, [
      `INPUT -p tcp --dport ${port} --sport ${clientPort}`,
      `OUTPUT -p tcp --sport ${port} --dport ${clientPort}`,
    ]);
  }

  /** Swallows what passes between a namespace and one port of the root namespace, begun already or not. */
  cut(namespace: string, port: number): void {
    drop(namespace, [
      `OUTPUT -p tcp -d ${this.address} --dport ${port}`,
      `INPUT -p tcp -s ${this.address} --sport ${port}`,
    ]);
  }

  /** Answers what a namespace sends to one port of the root namespace with a reset, begun already or not. */
  refuse(namespace: string, port: number): void {
    const target = "REJECT --reject-with tcp-reset";
    drop(namespace, [`OUTPUT -p tcp -d ${this.address} --dport ${port}`], target);
  }

  /** Loses this share of the packets to and from `port`, each by its own throw of the dice. */
  lose(namespace: string, port: number, share: number): void {
    const dice = `-m statistic --mode random --probability ${share}`;
    drop(namespace, [`INPUT -p tcp --dport ${port} ${dice}`, `OUTPUT -p tcp --sport ${port} ${dice}`]);
  }

  /**
   * Loses what is larger. Before the segments of one write are cut apart (GSO) they are one large packet here, and each
   * that is sent again is judged by its own length.
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
      attempt("ip", "link", "del", namespace); // its peer goes with the namespace, but only when the kernel gets to it
    }
    attempt("ip", "link", "del", this.#bridge);
  }
}

/** A 10.x.y subnet named by our pid, so that two runs on one machine seldom meet; the next one when they do. */
function freeSubnet(): string {
  const taken = Object.values(networkInterfaces()).flatMap(
    (list) => list?.map(({ address }) => address) ?? [],
  );
  for (let number = process.pid; ; number++) {
    const subnet = `10.${128 + ((number >> 8) % 64)}.${number % 256}`;
    if (!taken.some((address) => address.startsWith(`${subnet}.`))) return subnet;
  }
}
