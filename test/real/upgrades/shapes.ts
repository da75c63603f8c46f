/** The shapes in which watchkeeper can be deployed, each with its way to upgrade. An upgrade replaces one process. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../support/free-port.ts";
import type { Child } from "../rig/child.ts";
import type { Cluster } from "../rig/cluster.ts";
import { onLeave } from "../rig/leave.ts";
import type { Need } from "../rig/parts.ts";
import { Host, root } from "./host.ts";
import { bin } from "./installed.ts";
import { startKeepalived } from "./keepalived.ts";
import { startKubeVip } from "./kube-vip.ts";
import { StaticPod } from "./static-pod.ts";
import { type StartVip, Vip } from "./vip.ts";

export type Running = {
  readonly url: string;
  readonly logFile: string;
  readonly upgrade: () => Promise<void>;
  readonly stop: () => Promise<void>;
  /** How often the VIP has moved. Undefined if the shape has no VIP. */
  readonly moves?: () => number;
};

export type Shape = {
  readonly name: string;
  /** True if no client may notice an upgrade. The other shapes are measured for comparison. */
  readonly isSeamless: boolean;
  /** What the shape needs in addition to what every cluster needs. */
  readonly needs?: readonly Need[];
  readonly start: (cluster: Cluster) => Promise<Running>;
};

const staticConfig = "deploy/static-pod/config.yaml";
const deploymentConfig = "deploy/deployment/config.yaml";
const migrate =
  /^net\.\S+ = 1$/m.exec(readFileSync(join(root, "deploy/static-pod/sysctl.conf"), "utf8"))?.[0] ?? "";

/** Returns an address in the bridge's subnet that no machine has. */
function vipOf(cluster: Cluster): string {
  return cluster.network.address.replace(/\.1$/, ".240");
}

/** Returns a function that upgrades the next pod, in turn. */
function inTurn(pods: readonly StaticPod[]): () => Promise<void> {
  let count = 0;
  return async () => {
    await pods[count++ % pods.length]?.replace();
  };
}

async function started(host: Host, manifests: readonly string[]): Promise<readonly StaticPod[]> {
  const pods = manifests.map((manifest) => new StaticPod(host, manifest));
  await Promise.all(pods.map((pod) => pod.start()));
  return pods;
}

const one = ["static-pod/watchkeeper.yaml"];
const two = [...one, "static-pod/watchkeeper-b.yaml"];

function staticPods(manifests: readonly string[], isMigrated = true): Shape["start"] {
  return async (cluster) => {
    const host = new Host(cluster, "node", { config: staticConfig });
    if (isMigrated) host.set(migrate.replaceAll(" ", ""));
    const pods = await started(host, manifests);
    const stop = async (): Promise<void> => void (await Promise.all(pods.map((pod) => pod.stop())));
    return { url: host.url, logFile: host.logFile, upgrade: inTurn(pods), stop };
  };
}

/**
 * Two machines that share a VIP. An upgrade replaces watchkeeper on the machine that has the VIP, because no client
 * uses the other one.
 */
function behindVip(startVip: StartVip, manifests: readonly string[]): Shape["start"] {
  return async (cluster) => {
    const address = vipOf(cluster);
    const hosts = ["node-a", "node-b"].map(
      (name) => new Host(cluster, name, { config: staticConfig, names: [address] }),
    );
    for (const host of hosts) host.set(migrate.replaceAll(" ", ""));
    const pods = await Promise.all(hosts.map((host) => started(host, manifests)));
    const vip = new Vip(hosts, address, startVip(cluster, hosts, address));
    await vip.ready();
    const upgrades = new Map(hosts.map(({ name }, at) => [name, inTurn(pods[at] ?? [])]));
    const stop = async (): Promise<void> => {
      await vip.stop();
      await Promise.all(pods.flat().map((pod) => pod.stop()));
    };
    return {
      url: `https://${address}:8443`,
      logFile: hosts[0]?.logFile ?? "",
      upgrade: async () => upgrades.get(vip.holder)?.(),
      stop,
      moves: () => vip.moves,
    };
  };
}

