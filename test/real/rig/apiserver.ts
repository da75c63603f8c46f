/** One kube-apiserver in its own network namespace, and the faults that a test can cause. */
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { ask } from "./ask.ts";
import { Child } from "./child.ts";
import type { Direction, Network, Reach } from "./network.ts";
import { pathOf, programOf, type Version } from "./parts.ts";
import type { Pair, Pki } from "./pki.ts";

const port = 6_443;
const etcdPort = 2_379;
/**
 * The server name that clients verify when they connect through the proxy. It is in the certificate of every cluster's
 * apiservers.
 */
export const serverName = "kubernetes.default.svc";

/** What all apiservers of a cluster have in common. */
export type Shared = {
  readonly folder: string;
  readonly pki: Pki;
  readonly network: Network;
  readonly etcdUrl: string;
  readonly tokenFile: string;
  readonly token: string;
  readonly serviceAccount: { readonly keyFile: string; readonly publicFile: string };
  readonly frontProxy: Pair;
  readonly kubeletClient: Pair;
  /** True if each pod must have a service account and gets its token. */
  readonly serviceAccounts: boolean;
  /** Flags that a test adds, such as `--event-ttl=60s`. They override earlier flags. */
  readonly flags: readonly string[];
};

export type ApiserverKind = {
  /** Version of Kubernetes. Default: 1.36. */
  readonly version?: Version;
  /** Flags in addition to those that all apiservers of the cluster have. */
  readonly flags?: readonly string[];
};

/**
 * Messages of kube-apiserver (pkg/registry/core/service/ipallocator/storage) when another apiserver has created the IP
 * ranges first.
 */
const lostRace = [
  "another caller has already initialized the resource",
  'PostStartHook "start-service-ip-repair-controllers" failed',
];

export class Apiserver {
  readonly name: string;
  readonly namespace: string;
  readonly address: string;
  readonly url: string;
  readonly caFile: string;
  /** Version and flags of the next process. An upgrade sets them before a restart. */
  kind: ApiserverKind;
  readonly #shared: Shared;
  /**
   * The files that the apiserver serves with, and two pairs that are copied there. The apiserver reloads the files when
   * they change.
   */
  readonly #serving: Pair;
  readonly #names: readonly string[];
  readonly #own: Pair;
  readonly #foreign: Pair;
  #child: Child;
  #etcdUrl: string;

  constructor(number: number, shared: Shared, kind: ApiserverKind) {
    this.kind = kind;
    this.name = `api-${number}`;
    this.#shared = shared;
    this.#etcdUrl = shared.etcdUrl;
    ({ namespace: this.namespace, address: this.address } = shared.network.add());
    this.url = `https://${this.address}:${port}`;
    this.caFile = shared.pki.ca.certFile;
    const names = ["kubernetes", "kubernetes.default", serverName, "localhost"].map((name) => `DNS:${name}`);
    this.#names = [...names, `IP:${this.address}`, "IP:127.0.0.1"];
    this.#own = this.#issue("-own", this.#names);
    this.#foreign = this.#issue("-foreign", ["DNS:another.example", "IP:127.0.0.1"]);
    this.#serving = this.#issue("", ["IP:127.0.0.1"]);
    this.#present(this.#own);
    this.#child = this.#launch();
  }

