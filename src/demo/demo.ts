/** Two embedded apiservers on one store, and the real proxy in front of them, all in this process. */
import { wallClock } from "../clock.ts";
import { loadConfig } from "../config.ts";
import { Failure } from "../failure.ts";
import { Journal } from "../journal.ts";
import { type Running, startWatchkeeper } from "../main.ts";
import { isProblems, lineOf } from "../problem.ts";
import { Apiserver } from "./apiserver.ts";
import { DemoClient } from "./client.ts";
import { newCluster } from "./cluster.ts";
import { DemoFiles } from "./files.ts";
import { Host } from "./host.ts";

const backendCount = 2;
const defaultPort = 8443;

export class Demo {
  readonly #files: DemoFiles;
  readonly #hosts: readonly Host[];
  readonly #journal: Journal;
  /** Where metrics and probes are. */
  readonly adminAddress: string;
  readonly #running: Running;
  /** Where the proxy is reached, as host:port. */
  readonly address: string;
  readonly kubeconfig: string;
  readonly backendPorts: readonly number[];

  private constructor(parts: {
    files: DemoFiles;
    hosts: readonly Host[];
    ports: readonly number[];
    journal: Journal;
    running: Running;
  }) {
    this.#files = parts.files;
    this.#hosts = parts.hosts;
    this.#journal = parts.journal;
    this.#running = parts.running;
    this.backendPorts = parts.ports;
    this.address = parts.running.addresses.get("kube") ?? "";
    this.adminAddress = parts.running.adminAddress;
    this.kubeconfig = parts.files.writeKubeconfig(this.address);
  }

  /** Serves, or says why not. Without a port it takes the usual one, or any when that is taken. */
  static async start(port: number | undefined): Promise<Demo | Failure> {
    const journal = new Journal(wallClock);
    const files = await DemoFiles.make(wallClock);
    const store = newCluster(wallClock);
    const pair = files.issue("apiserver");
    const hosts = Array.from({ length: backendCount }, (_, index) => {
      const apiserver = new Apiserver({ store, clock: wallClock, name: `apiserver-${index + 1}` });
      return new Host({ apiserver, journal, ...pair });
    });
    const clean = (failure: Failure): Failure => {
      for (const host of hosts) host.stop();
      files.remove();
      return failure;
    };
    const ports: number[] = [];
    for (const host of hosts) {
      const bound = await host.start();
      if (bound instanceof Failure) return clean(bound);
      ports.push(bound);
    }
    const serve = (at: number): Promise<Running | Failure> =>
      startProxy(files.writeConfig(ports, at), journal);
    const first = await serve(port ?? defaultPort);
    const running = first instanceof Failure && port === undefined ? await serve(0) : first;
    if (running instanceof Failure) return clean(running);
    return new Demo({ files, hosts, ports, journal, running });
  }

  /** A client of the proxy, as any other would be. */
  client(): DemoClient {
    const [host = "", port] = this.address.split(":");
    const ca = this.#files.authority.certificate;
    return new DemoClient(
      { name: "watchkeeper", host, port: Number(port), tls: { ca, serverName: host } },
      this.#journal,
    );
  }

  /** Ends everything and takes its files away. */
  async stop(hurry: AbortSignal): Promise<void> {
    await this.#running.stop(hurry);
    for (const host of this.#hosts) host.stop();
    this.#files.remove();
  }
}

async function startProxy(configFile: string, journal: Journal): Promise<Running | Failure> {
  const config = loadConfig(configFile);
  if (isProblems(config)) return new Failure("bad-file", "proxy", config.map(lineOf).join("\n"));
  return startWatchkeeper(config, { journal });
}
