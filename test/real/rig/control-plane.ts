/**
 * kube-controller-manager, kube-scheduler and simulated nodes (KWOK). All of them connect to one URL, of an apiserver
 * or of the proxy. Each has a client certificate of its own, as kubeadm issues them, or a bearer token.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ask, order } from "./ask.ts";
import { type Cluster, tokenOf } from "./cluster.ts";
import { Kept } from "./kept.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { type Program, pathOf } from "./parts.ts";

const subjects = {
  "kube-controller-manager": "/CN=system:kube-controller-manager",
  "kube-scheduler": "/CN=system:kube-scheduler",
  kwok: "/O=system:masters/CN=kwok",
  e2e: "/O=system:masters/CN=kubernetes-admin",
} as const;

type Holder = keyof typeof subjects;

/** Users and groups for `ClusterOptions.users`, for a control plane with bearer tokens. */
export const controlPlaneUsers = {
  "system:kube-controller-manager": [],
  "system:kube-scheduler": [],
  kwok: ["system:masters"],
} as const;

export type ControlPlaneOptions = {
  /** Number of kube-controller-managers, and of kube-schedulers. Default: 1. */
  readonly replicas?: number;
  /** True to use the bearer tokens of `controlPlaneUsers`. Default: false, for client certificates. */
  readonly hasTokens?: boolean;
};

export type Reflectors = { readonly listedAnew: number; readonly warnings: readonly string[] };

/** Several nodes, because DaemonSets, preemption and taints need them. */
const nodes = ["node-1", "node-2", "node-3"];
const resources = { cpu: "8", memory: "16Gi", pods: "110", "ephemeral-storage": "100Gi" };
const nodesFile = fileURLToPath(new URL("./control-plane.kwok.yaml", import.meta.url));
const kubeletVersion = "v1.36.1";

export class ControlPlane {
  readonly #cluster: Cluster;
  readonly #url: string;
  readonly #options: ControlPlaneOptions;
  readonly #children: Kept[] = [];

  private constructor(cluster: Cluster, url: string, options: ControlPlaneOptions) {
    this.#cluster = cluster;
    this.#url = url;
    this.#options = options;
  }

  /** Resolves when all nodes are ready and each new namespace gets its service account. */
  static async start(
    cluster: Cluster,
    url: string,
    options: ControlPlaneOptions = {},
  ): Promise<ControlPlane> {
    const plane = new ControlPlane(cluster, url, options);
    try {
      await plane.#start();
    } catch (error) {
      await plane.stop();
      throw error;
    }
    return plane;
  }

  /** Returns the path of a kubeconfig with this client's own certificate or token. */
  kubeconfig(holder: Holder): string {
    const { folder, caFile, pki } = this.#cluster;
    const subject = subjects[holder];
    const user = subject.slice(subject.indexOf("CN=") + 3);
    const credential =
      this.#options.hasTokens === true
        ? { token: tokenOf(user) }
        : { pair: pki.issue({ name: holder, subject }) };
    return writeKubeconfig(join(folder, `${holder}.kubeconfig`), { url: this.#url, caFile, ...credential });
  }

  #launch(program: Program & Holder, args: readonly string[], name: string = program): Kept {
    const logFile = join(this.#cluster.folder, `${name}.log`);
    const all = [`--kubeconfig=${this.kubeconfig(program)}`, ...args];
    const kept = new Kept({ name, command: pathOf(program), args: all, logFile });
    this.#children.push(kept);
    return kept;
  }

  /** Starts the replicas. Returns the first one. */
  #launchReplicas(program: Program & Holder, args: readonly string[]): Kept {
    const first = this.#launch(program, args);
    for (let number = 1; number < (this.#options.replicas ?? 1); number += 1)
      this.#launch(program, args, `${program}-${number}`);
    return first;
  }

  async #start(): Promise<void> {
    const { caFile, pki, serviceAccount } = this.#cluster;
    const kwok = this.#launch("kwok", [`--config=${nodesFile}`]);
    // Port 0: the programs open no port, so that two runs on one machine do not collide.
    const shared = ["--secure-port=0", "--leader-elect=true", "--kube-api-qps=100", "--kube-api-burst=200"];
    shared.push("--vmodule=reflector=3"); // each list is logged
    const manager = this.#launchReplicas("kube-controller-manager", [
      ...shared,
      "--use-service-account-credentials=true",
      `--root-ca-file=${caFile}`,
      `--service-account-private-key-file=${serviceAccount.keyFile}`,
      `--cluster-signing-cert-file=${pki.ca.certFile}`,
      `--cluster-signing-key-file=${pki.ca.keyFile}`,
    ]);
    this.#launchReplicas("kube-scheduler", shared);
    for (const name of nodes) await this.#register(name);
    const isReady = async (node: string): Promise<boolean> => {
      const { text } = await ask(this.#cluster.admin, { path: `/api/v1/nodes/${node}` });
      // The taint "not-ready" stays until kube-controller-manager has seen the node's condition Ready.
      return /"type":"Ready","status":"True"/.test(text) && !text.includes('"taints"');
    };
    await kwok.ready(60_000, async () => (await Promise.all(nodes.map(isReady))).every(Boolean));
    const account = "/api/v1/namespaces/default/serviceaccounts/default";
    await manager.ready(60_000, async () => {
      return (await ask(this.#cluster.admin, { path: account })).status === 200;
    });
  }

  /** Creates the node as a kubelet does. KWOK keeps the status that is given here. */
  async #register(name: string): Promise<void> {
    const body = {
      apiVersion: "v1",
      kind: "Node",
      metadata: {
        name,
        labels: {
          "kubernetes.io/hostname": name,
          "kubernetes.io/os": "linux",
          "kubernetes.io/arch": "amd64",
        },
      },
      status: { allocatable: resources, capacity: resources, nodeInfo: { kubeletVersion } },
    };
    await order(this.#cluster.admin, { method: "POST", path: "/api/v1/nodes", body });
  }

  /**
   * The name of the program for each restart. A kube-controller-manager or kube-scheduler that loses its Lease exits
   * and is restarted.
   */
  get ended(): readonly string[] {
    return this.#children.flatMap(({ name, restarts }) => Array.from({ length: restarts }, () => name));
  }

  /**
   * Returns what the logs of kube-controller-manager and kube-scheduler say about their reflectors: the number of lists
   * of reflectors that had listed before, and why their watches ended. Reflectors of custom resources
   * (PartialObjectMetadata) do not count, because specs delete these resources.
   */
  reflectors(): Reflectors {
    const lines = this.#children
      .filter(({ name }) => name !== "kwok")
      .flatMap(({ logFile }) => readFileSync(logFile, "utf8").split("\n"))
      .filter((line) => line.includes("reflector.go") && !line.includes("PartialObjectMetadata"));
    const count = (text: string): number => lines.filter((line) => line.includes(text)).length;
    return {
      listedAnew: count('"Listing and watching"') - count('"Starting reflector"'),
      warnings: lines.filter((line) => /ended with error|Failed to watch|unexpected EOF/.test(line)),
    };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.stop()));
  }
}