/** The pods of deploy/node-local. They listen on loopback, so they run in the root namespace, on free ports. */
async function nodeLocal(cluster: Cluster): Promise<Running> {
  const settings = {
    config: "deploy/node-local/config.yaml",
    port: await freePort(),
    metricsPort: await freePort(),
  };
  const host = new Host(cluster, "local", settings, true);
  const pods = await started(host, ["node-local/watchkeeper.yaml", "node-local/watchkeeper-b.yaml"]);
  const stop = async (): Promise<void> => void (await Promise.all(pods.map((pod) => pod.stop())));
  return { url: host.url, logFile: host.logFile, upgrade: inTurn(pods), stop };
}

/** Returns the arguments of the unit's ExecStart=, with this machine's files. */
function unitArgs(host: Host, pidFile: string): readonly string[] {
  const unit = readFileSync(join(root, "config/systemd/watchkeeper.service"), "utf8");
  const [, line = ""] = /^ExecStart=watchkeeper (.+)$/m.exec(unit) ?? [];
  return line
    .replace("/etc/watchkeeper/watchkeeper.yaml", host.configFile)
    .replace("/run/watchkeeper/pid", pidFile)
    .split(" ");
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`Waited a minute for ${what}`);
    await sleep(20);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The process whose pid is in a pid file. It is not a child process of the test. */
class Served {
  readonly #pidFile: string;
  readonly #leave: () => void;

  constructor(pidFile: string) {
    this.#pidFile = pidFile;
    this.#leave = onLeave(() => process.kill(this.pid, "SIGKILL"));
  }

