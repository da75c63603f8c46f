/**
 * A cluster of real components: etcd, kube-apiservers (each in a network namespace of its own), and one simulated node
 * with pods. Use `const cluster = await startCluster({ apiservers: 2 })`, and `await cluster.stop()` in `test.after`.
 */
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Apiserver, type ApiserverKind, type Shared } from "./apiserver.ts";
import { order, type Server } from "./ask.ts";
import { Child } from "./child.ts";
import { runFolder } from "./folder.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { Network } from "./network.ts";
import { PodNode } from "./node.ts";
import { pathOf } from "./parts.ts";
import { type Pair, Pki } from "./pki.ts";

export type ClusterOptions = {
  /** Number of apiservers, or the version and flags of each. Default: 2. */
  readonly apiservers?: number | readonly ApiserverKind[];
  /** Extra kube-apiserver flags, such as `--event-ttl=60s`. */
  readonly flags?: readonly string[];
  /** Extra etcd flags. Default: none. Then etcd sends progress notifications every 10 minutes; kubeadm sets 5 s. */
  readonly etcdFlags?: readonly string[];
  /**
   * True to run pods with KWOK. KWOK connects to the last apiserver, so a test that creates pods during a fault must
   * cause the fault on another apiserver.
   */
  readonly pods?: boolean;
  /**
   * True to enable the admission plugin ServiceAccount, as in most clusters: a pod's service account must then exist.
   */
  readonly serviceAccounts?: boolean;
  /** Additional users with their groups. `tokenOf` returns their bearer tokens. */
  readonly users?: Readonly<Record<string, readonly string[]>>;
  /** Additional bearer tokens. Each belongs to a user of the same name in the group "readers". */
  readonly bearers?: readonly string[];
};

function kindsOf({ apiservers = 2 }: ClusterOptions): readonly ApiserverKind[] {
  return typeof apiservers === "number" ? Array.from({ length: apiservers }, () => ({})) : apiservers;
}

/** Users with their bearer tokens, in the apiservers' static token file. */
export const users = {
  admin: { token: "admin-token-of-the-rig", groups: ["system:masters"] },
  /** May read everything in every namespace, by RBAC. */
  alice: { token: "alice-token-of-the-rig", groups: ["readers"] },
  /** A known user without any permission. */
  bob: { token: "bob-token-of-the-rig", groups: [] },
} as const;

export type User = keyof typeof users;

/** Returns the bearer token of a user of `ClusterOptions.users`. */
export function tokenOf(user: string): string {
  return `${user.replace(/[^a-z0-9]+/gi, "-")}-token-of-the-rig`;
}

export class Cluster {
  readonly folder: string;
  readonly apiservers: readonly Apiserver[];
  readonly caFile: string;
  readonly token: string = users.admin.token;
  /** Signs all other certificates that a test needs, such as those of the proxy and of clients. */
  readonly pki: Pki;
  readonly frontProxy: Pair;
  /** Key with which the apiservers sign and verify tokens of service accounts. */
  readonly serviceAccount: Shared["serviceAccount"];
  /** URL of etcd, for facts that must not depend on an apiserver. */
  readonly etcdUrl: string;
  #etcd: Child;
  /** A second etcd with a different history, after `forkEtcd`. */
  #fork: Child | undefined;
  readonly #etcdFlags: readonly string[];
  readonly #network: Network;
  readonly #removeFolder: () => void;
  #node: PodNode | undefined;

