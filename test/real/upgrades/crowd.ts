/**
 * Clients during upgrades of watchkeeper: client-go watches and informers, leaders elected with Leases, GETs on open
 * connections, GETs on new connections, and execs. Failures are counted even if the client library would retry.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Client, type Heard } from "../load/client.ts";
import { places } from "../load/stage.ts";
import { type Outcome, type Scene, Storm } from "../load/storm.ts";
import { Tunnel } from "../load/tunnel.ts";
import type { Server } from "../rig/ask.ts";
import { onLeave } from "../rig/leave.ts";
import { pathOf } from "../rig/parts.ts";
import { drain } from "./host.ts";

const leaders = 3;
const newConnectionsPerSecond = 20;
const crowd = {
  watches: 14,
  informers: 4,
  writesPerSecond: 10,
  getsPerSecond: 20,
  others: false,
  namespaces: 2,
};

export type Counts = {
  readonly connections: number;
  readonly refused: number;
  readonly reset: number;
  /** Texts of the other failures of GETs on new connections, with their counts. */
  readonly otherwise: string;
  readonly slowestMs: number;
  readonly leasesLost: number;
  /** Failed requests of the leaders, which client-go retries. */
  readonly leaseFailures: readonly string[];
  readonly execs: number;
  /** Number of execs that ended before the end of the drain. */
  readonly execsCut: number;
  readonly storm: Outcome;
};

/** A process of its own that takes part in client-go's leader election. */
class Leader {
  readonly #process: ChildProcess;
  readonly #leave: () => void;
  readonly failures: string[] = [];
  lost = 0;

  constructor(kubeconfig: string, name: string) {
    const args = [`-kubeconfig=${kubeconfig}`, "-namespace=default", `-lease=${name}`, "-for=24h"];
    this.#process = spawn("setpriv", ["--pdeathsig", "KILL", pathOf("informer"), ...args], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    this.#leave = onLeave(() => this.#process.kill("SIGKILL"));
    const lines = createInterface({ input: this.#process.stdout ?? process.stdin });
    lines.on("line", (line) => {
      const { kind, text = "" } = JSON.parse(line) as { kind: string; text?: string };
      if (kind === "lost") this.lost += 1;
      if (kind === "failed") this.failures.push(text);
    });
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGTERM");
    if (this.#process.exitCode === null) await once(this.#process, "exit");
    this.#leave();
  }
}

/** GETs, each on a new connection. */
class NewConnections {
  readonly heard: Heard[] = [];
  readonly #under = new Set<Promise<void>>();
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(server: Server) {
    this.#timer = setInterval(() => {
      const asking = this.#ask(server);
      this.#under.add(asking);
      void asking.then(() => this.#under.delete(asking));
    }, 1_000 / newConnectionsPerSecond);
  }

  async #ask(server: Server): Promise<void> {
    const client = new Client(server);
    this.heard.push(await client.ask({ path: places.pod }, 20_000));
    client.close();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#under);
  }
}

function failuresOf(heard: readonly Heard[]): Pick<Counts, "refused" | "reset" | "otherwise"> {
  const bad = heard.filter(({ status, ending }) => status !== 200 || ending !== "whole");
  const words = bad.map(({ status, why }) => why || String(status));
  const isRefused = (why: string): boolean => why.includes("ECONNREFUSED");
  const isReset = (why: string): boolean =>
    /ECONNRESET|EPIPE|socket hang up|reset|cancel|disconnected/.test(why);
  const others = words.filter((why) => !isRefused(why) && !isReset(why));
  return {
    refused: words.filter(isRefused).length,
    reset: words.filter((why) => !isRefused(why) && isReset(why)).length,
    otherwise: [...new Set(others)].join("; ") + (others.length > 0 ? ` ×${others.length}` : ""),
  };
}

export class Crowd {
  readonly #server: Server;
  readonly #storm: Storm;
  readonly #fresh: NewConnections;
  readonly #leaders: readonly Leader[];
  #execs = 0;
  #cut = 0;

  private constructor(scene: Scene, storm: Storm) {
    this.#server = scene.server;
    this.#storm = storm;
    this.#fresh = new NewConnections(scene.server);
    const kubeconfig = scene.cluster.kubeconfig(scene.proxy.url);
    this.#leaders = Array.from({ length: leaders }, (_, at) => new Leader(kubeconfig, `leader-${at}`));
  }

  static async start(scene: Scene): Promise<Crowd> {
    return new Crowd(scene, await Storm.start(scene, { ...crowd, seed: 19 }));
  }

  /**
   * Runs one upgrade while an exec is open. The drain lets the exec continue for `drain.timeout`, so an earlier end is
   * a failure.
   */
  async during(upgrade: () => Promise<void>): Promise<void> {
    const exec = await Tunnel.open(this.#server, "exec", places.pod);
    this.#execs += 1;
    const began = Date.now();
    await upgrade();
    if (exec.endedAt < began + drain.timeoutMs - 500) this.#cut += 1;
    exec.close();
  }

  async stop(): Promise<Counts> {
    await this.#fresh.stop();
    const storm = await this.#storm.stop();
    await Promise.all(this.#leaders.map((one) => one.stop()));
    const { heard } = this.#fresh;
    return {
      connections: heard.length,
      ...failuresOf(heard),
      slowestMs: Math.max(...heard.map(({ headMs }) => headMs)),
      leasesLost: this.#leaders.reduce((sum, { lost }) => sum + lost, 0),
      leaseFailures: this.#leaders.flatMap(({ failures }) => failures),
      execs: this.#execs,
      execsCut: this.#cut,
      storm,
    };
  }
}
