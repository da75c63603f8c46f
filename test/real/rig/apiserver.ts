/** One kube-apiserver in its own network namespace, and the ways to hurt it. */
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { ask } from "./ask.ts";
import { Child } from "./child.ts";
import type { Direction, Network, Reach } from "./network.ts";
import { pathOf, programOf, type Version } from "./parts.ts";
import type { Pair, Pki } from "./pki.ts";

const port = 6_443;
const etcdPort = 2_379;
/** The name clients verify when they come by way of the proxy: every cluster's apiservers carry it. */
export const serverName = "kubernetes.default.svc";

/** What all apiservers of a cluster share. */
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
  /** Pods need one, and are given its token. */
  readonly serviceAccounts: boolean;
  /** Flags for the test's own purpose, such as `--event-ttl=60s`; later ones win. */
  readonly flags: readonly string[];
};

export type ApiserverKind = {
  /** Of Kubernetes. Default: 1.36. */
  readonly version?: Version;
  /** Beside those that all apiservers of the cluster have. */
  readonly flags?: readonly string[];
};

/** kube-apiserver's message (pkg/registry/core/service/ipallocator/storage). */
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
  /** What its next process is: an upgrade sets it before a restart. */
  kind: ApiserverKind;
  readonly #shared: Shared;
  /** What it serves with, and two pairs to put there: it reads the files again when they change. */
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

  /** The key first: a certificate without its key is refused, and the next change of the files is waited for. */
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
      // No controller makes the default service account, and pods are wanted without one, unless a suite says otherwise.
      ...(this.#shared.serviceAccounts ? [] : ["--disable-admission-plugins=ServiceAccount"]),
      "--v=1",
    ];
  }

  /** Resolves when /readyz says ok; the first start waits for etcd's bootstrap, seconds on a small machine. */
  async ready(ms = 120_000): Promise<void> {
    const server = { url: this.url, caFile: this.caFile, token: this.#shared.token };
    const isReady = async (): Promise<boolean> =>
      (await ask(server, { path: "/readyz" }, 2_000)).status === 200;
    try {
      await this.#child.ready(ms, isReady);
    } catch (error) {
      // Of two apiservers that start at once on an empty etcd, the one that creates the IP ranges second may end.
      if (this.#child.isRunning || !lostRace.some((text) => this.#child.tail().includes(text))) throw error;
      this.#child = this.#launch();
      await this.#child.ready(ms, isReady);
    }
  }

  blackHole(direction: Direction = "both", reach: Reach = "clients"): void {
    this.#shared.network.blackHole(this.namespace, port, direction, reach);
  }

  /** A black hole for the one connection that comes from this port. */
  sever(clientPort: number): void {
    this.#shared.network.sever(this.namespace, port, clientPort);
  }

  /** It answers PING and serves what its caches hold, and whatever asks etcd hangs. */
  cutEtcd(): void {
    this.#shared.network.cut(this.namespace, etcdPort);
  }

  /** It cannot reach another server of the root namespace, at this port; its packets there are lost or refused. */
  cutOff(serverPort: number, how: "lost" | "refused"): void {
    if (how === "lost") this.#shared.network.cut(this.namespace, serverPort);
    else this.#shared.network.refuse(this.namespace, serverPort);
  }

  /** This share of its clients' packets is lost. */
  lose(share: number): void {
    this.#shared.network.lose(this.namespace, port, share);
  }

  /** Packets of more than `bytes` are lost on their way from it to its clients, or to it: a path MTU below what both ends assume. */
  loseLarge(bytes: number, way: "from" | "to"): void {
    this.#shared.network.loseLarge(this.namespace, port, { bytes, way });
  }

  /** Ends everything that is done to its packets. */
  heal(): void {
    this.#shared.network.heal(this.namespace);
  }

  /** From a moment later on, new connections get a certificate of another name; those there are live on. */
  presentForeign(): void {
    this.#present(this.#foreign);
  }

  /** From a moment later on, its own names signed by another authority. */
  presentSignedBy(issuer: Pair): void {
    this.#present(this.#issue("-renewed", this.#names, issuer));
  }

  presentOwn(): void {
    this.#present(this.#own);
  }

  /** SIGSTOP: its kernel goes on acknowledging, it says nothing. */
  freeze(): void {
    this.#child.signal("SIGSTOP");
  }

  thaw(): void {
    this.#child.signal("SIGCONT");
  }

  /** SIGKILL: its kernel closes every socket. */
  async kill(): Promise<void> {
    this.#child.signal("SIGKILL");
    await this.#child.ended;
  }

  /**
   * SIGTERM: with `--shutdown-delay-duration` it serves on for so long while /readyz says shutdown; then GOAWAY and up
   * to 60 s of grace for open requests. Resolves when it has gone.
   */
  async terminate(): Promise<void> {
    this.#child.signal("SIGTERM");
    await this.#child.ended;
  }

  get isRunning(): boolean {
    return this.#child.isRunning;
  }

  /** Resolves when the process that runs now has gone. */
  get ended(): Promise<unknown> {
    return this.#child.ended;
  }

  /**
   * Starts it again, ending it first if it still runs. The same address, a new process with an empty watch cache;
   * `flags` hold for this process only, `etcdUrl` from now on.
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
