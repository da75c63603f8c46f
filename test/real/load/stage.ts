/**
 * The environment of the measurements: a cluster, the proxy in front of it, and the objects that clients request. The
 * first apiserver, the victim, has the faults. The last one, the witness, never has a fault; the rig itself writes and
 * watches there.
 */
import { createServer, type Server as NetServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Apiserver } from "../rig/apiserver.ts";
import { ask, order, type Server } from "../rig/ask.ts";
import { type Cluster, type ClusterOptions, startCluster } from "../rig/cluster.ts";
import { Proxy } from "../rig/proxy.ts";
import { Client } from "./client.ts";

export const places = {
  watched: "/api/v1/namespaces/watched/configmaps",
  posted: "/api/v1/namespaces/posted/configmaps",
  big: "/api/v1/namespaces/big/configmaps",
  pod: "/api/v1/namespaces/default/pods/shell",
} as const;

/** 20 objects of 1 MB each make a LIST of 20 MB. An object may have at most 1 MiB. */
export const bigCount = 20;
const bigBytes = 1_000_000;
/** Number of objects that the writer changes in turn. */
const watchedCount = 10;

type ProxyConfig = Readonly<Record<string, unknown>>;

function startProxy(cluster: Cluster, config: ProxyConfig): Promise<Proxy> {
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  return Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends, config });
}

export class Stage {
  readonly cluster: Cluster;
  #proxy: Proxy;
  readonly #config: ProxyConfig;
  readonly #echo: NetServer;
  /** Bytes of padding in each watched object. */
  padding = 0;

  private constructor(cluster: Cluster, proxy: Proxy, config: ProxyConfig, echo: NetServer) {
    this.cluster = cluster;
    this.#proxy = proxy;
    this.#config = config;
    this.#echo = echo;
  }

  get proxy(): Proxy {
    return this.#proxy;
  }

  /** The proxy's address and the credentials of its clients. */
  get server(): Server {
    return { url: this.#proxy.url, caFile: this.cluster.caFile, token: this.cluster.token };
  }

  /** The top-level keys of `config` replace those of the proxy's configuration. */
  static async start(options: ClusterOptions = {}, config: ProxyConfig = {}): Promise<Stage> {
    const cluster = await startCluster({ apiservers: 2, ...options, pods: true });
    const proxy = await startProxy(cluster, config);
    const echo = createServer((socket) => {
      socket.on("error", () => undefined); // a tunnel that was cut
      socket.pipe(socket);
    });
    echo.listen(cluster.node.forwardPort, cluster.node.address);
    const stage = new Stage(cluster, proxy, config, echo);
    await stage.#fill();
    return stage;
  }

  /**
   * Replaces the proxy by a new process, which knows of no earlier failure of a backend. No client may be connected.
   */
  async renew(): Promise<void> {
    await this.#proxy.stop();
    this.#proxy = await startProxy(this.cluster, this.#config);
  }

  get victim(): Apiserver {
    return this.cluster.apiserver(0);
  }

  get witness(): Apiserver {
    return this.cluster.apiserver(this.cluster.apiservers.length - 1);
  }

  async #fill(): Promise<void> {
    const create = (path: string, body: object): Promise<string> =>
      order(this.cluster.admin, { method: "POST", path, body });
    for (const name of ["watched", "posted", "big"]) {
      await create("/api/v1/namespaces", { metadata: { name } });
    }
    for (let number = 0; number < bigCount; number++) {
      const data = { text: String(number % 10).repeat(bigBytes) };
      await create(places.big, { metadata: { name: `big-${number}` }, data });
    }
    for (let number = 0; number < watchedCount; number++) {
      await create(places.watched, { metadata: { name: `thing-${number}` }, data: {} });
    }
    const containers = [{ name: "main", image: "none" }];
    const spec = { nodeName: this.cluster.node.name, containers };
    await create("/api/v1/namespaces/default/pods", { metadata: { name: "shell" }, spec });
    while (!/"phase":"Running"/.test((await ask(this.cluster.admin, { path: places.pod })).text))
      await sleep(100);
  }

  /**
   * Changes the watched objects in turn, `perSecond` changes a second, through the witness. Returns a function that
   * stops it.
   */
  write(perSecond: number): () => void {
    const client = new Client(this.cluster.admin);
    let count = 0;
    const timer = setInterval(() => {
      const name = `thing-${count++ % watchedCount}`;
      const body = { metadata: { name }, data: { count: String(count), text: "x".repeat(this.padding) } };
      void client.ask({ method: "PUT", path: `${places.watched}/${name}`, body });
    }, 1_000 / perSecond);
    return () => {
      clearInterval(timer);
      client.close();
    };
  }

  /** Returns the version from which to watch the watched objects. */
  async version(): Promise<number> {
    const text = await order(this.cluster.admin, { path: `${places.watched}?limit=1` });
    return Number(/"resourceVersion":"(\d+)"/.exec(text)?.[1]);
  }

  async stop(): Promise<void> {
    this.#echo.close();
    await this.#proxy.stop();
    await this.cluster.stop();
  }
}