  get pid(): number {
    return Number(readFileSync(this.#pidFile, "utf8"));
  }

  /** Sends the signal, and waits until this process has exited and another one is ready. */
  async replace(signal: NodeJS.Signals, host: Host): Promise<void> {
    const before = this.pid;
    process.kill(before, signal);
    await until("the end of the process", () => !isAlive(before));
    await until("another process", () => this.#isOther(before));
    await until("readiness", () => host.isReady().catch(() => false));
  }

  #isOther(before: number): boolean {
    try {
      return this.pid !== before;
    } catch {
      return false; // no process has written the file yet
    }
  }

  end(): void {
    this.#leave();
    if (isAlive(this.pid)) process.kill(this.pid, "SIGKILL");
  }
}

/** The shape for `systemctl reload`, which sends SIGUSR2. */
async function systemdReload(cluster: Cluster): Promise<Running> {
  const host = new Host(cluster, "unit", { config: staticConfig, reusesPort: false });
  const pidFile = join(cluster.folder, "unit.pid");
  const child = host.start(process.execPath, [bin, ...unitArgs(host, pidFile)]);
  await child.ready(60_000, () => host.isReady());
  const served = new Served(pidFile);
  const stop = async (): Promise<void> => {
    served.end();
    await child.stop();
  };
  return { url: host.url, logFile: host.logFile, upgrade: () => served.replace("SIGUSR2", host), stop };
}

/**
 * The shape for `systemctl restart` with the socket unit. systemd-socket-activate opens the socket, and a shell keeps
 * it open as systemd would.
 */
async function systemdRestart(cluster: Cluster): Promise<Running> {
  const host = new Host(cluster, "socket", { config: staticConfig, reusesPort: false });
  const pidFile = join(cluster.folder, "socket.pid");
  const unit = readFileSync(join(root, "config/systemd/watchkeeper.socket"), "utf8");
  const valueOf = (key: string): string => new RegExp(`^${key}=(.+)$`, "m").exec(unit)?.[1] ?? "";
  const own = [process.execPath, bin, ...unitArgs(host, pidFile)];
  // LISTEN_PID must be the pid of the process that uses the socket, but systemd-socket-activate sets it to the shell's
  // pid.
  const loop = `while :; do sh -c 'LISTEN_PID=$$ exec "$@"' sh "$@"; done`;
  const child = host.start("systemd-socket-activate", [
    "--listen",
    valueOf("ListenStream"),
    `--fdname=${valueOf("FileDescriptorName")}`,
    "sh",
    "-c",
    loop,
    "sh",
    ...own,
  ]);
  // systemd-socket-activate starts the program at the first connection.
  const knock = (): Promise<unknown> => fetch(host.url).catch(() => undefined);
  await child.ready(60_000, async () => (await knock(), host.isReady()));
  const served = new Served(pidFile);
  const stop = async (): Promise<void> => {
    child.signal("SIGKILL");
    served.end();
    await child.stop();
  };
  return { url: host.url, logFile: host.logFile, upgrade: () => served.replace("SIGTERM", host), stop };
}

/**
 * Assumed time in milliseconds from the deletion of a pod until every node has removed it from the Service. There is no
 * kube-proxy here.
 */
const endpointsMs = 1_000;

/** Does what kube-proxy does: a new connection to the VIP goes to a random endpoint and stays there. */
class Service {
  readonly #vip: string;
  readonly #leave: () => void;
  #rules: readonly string[] = [];

  constructor(vip: string) {
    this.#vip = vip;
    this.#leave = onLeave(() => this.#remove());
  }

  lead(hosts: readonly Host[]): void {
    const before = this.#rules;
    this.#rules = hosts.map(({ address, port }, at) => {
      const share = 1 / (hosts.length - at);
      const dice = share === 1 ? "" : `-m statistic --mode random --probability ${share} `;
      return `OUTPUT -d ${this.#vip} -p tcp --dport 8443 ${dice}-j DNAT --to-destination ${address}:${port}`;
    });
    // The new rules are inserted before the old ones are removed. The last new rule matches every connection, so the
    // old rules no longer match any.
    for (const rule of this.#rules.toReversed()) iptables("-I", rule);
    for (const rule of before) iptables("-D", rule);
  }

  #remove(): void {
    for (const rule of this.#rules) iptables("-D", rule);
    this.#rules = [];
  }

  stop(): void {
    this.#leave();
    this.#remove();
  }
}

function iptables(how: "-I" | "-D", rule: string): void {
  const args = ["-w", "-t", "nat", how, ...rule.split(" ")];
  const { status, stderr } = spawnSync("iptables", args);
  if (status !== 0) throw new Error(`Cannot ${how} ${rule}: ${stderr.toString()}`);
}

/** Two replicas, maxSurge 1, maxUnavailable 0: the new pod is ready before the old one is deleted. */
async function deployment(cluster: Cluster): Promise<Running> {
  const vip = vipOf(cluster);
  const hosts = ["pod-a", "pod-b", "pod-c"].map(
    (name) => new Host(cluster, name, { config: deploymentConfig, names: [vip] }),
  );
  const pods = new Map<Host, Child>();
  const start = async (host: Host): Promise<void> => {
    const child = host.start(process.execPath, [bin, "run", "--config", host.configFile]);
    await child.ready(60_000, () => host.isReady());
    pods.set(host, child);
  };
  const service = new Service(vip);
  await Promise.all(hosts.slice(0, 2).map(start));
  service.lead([...pods.keys()]);
  const upgrade = async (): Promise<void> => {
    const next = hosts.find((host) => !pods.has(host));
    const [[old, child] = []] = pods;
    if (next === undefined || old === undefined || child === undefined) throw new Error("No pod to replace");
    await start(next);
    service.lead([...pods.keys()]);
    const ended = child.stop(90_000);
    await sleep(endpointsMs);
    pods.delete(old);
    service.lead([...pods.keys()]);
    await ended;
  };
  const stop = async (): Promise<void> => {
    service.stop();
    await Promise.all([...pods.values()].map((child) => child.stop()));
  };
  return { url: `https://${vip}:8443`, logFile: hosts[0]?.logFile ?? "", upgrade, stop };
}

export const shapes: readonly Shape[] = [
  { name: "two static pods", isSeamless: true, start: staticPods(two) },
  {
    name: "two static pods behind keepalived",
    isSeamless: true,
    needs: ["keepalived", "curl"],
    start: behindVip(startKeepalived, two),
  },
  {
    name: "two static pods behind kube-vip",
    isSeamless: true,
    needs: ["kube-vip"],
    start: behindVip(startKubeVip, two),
  },
  // Its Passthrough connections are reset at the end of the drain.
  { name: "two node-local pods", isSeamless: false, start: nodeLocal },
  { name: "systemd reload", isSeamless: true, start: systemdReload },
  { name: "systemd restart with the socket unit", isSeamless: true, start: systemdRestart },
  { name: "Deployment", isSeamless: true, start: deployment },
  { name: "two static pods without tcp_migrate_req", isSeamless: true, start: staticPods(two, false) },
  { name: "one static pod", isSeamless: false, start: staticPods(one) },
  {
    name: "one static pod behind keepalived",
    isSeamless: false,
    needs: ["keepalived", "curl"],
    start: behindVip(startKeepalived, one),
  },
];
