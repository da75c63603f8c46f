/**
 * The proxy as a user runs it: a process with its own configuration file and its own certificate.
 *
 * WATCHKEEPER_REAL_PEER replaces the proxy. `nghttpx` shows whether another proxy causes the same difference, and
 * whether a suite can fail at all. `none` uses no proxy: whatever a suite then reports is an error of the suite itself.
 * WATCHKEEPER_REAL_WORKERS sets the proxy's number of workers in every suite.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { fileURLToPath } from "node:url";
import { freePort } from "../../support/free-port.ts";
import { processTree } from "../../support/process-tree.ts";
import { serverName } from "./apiserver.ts";
import { Child, type Start } from "./child.ts";
import type { Pair, Pki } from "./pki.ts";
import { until } from "./until.ts";

const bin = fileURLToPath(new URL("../../../bin/watchkeeper.js", import.meta.url));

export type ProxyOptions = {
  readonly folder: string;
  /** Signs the proxy's certificate. It has also signed the certificates of the backends. */
  readonly pki: Pki;
  readonly backends: readonly { readonly name: string; readonly url: string }[];
  /** Name of the proxy's files, if several proxies of a cluster run. */
  readonly name?: string;
  /** Default: "HTTP". */
  readonly mode?: "HTTP" | "Passthrough";
  /** More keys of the proxy's listener, and of the listener's tls. */
  readonly listener?: Readonly<Record<string, unknown>>;
  readonly listenerTls?: Readonly<Record<string, unknown>>;
  /** Keys that replace top-level keys of the configuration. */
  readonly config?: Readonly<Record<string, unknown>>;
};

type Ports = { readonly listener: number; readonly metrics: number };

function watchkeeper(options: ProxyOptions, pair: Pair, ports: Ports): Start {
  const name = options.name ?? "watchkeeper";
  const configFile = join(options.folder, `${name}.yaml`);
  const { mode = "HTTP" } = options;
  const workers = Number(process.env["WATCHKEEPER_REAL_WORKERS"] ?? 0);
  const serving = mode === "HTTP" ? { tls: { ...pair, ...options.listenerTls } } : {};
  const config = {
    apiVersion: "watchkeeper.dev/v1alpha2",
    kind: "WatchkeeperConfiguration",
    listeners: [
      { name: "kube", address: `127.0.0.1:${ports.listener}`, mode, ...serving, ...options.listener },
    ],
    clusters: [
      {
        name: "default",
        backends: options.backends,
        tls: { caFile: options.pki.ca.certFile, serverName },
      },
    ],
    admin: { address: "127.0.0.1:0", metricsAddress: `127.0.0.1:${ports.metrics}` },
    ...(workers > 0 && { workers }),
    ...options.config,
  };
  writeFileSync(configFile, JSON.stringify(config, null, 2)); // JSON is YAML
  const args = [bin, "run", "--config", configFile];
  return {
    name,
    command: process.execPath,
    args,
    logFile: join(options.folder, `${name}.log`),
  };
}

function nghttpx(options: ProxyOptions, pair: Pair, ports: Ports): Start {
  const args = [
    `--frontend=127.0.0.1,${ports.listener}`,
    `--cacert=${options.pki.ca.certFile}`,
    "--workers=1",
  ];
  for (const { url } of options.backends) {
    const { hostname, port } = new URL(url);
    args.push(`--backend=${hostname},${port};;proto=h2;tls;sni=${serverName}`);
  }
  args.push(pair.keyFile, pair.certFile);
  return { name: "nghttpx", command: "nghttpx", args, logFile: join(options.folder, "nghttpx.log") };
}

/** Resolves with true if the listener accepts a TLS connection. Closes the connection properly. */
function accepts(port: number, caFile: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const options = {
    host: "127.0.0.1",
    port,
    servername: "localhost",
    ca: readFileSync(caFile),
    ALPNProtocols: ["h2"],
  };
  const socket = connect(options, () => {
    socket.end();
    resolve(true);
  });
  socket.setTimeout(2_000, () => socket.destroy());
  socket.on("error", () => resolve(false));
  socket.on("close", () => resolve(false));
  return promise;
}

export class Proxy {
  readonly url: string;
  readonly port: number;
  readonly metricsUrl: string;
  readonly #child: Child | undefined;

  private constructor(child: Child | undefined, url: string, ports: Ports) {
    this.#child = child;
    this.url = url;
    this.port = Number(new URL(url).port);
    this.metricsUrl = `http://127.0.0.1:${ports.metrics}`;
  }

  static async start(options: ProxyOptions): Promise<Proxy> {
    const names = ["DNS:localhost", `DNS:${serverName}`, "IP:127.0.0.1"];
    const pair = options.pki.issue({
      name: `proxy-${options.name ?? "only"}`,
      subject: "/CN=watchkeeper",
      names,
    });
    const ports = { listener: await freePort(), metrics: await freePort() };
    const peer = process.env["WATCHKEEPER_REAL_PEER"] ?? "";
    if (peer === "none") return new Proxy(undefined, options.backends[0]?.url ?? "", ports);
    const child = new Child((peer === "nghttpx" ? nghttpx : watchkeeper)(options, pair, ports));
    const proxy = new Proxy(child, `https://127.0.0.1:${ports.listener}`, ports);
    try {
      await child.ready(20_000, () => accepts(proxy.port, options.pki.ca.certFile));
    } catch (error) {
      await child.stop();
      throw error;
    }
    return proxy;
  }

  get isRunning(): boolean {
    return this.#child?.isRunning ?? true;
  }

  /**
   * Resolves when exactly `count` backends are ready from the proxy's view. The proxy notices later than the rig that a
   * backend works again.
   */
  async settled(count: number, ms = 20_000): Promise<void> {
    let ready = -1;
    const isSettled = async (): Promise<boolean> => {
      const text = await (await fetch(`${this.metricsUrl}/metrics`)).text();
      ready = [...text.matchAll(/^watchkeeper_backend_ready\{.*\} 1$/gm)].length;
      return ready === count;
    };
    await until(() => `${count} ready backends: ${ready} are`, isSettled, ms);
  }

  get pid(): number {
    return this.#child?.pid ?? process.pid;
  }

  /** The proxy's process and its children, such as workers; empty if there is no proxy. */
  get pids(): readonly number[] {
    return this.#child === undefined ? [] : processTree(this.#child.pid);
  }

  /** The proxy's log file, with one JSON object a line; "" if there is no proxy. */
  get logFile(): string {
    return this.#child?.logFile ?? "";
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.signal(signal);
  }

  /** The end of the proxy's log, for the message of a failed assertion. */
  tail(): string {
    return this.#child?.tail() ?? "";
  }

  /** Resolves with the exit code, or with the name of the signal; 0 if there is no proxy. */
  async stop(): Promise<number | string> {
    await this.#child?.stop(10_000);
    return this.#child?.ended ?? 0;
  }
}