  /** Use `startCluster`. */
  constructor(options: ClusterOptions) {
    ({ folder: this.folder, remove: this.#removeFolder } = runFolder());
    this.#network = new Network();
    this.pki = new Pki(this.folder);
    this.caFile = this.pki.ca.certFile;
    this.frontProxy = this.pki.issue(
      { name: "front-proxy-client", subject: "/CN=front-proxy-client" },
      this.pki.frontProxyCa,
    );
    this.serviceAccount = this.pki.serviceAccountKey();
    this.etcdUrl = `http://${this.#network.address}:2379`;
    this.#etcdFlags = options.etcdFlags ?? [];
    this.#etcd = this.#startEtcd("etcd", this.#network.address, 2_379);
    const shared = this.#shared(this.etcdUrl, options);
    this.apiservers = kindsOf(options).map((kind, number) => new Apiserver(number, shared, kind));
  }

  #startEtcd(name: string, address: string, port: number, flags: readonly string[] = []): Child {
    const url = `http://${address}:${port}`;
    const peers = `http://${address}:${port + 1}`;
    const args = ["--name=rig", `--data-dir=${join(this.folder, name)}`];
    args.push(`--listen-client-urls=${url}`, `--advertise-client-urls=${url}`);
    args.push(`--listen-peer-urls=${peers}`, `--initial-advertise-peer-urls=${peers}`);
    // No fsync, so that a slow disk does not affect the tests. The data is deleted at the end.
    args.push(`--initial-cluster=rig=${peers}`, "--unsafe-no-fsync", "--log-level=warn");
    args.push(...this.#etcdFlags, ...flags);
    return new Child({ name, command: pathOf("etcd"), args, logFile: join(this.folder, `${name}.log`) });
  }

  /**
   * Starts a second etcd with a copy of the present data. From then on, the two histories differ. An apiserver can be
   * restarted on the copy (`apiserver.restart([], url)`). etcd is unavailable for a moment during the copy. Returns the
   * copy's URL.
   */
  async forkEtcd(): Promise<string> {
    await this.#etcd.stop();
    cpSync(join(this.folder, "etcd"), join(this.folder, "fork"), { recursive: true });
    const { address } = this.#network;
    this.#etcd = this.#startEtcd("etcd", address, 2_379);
    this.#fork = this.#startEtcd("fork", address, 2_389, ["--force-new-cluster"]);
    await Promise.all(this.apiservers.map((apiserver) => apiserver.ready()));
    return `http://${address}:2389`;
  }

  #shared(etcdUrl: string, options: ClusterOptions): Shared {
    const { flags = [], serviceAccounts = false, users: more = {}, bearers = [] } = options;
    const tokenFile = join(this.folder, "tokens.csv");
    const rowOf = (name: string, token: string, groups: readonly string[]): string =>
      `${token},${name},${name}-uid,"${groups.join(",")}"`;
    const rows = [
      ...Object.entries(users).map(([name, { token, groups }]) => rowOf(name, token, groups)),
      ...Object.entries(more).map(([name, groups]) => rowOf(name, tokenOf(name), groups)),
      ...bearers.map((token) => rowOf(token, token, ["readers"])),
    ];
    writeFileSync(tokenFile, `${rows.join("\n")}\n`, { mode: 0o600 });
    return {
      folder: this.folder,
      pki: this.pki,
      network: this.#network,
      etcdUrl,
      tokenFile,
      token: this.token,
      serviceAccount: this.serviceAccount,
      frontProxy: this.frontProxy,
      kubeletClient: this.pki.issue({
        name: "kubelet-client",
        subject: "/O=system:masters/CN=kubelet-client",
      }),
      flags,
      serviceAccounts,
    };
  }

  /** The network, for other machines beside the apiservers. */
  get network(): Network {
    return this.#network;
  }

  /** Returns the apiserver with this number, counted from 0. */
  apiserver(number: number): Apiserver {
    const found = this.apiservers[number];
    if (found === undefined)
      throw new Error(`Cannot find apiserver ${number}: ${this.apiservers.length} started`);
    return found;
  }

  /** The last apiserver, to which the rig's own requests go. */
  get admin(): Server {
    return { url: this.apiserver(this.apiservers.length - 1).url, caFile: this.caFile, token: this.token };
  }

  get node(): PodNode {
    if (this.#node === undefined) throw new Error("Cannot use pods: start the cluster with { pods: true }");
    return this.#node;
  }

  /** Writes a kubeconfig for `url` and returns its path. Default user: the admin. */
  kubeconfig(url: string, caFile: string = this.caFile, user: User = "admin"): string {
    const name = `${user}-${url.replace(/[^a-z0-9]+/gi, "-")}.kubeconfig`;
    return writeKubeconfig(join(this.folder, name), { url, caFile, token: users[user].token });
  }

  /** Resolves when every apiserver serves, the RBAC objects exist and, if pods are requested, the node is ready. */
  async ready(options: ClusterOptions): Promise<void> {
    const started = Date.now();
    await Promise.all(
      this.apiservers.map(async (apiserver) => {
        await apiserver.ready();
        say(`${apiserver.name} serves ${apiserver.url} after ${Date.now() - started} ms`);
      }),
    );
    await this.#bindReaders();
    if (options.pods !== true) return;
    this.#node = await PodNode.start({
      folder: this.folder,
      address: this.#network.address,
      pki: this.pki,
      kubeconfigFile: this.kubeconfig(this.admin.url),
      url: this.admin.url,
      token: this.token,
    });
    say(`${this.#node.name} ready after ${Date.now() - started} ms`);
  }

  /** Creates a role of the rig's own: a controller would fill the built-in role `view`, and no controller runs here. */
  async #bindReaders(): Promise<void> {
    const apiGroup = "rbac.authorization.k8s.io";
    const create = (resource: string, kind: string, more: object): Promise<string> => {
      const body = { apiVersion: `${apiGroup}/v1`, kind, metadata: { name: "rig-readers" }, ...more };
      return order(this.admin, { method: "POST", path: `/apis/${apiGroup}/v1/${resource}`, body });
    };
    const rules = [{ apiGroups: ["*"], resources: ["*"], verbs: ["get", "list", "watch"] }];
    await create("clusterroles", "ClusterRole", { rules });
    await create("clusterrolebindings", "ClusterRoleBinding", {
      roleRef: { apiGroup, kind: "ClusterRole", name: "rig-readers" },
      subjects: [{ kind: "Group", name: "readers", apiGroup }],
    });
  }

  /** Ends all programs, and removes the network and the folder. */
  async stop(): Promise<void> {
    await this.#node?.stop();
    await Promise.all(this.apiservers.map((apiserver) => apiserver.stop()));
    await this.#etcd.stop();
    await this.#fork?.stop();
    this.#network.remove();
    this.#removeFolder();
  }
}

/** Prints progress to stderr, because the start takes seconds. */
function say(line: string): void {
  process.stderr.write(`rig: ${line}\n`);
}

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  say(`starting etcd and ${kindsOf(options).length} kube-apiservers`);
  const cluster = new Cluster(options);
  try {
    await cluster.ready(options);
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}