  #issue(suffix: string, names: readonly string[], issuer?: Pair): Pair {
    const leaf = { name: `${this.name}${suffix}`, subject: "/CN=kube-apiserver", names };
    return this.#shared.pki.issue(leaf, issuer);
  }

  get pid(): number {
    return this.#child.pid;
  }

  get logFile(): string {
    return this.#child.logFile;
  }

  /**
   * The key comes first: the apiserver would reject a new certificate with the old key, and would then wait for the
   * next change of the files.
   */
  #present(pair: Pair): void {
    copyFileSync(pair.keyFile, this.#serving.keyFile);
    copyFileSync(pair.certFile, this.#serving.certFile);
  }

  #launch(more: readonly string[] = []): Child {
    const { version = "1.36", flags = [] } = this.kind;
    return new Child({
      name: this.name,
      command: pathOf(programOf("kube-apiserver", version)),
      args: [...this.#flags(), ...this.#shared.flags, ...flags, ...more],
      logFile: join(this.#shared.folder, `${this.name}.log`),
      namespace: this.namespace,
    });
  }

  #flags(): string[] {
    const { pki, tokenFile, serviceAccount, frontProxy, kubeletClient } = this.#shared;
    return [
      `--etcd-servers=${this.#etcdUrl}`,
      `--secure-port=${port}`,
      `--bind-address=${this.address}`,
      `--advertise-address=${this.address}`,
      `--tls-cert-file=${this.#serving.certFile}`,
      `--tls-private-key-file=${this.#serving.keyFile}`,
      `--client-ca-file=${pki.ca.certFile}`,
      `--token-auth-file=${tokenFile}`,
      `--requestheader-client-ca-file=${pki.frontProxyCa.certFile}`,
      "--requestheader-allowed-names=front-proxy-client",
      "--requestheader-username-headers=X-Remote-User",
      "--requestheader-group-headers=X-Remote-Group",
      "--requestheader-extra-headers-prefix=X-Remote-Extra-",
      `--proxy-client-cert-file=${frontProxy.certFile}`,
      `--proxy-client-key-file=${frontProxy.keyFile}`,
      `--kubelet-client-certificate=${kubeletClient.certFile}`,
      `--kubelet-client-key=${kubeletClient.keyFile}`,
      `--kubelet-certificate-authority=${pki.ca.certFile}`,
      "--kubelet-preferred-address-types=InternalIP",
      `--service-account-issuer=https://${serverName}`,
      `--service-account-key-file=${serviceAccount.publicFile}`,
      `--service-account-signing-key-file=${serviceAccount.keyFile}`,
      "--service-cluster-ip-range=10.96.0.0/16",
      "--authorization-mode=Node,RBAC",
      // No controller creates the default service account here. So, unless a suite says otherwise, pods are created
      // without one.
      ...(this.#shared.serviceAccounts ? [] : ["--disable-admission-plugins=ServiceAccount"]),
      "--v=1",
    ];
  }

  /**
   * Resolves when /readyz returns ok. The first start waits for the bootstrap of etcd's data, which takes seconds on a
   * small machine.
   */
  async ready(ms = 120_000): Promise<void> {
    const server = { url: this.url, caFile: this.caFile, token: this.#shared.token };
    const isReady = async (): Promise<boolean> =>
      (await ask(server, { path: "/readyz" }, 2_000)).status === 200;
    try {
      await this.#child.ready(ms, isReady);
    } catch (error) {
      // If two apiservers start at the same time on an empty etcd, the one that creates the IP ranges second may exit.
      if (this.#child.isRunning || !lostRace.some((text) => this.#child.tail().includes(text))) throw error;
      this.#child = this.#launch();
      await this.#child.ready(ms, isReady);
    }
  }

  blackHole(direction: Direction = "both", reach: Reach = "clients"): void {
    this.#shared.network.blackHole(this.namespace, port, direction, reach);
  }

  /** Drops all packets of the connection that comes from this client port. */
  sever(clientPort: number): void {
    this.#shared.network.sever(this.namespace, port, clientPort);
  }

  /**
   * Cuts the apiserver off from etcd. It still answers PING and serves from its caches, but every request that needs
   * etcd hangs.
   */
  cutEtcd(): void {
    this.#shared.network.cut(this.namespace, etcdPort);
  }

  /**
   * Cuts the apiserver off from another server of the root namespace, on this port. Its packets to that server are lost
   * or refused.
   */
  cutOff(serverPort: number, how: "lost" | "refused"): void {
    if (how === "lost") this.#shared.network.cut(this.namespace, serverPort);
    else this.#shared.network.refuse(this.namespace, serverPort);
  }

  /** Drops this share (0 to 1) of the packets between the apiserver and its clients. */
  lose(share: number): void {
    this.#shared.network.lose(this.namespace, port, share);
  }

  /**
   * Drops packets of more than `bytes` from the apiserver to its clients, or to the apiserver, as with a path MTU that
   * is smaller than both ends assume.
   */
  loseLarge(bytes: number, way: "from" | "to"): void {
    this.#shared.network.loseLarge(this.namespace, port, { bytes, way });
  }

  /** Ends all network faults of the apiserver. */
  heal(): void {
    this.#shared.network.heal(this.namespace);
  }

  /** Soon after this call, new connections get a certificate with another name. Existing connections stay open. */
  presentForeign(): void {
    this.#present(this.#foreign);
  }

  /** Soon after this call, new connections get a certificate with the right names that another CA has signed. */
  presentSignedBy(issuer: Pair): void {
    this.#present(this.#issue("-renewed", this.#names, issuer));
  }

  presentOwn(): void {
    this.#present(this.#own);
  }

  /** Sends SIGSTOP. The kernel still acknowledges packets, but the process sends nothing. */
  freeze(): void {
    this.#child.signal("SIGSTOP");
  }

  thaw(): void {
    this.#child.signal("SIGCONT");
  }

  /** Sends SIGKILL. The kernel closes all sockets of the process. */
  async kill(): Promise<void> {
    this.#child.signal("SIGKILL");
    await this.#child.ended;
  }

  /**
   * Sends SIGTERM. With `--shutdown-delay-duration`, the apiserver serves for that duration while /readyz reports the
   * shutdown. Then it sends GOAWAY and gives open requests up to 60 s. Resolves when the process has exited.
   */
  async terminate(): Promise<void> {
    this.#child.signal("SIGTERM");
    await this.#child.ended;
  }

  get isRunning(): boolean {
    return this.#child.isRunning;
  }

  /** Resolves when the present process has exited. */
  get ended(): Promise<unknown> {
    return this.#child.ended;
  }

  /**
   * Ends the process if it still runs, and starts a new one with the same address and an empty watch cache. `flags`
   * apply to this process only; `etcdUrl` also applies to later ones.
   */
  async restart(flags: readonly string[] = [], etcdUrl = this.#etcdUrl): Promise<void> {
    this.#etcdUrl = etcdUrl;
    await this.#child.stop();
    this.#child = this.#launch(flags);
    await this.ready();
  }

  stop(): Promise<void> {
    return this.#child.stop(500);
  }
}
