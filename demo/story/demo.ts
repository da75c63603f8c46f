/**
 * The demo: two embedded apiservers with a common store, each behind a relay in a separate process, and the real proxy
 * in front of them in this process. A naive proxy gets the same faults, for comparison (naive-proxy.ts).
 */
import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { Journal } from "../../src/events/journal.ts";
import type { Running } from "../../src/main.ts";
import { isProblems, lineOf } from "../../src/ops/config/problem.ts";
import { newCluster } from "../apiserver/cluster.ts";
import { Embedded, type FaultKind, startAll, stopAll } from "../apiserver/embedded.ts";
import type { Store } from "../objects/store.ts";
import { Beat, beatInto } from "./beat.ts";
import { DemoClient } from "./client.ts";
import { Faults } from "./faults.ts";
import { DemoFiles, embeddedAt } from "./files.ts";
import { NaiveProxy } from "./naive-proxy.ts";
import { SteadyClient } from "./steady-client.ts";

const backendCount = 2;
const defaultPort = 8443;

type Parts = {
  readonly files: DemoFiles;
  readonly store: Store;
  readonly apiservers: readonly Embedded[];
  readonly ports: readonly number[];
  readonly journal: Journal;
  readonly running: Running;
};

export type FaultsRequest = {
  readonly faults: readonly FaultKind[];
  readonly faultMs: number;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
};

export class Demo {
  readonly #parts: Parts;
  /** Address of metrics and probes, as host:port. */
  readonly adminAddress: string;
  /** Address of the admin page, as host:port. */
  readonly pageAddress: string;
  /** Address of the proxy, as host:port. */
  readonly address: string;
  readonly kubeconfig: string;
  readonly backendPorts: readonly number[];

  private constructor(parts: Parts) {
    this.#parts = parts;
    this.backendPorts = parts.ports;
    this.address = parts.running.addresses.get("kube") ?? "";
    this.adminAddress = parts.running.adminAddress;
    this.pageAddress = parts.running.apiAddress;
    this.kubeconfig = parts.files.writeKubeconfig(this.address);
  }

  /** Starts the demo. Without `port`, the proxy listens on the default port or, if that fails, on a free port. */
  static async start(port: number | undefined): Promise<Demo | Failure> {
    const journal = new Journal(wallClock);
    const files = await DemoFiles.make(wallClock);
    const store = newCluster(wallClock);
    const pair = files.issue("apiserver");
    const apiservers = Array.from(
      { length: backendCount },
      (_, index) => new Embedded({ name: `apiserver-${index + 1}`, store, clock: wallClock, pair }),
    );
    const starting = startAll(apiservers);
    await loadProxy();
    const ports = await starting;
    if (ports instanceof Failure) {
      files.remove();
      return ports;
    }
    const serve = (at: number): Promise<Running | Failure> =>
      startProxy(files.writeConfig(embeddedAt(ports), at), journal);
    const first = await serve(port ?? defaultPort);
    const running = first instanceof Failure && port === undefined ? await serve(0) : first;
    if (running instanceof Failure) {
      await stopAll(apiservers);
      files.remove();
      return running;
    }
    return new Demo({ files, store, apiservers, ports, journal, running });
  }

  /** Returns a client of the proxy. Its timeout is long, because requests wait until a backend is ready. */
  client(): DemoClient {
    return this.#clientOf(this.address, 30_000);
  }

  /**
   * Injects faults while one client uses watchkeeper and another a naive proxy, until all faults are over or `signal`
   * aborts. Returns a Failure if the naive proxy does not start, or if a fault affected watchkeeper's client or could
   * not be repaired.
   */
  async playFaults({ faults, faultMs, say, signal }: FaultsRequest): Promise<Failure | undefined> {
    const { apiservers, files, store, journal } = this.#parts;
    const beat = new Beat(beatInto(store, wallClock), wallClock);
    const naive = new NaiveProxy({
      backends: embeddedAt(this.backendPorts),
      ca: files.authority.certificate,
      pair: files.issue("naive"),
      clock: wallClock,
    });
    const port = await naive.start();
    if (port instanceof Failure) return port;
    const steady = (address: string): SteadyClient =>
      new SteadyClient({ connect: () => this.#clientOf(address), beat, clock: wallClock });
    const clients = { watchkeeper: steady(this.address), naive: steady(`127.0.0.1:${port}`) };
    const player = new Faults({ apiservers, journal, clients, clock: wallClock, say, faultMs });
    naive.onChange((...change) => player.naiveChanged(...change));
    signal.addEventListener("abort", () => player.end());
    beat.start();
    const failure = await player.play(faults);
    player.end();
    beat.stop();
    for (const client of Object.values(clients)) client.stop();
    naive.stop();
    return failure;
  }

  async stop(hurry: AbortSignal): Promise<void> {
    const { running, apiservers, files } = this.#parts;
    await running.stop(hurry);
    await stopAll(apiservers);
    files.remove();
  }

  #clientOf(address: string, withinMs?: number): DemoClient {
    const fields = { authorization: "Bearer demo", "user-agent": "watchkeeper-demo" };
    const ca = this.#parts.files.authority.certificate;
    const wait = withinMs === undefined ? {} : { withinMs };
    return new DemoClient({ port: Number(address.split(":").at(-1)), ca, fields, ...wait });
  }
}

/** Loads the proxy's modules, which takes a while. The apiservers' processes start meanwhile. */
const loadProxy = async () => ({
  ...(await import("../../src/ops/config/config.ts")),
  ...(await import("../../src/main.ts")),
});

export async function startProxy(configFile: string, journal: Journal): Promise<Running | Failure> {
  const { loadConfig, startWatchkeeper } = await loadProxy();
  const config = loadConfig(configFile);
  if (isProblems(config)) return new Failure("bad-file", "proxy", config.map(lineOf).join("\n"));
  return startWatchkeeper(config, { journal });
}
