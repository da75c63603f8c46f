/** One kube-apiserver in its own network namespace, and the ways to hurt it. */
import { join } from "node:path";
import { ask } from "./ask.ts";
import { Child } from "./child.ts";
import type { Direction, Network, Reach } from "./network.ts";
import { pathOf } from "./parts.ts";
import type { Pair, Pki } from "./pki.ts";

const port = 6_443;
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
  /** Flags for the test's own purpose, such as `--event-ttl=60s`; later ones win. */
  readonly flags: readonly string[];
};

export class Apiserver {
  readonly name: string;
  readonly namespace: string;
  readonly address: string;
  readonly url: string;
  readonly caFile: string;
  readonly #shared: Shared;
  readonly #serving: Pair;
  #child: Child;

  constructor(number: number, shared: Shared) {
    this.name = `api-${number}`;
    this.#shared = shared;
    ({ namespace: this.namespace, address: this.address } = shared.network.add());
    this.url = `https://${this.address}:${port}`;
    this.caFile = shared.pki.ca.certFile;
    const names = ["kubernetes", "kubernetes.default", serverName, "localhost"].map((name) => `DNS:${name}`);
    this.#serving = shared.pki.issue({
      name: this.name,
      subject: "/CN=kube-apiserver",
      names: [...names, `IP:${this.address}`, "IP:127.0.0.1"],
    });
    this.#child = this.#launch();
  }

  get pid(): number {
    return this.#child.pid;
  }

  get logFile(): string {
    return this.#child.logFile;
  }

  #launch(): Child {
    return new Child({
      name: this.name,
      command: pathOf("kube-apiserver"),
      args: [...this.#flags(), ...this.#shared.flags],
      logFile: join(this.#shared.folder, `${this.name}.log`),
      namespace: this.namespace,
    });
  }

  #flags(): string[] {
    const { pki, etcdUrl, tokenFile, serviceAccount, frontProxy, kubeletClient } = this.#shared;
    return [
      `--etcd-servers=${etcdUrl}`,
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
      // No controller makes the default service account, and pods are wanted without one.
      "--disable-admission-plugins=ServiceAccount",
      "--v=1",
    ];
  }

  /** Resolves when /readyz says ok; the first start waits for etcd's bootstrap, seconds on a small machine. */
  ready(ms = 120_000): Promise<void> {
    const server = { url: this.url, caFile: this.caFile, token: this.#shared.token };
    return this.#child.ready(ms, async () => (await ask(server, { path: "/readyz" }, 2_000)).status === 200);
  }

  blackHole(direction: Direction = "both", reach: Reach = "clients"): void {
    this.#shared.network.blackHole(this.namespace, port, direction, reach);
  }

  /** Ends every black hole. */
  heal(): void {
    this.#shared.network.heal(this.namespace);
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

  /** SIGTERM: GOAWAY, then up to 60 s of grace for open watches. Resolves when it has gone. */
  async terminate(): Promise<void> {
    this.#child.signal("SIGTERM");
    await this.#child.ended;
  }

  /** Starts it again, ending it first if it still runs. The same address, a new process with an empty watch cache. */
  async restart(): Promise<void> {
    await this.#child.stop();
    this.#child = this.#launch();
    await this.ready();
  }

  stop(): Promise<void> {
    return this.#child.stop(500);
  }
}
