/**
 * A machine on which watchkeeper runs: a network namespace with the files of a control-plane node, or the root
 * namespace. Its configuration is a file of deploy/ with the addresses and certificates of this cluster.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { Child } from "../rig/child.ts";
import type { Cluster } from "../rig/cluster.ts";

export const root = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * Drain times that are short enough to run many upgrades in minutes. The shutdownDelay of three seconds is still longer
 * than keepalived's check takes to fail.
 */
export const drain = { shutdownDelayMs: 3_000, timeoutMs: 4_000 } as const;

export type Settings = {
  /** Path of the configuration file, relative to the repository. The file may be a ConfigMap that contains it. */
  readonly config: string;
  /** Additional addresses that clients use. */
  readonly names?: readonly string[];
  /** Port of the listener. Default: 8443. */
  readonly port?: number;
  /** False to remove `reusePort` from the file. */
  readonly reusesPort?: boolean;
  /** Port that replaces the metrics port in the file. Default: the port of the shipped pods. */
  readonly metricsPort?: number;
};

/** The files in deploy/ from which watchkeeper serves its own certificate. */
const ownPair = /\/(?:etc\/kubernetes\/pki\/apiserver|var\/run\/secrets\/watchkeeper-tls\/tls)\.(?:crt|key)/g;

type Shipped = { readonly kind: string; readonly data?: Readonly<Record<string, string>> };

/** Returns the configuration in a ConfigMap; the text itself if it is none. */
function configIn(text: string): string {
  const { kind, data } = parse(text) as Shipped;
  return kind === "ConfigMap" ? (data?.["watchkeeper.yaml"] ?? "") : text;
}

export class Host {
  readonly name: string;
  readonly address: string;
  readonly namespace: string | undefined;
  readonly logFile: string;
  readonly configFile: string;
  readonly port: number;
  readonly metricsPort: number;
  #programs = 0;

  /** `isRoot`: the machine is the root namespace, where other processes use ports too. */
  constructor(cluster: Cluster, name: string, settings: Settings, isRoot = false) {
    this.name = name;
    const added = isRoot ? undefined : cluster.network.add();
    this.address = added?.address ?? "127.0.0.1";
    this.namespace = added?.namespace;
    this.logFile = join(cluster.folder, "watchkeeper.log");
    this.configFile = join(cluster.folder, `${name}.yaml`);
    this.port = settings.port ?? 8_443;
    this.metricsPort = settings.metricsPort ?? 7_481;
    this.#write(cluster, settings);
  }

  #write(cluster: Cluster, { config, names = [], reusesPort = true }: Settings): void {
    const leaf = ["DNS:localhost", "DNS:kubernetes.default.svc", `IP:${this.address}`];
    const own = [...leaf, ...names.map((one) => `IP:${one}`)];
    const pair = cluster.pki.issue({
      name: `apiserver-${this.name}`,
      subject: "/CN=kube-apiserver",
      names: own,
    });
    const backends = cluster.apiservers.map(({ url }, at) => `      - {name: cp-${at + 1}, url: "${url}"}\n`);
    const shared = reusesPort ? "$&" : "";
    const discovery = `{type: EndpointSlice, kubeconfigFile: ${cluster.kubeconfig(cluster.admin.url)}}`;
    const text = configIn(readFileSync(join(root, config), "utf8"))
      .replace(/( {4}backends:\n)(?: {6}- .*\n)+/, (_, head: string) => head + backends.join(""))
      .replace(
        /":8443"|127\.0\.0\.1:7443/,
        `"${this.namespace === undefined ? "127.0.0.1" : ""}:${this.port}"`,
      )
      .replace(/ {4}reusePort: .*\n/, shared)
      .replace(/metricsAddress: .*/, `metricsAddress: "0.0.0.0:${this.metricsPort}"`)
      .replace("{type: EndpointSlice}", discovery)
      .replaceAll(ownPair, (file) => (file.endsWith("crt") ? pair.certFile : pair.keyFile))
      .replaceAll("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", cluster.caFile)
      .replaceAll("/etc/kubernetes/pki/", `${cluster.folder}/`);
    const times = `shutdownDelay: ${drain.shutdownDelayMs}ms, timeout: ${drain.timeoutMs}ms`;
    // In deploy/node-local, processes pass sockets to each other through a directory of the machine.
    const handover = join(cluster.folder, `handover-${this.name}`);
    mkdirSync(handover, { mode: 0o700 });
    const passing = text.replace(/^drain:\n {2}handoverDirectory: .*\n/m, "");
    const isPassing = passing !== text;
    const directory = isPassing ? `, handoverDirectory: ${handover}` : "";
    writeFileSync(this.configFile, `${passing}drain: {${times}${directory}}\n`);
  }

  get url(): string {
    return `https://${this.address}:${this.port}`;
  }

  /** Starts a program on this machine. All programs write to one log, in which the tests find watchkeeper's entries. */
  start(command: string, args: readonly string[]): Child {
    const { logFile, namespace } = this;
    const name = `${this.name}-${this.#programs++}`;
    return new Child({ name, command, args, logFile, ...(namespace === undefined ? {} : { namespace }) });
  }

  /**
   * Starts a program that finds the folder under another path, `at`. The program has a mount namespace of its own, so
   * that programs of several machines can have different files under the same path.
   */
  startWith(
    { folder, at }: { readonly folder: string; readonly at: string },
    command: readonly string[],
  ): Child {
    const mounted = 'mkdir -p "$2" && mount --bind "$1" "$2" && shift 2 && exec "$@"';
    return this.start("unshare", ["--mount", "sh", "-c", mounted, "sh", folder, at, ...command]);
  }

  /** Sets a kernel parameter of the namespace. */
  set(parameter: string): void {
    const { namespace } = this;
    if (namespace === undefined) throw new Error("The parameters of the root namespace stay as they are");
    const { status, stderr } = spawnSync("ip", ["netns", "exec", namespace, "sysctl", "-qw", parameter]);
    if (status !== 0) throw new Error(`Cannot set ${parameter}: ${stderr.toString()}`);
  }

  async isReady(metricsPort = this.metricsPort): Promise<boolean> {
    return (await fetch(`http://${this.address}:${metricsPort}/readyz`)).status === 200;
  }
}
