/**
 * The environment of the soak: three embedded apiservers on one store, a side cluster for upgrades and large responses,
 * and watchkeeper as a process of its own. bench/gc-probe.ts is loaded into this process, to force garbage collections
 * and read its memory.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Probed } from "../../bench/gc-probe.ts";
import { newCluster } from "../../demo/apiserver/cluster.ts";
import { Embedded } from "../../demo/apiserver/embedded.ts";
import type { Store } from "../../demo/objects/store.ts";
import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { Volume } from "../processes/reloads/material.ts";
import { freePort } from "../support/free-port.ts";
import { testPki } from "../support/pki.ts";
import { Target } from "../support/target.ts";
import { within } from "../support/within.ts";

export type Ports = {
  /** The TLS listener. The SNI name side.test leads to the side cluster. */
  readonly kube: number;
  /** The TLS passthrough listener. */
  readonly through: number;
  readonly admin: number;
};

/** The variable parts of the configuration. */
export type Shape = {
  readonly backends: number;
  readonly hasSide: boolean;
  readonly hasExtra: boolean;
};

export const whole: Shape = { backends: 3, hasSide: true, hasExtra: false };

/** Length of the kept end of the proxy's output, which is printed if the proxy dies. */
const keptChars = 20_000;
const hosts = ["localhost", "127.0.0.1", "side.test"];

export class Stage {
  readonly store: Store;
  readonly apiservers: readonly Embedded[];
  readonly ports: Ports;
  readonly ca: string;
  readonly #child: ChildProcess;
  readonly #directory: string;
  readonly #volume: Volume;
  readonly #issue: () => Readonly<Record<string, string>>;
  readonly #textOf: (shape: Shape) => string;
  readonly #target: Target;
  #said = "";

  private constructor(parts: {
    readonly store: Store;
    readonly apiservers: readonly Embedded[];
    readonly ports: Ports;
    readonly ca: string;
    readonly directory: string;
    readonly volume: Volume;
    readonly issue: () => Readonly<Record<string, string>>;
    readonly textOf: (shape: Shape) => string;
    readonly target: Target;
  }) {
    this.store = parts.store;
    this.apiservers = parts.apiservers;
    this.ports = parts.ports;
    this.ca = parts.ca;
    this.#directory = parts.directory;
    this.#volume = parts.volume;
    this.#issue = parts.issue;
    this.#textOf = parts.textOf;
    this.#target = parts.target;
    this.configure(whole);
    this.#child = this.#launch();
  }

  static async start(): Promise<Stage> {
    const { authority, serving } = await testPki();
    const store = newCluster(wallClock);
    const apiservers = Array.from(
      { length: 3 },
      (_, at) => new Embedded({ name: `one/a${at}`, store, clock: wallClock, pair: serving }),
    );
    const target = await Target.start();
    const bound = await Promise.all(apiservers.map((one) => one.start()));
    const addresses = bound.map((port) => {
      if (port instanceof Failure) throw new Error(port.message);
      return port;
    });
    const ports = { kube: await freePort(), through: await freePort(), admin: await freePort() };
    const directory = mkdtempSync(join(tmpdir(), "watchkeeper-soak-"));
    mkdirSync(join(directory, "m"));
    const issue = (): Readonly<Record<string, string>> => {
      const { certificate, key } = authority.issue({ name: "soak", hosts });
      return { "tls.crt": certificate, "tls.key": key };
    };
    const volume = new Volume(join(directory, "m"), { ...issue(), "ca.crt": authority.certificate });
    const textOf = (shape: Shape): string => configText(shape, ports, addresses, target.port);
    const ca = authority.certificate;
    const parts = { store, apiservers, ports, ca, directory, volume, issue, textOf, target };
    const stage = new Stage(parts);
    await stage.ready();
    return stage;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** The end of the proxy's output. */
  get said(): string {
    return this.#said;
  }

  /** Writes this configuration. The proxy notices the changed file by itself; `hangUp` tests the reload by SIGHUP. */
  configure(shape: Shape): void {
    this.write(this.#textOf(shape));
  }

  write(text: string): void {
    writeFileSync(join(this.#directory, "watchkeeper.yaml"), text);
  }

  hangUp(): void {
    this.#child.kill("SIGHUP");
  }

  /** Installs another serving certificate. If `isGood` is false, it is invalid. */
  certify(isGood: boolean): void {
    const fresh = this.#issue();
    this.#volume.put(isGood ? fresh : { ...fresh, "tls.crt": "<nil>" });
  }

  /** Returns what the probe in the proxy reports after a forced garbage collection. */
  async probed(): Promise<Probed> {
    const socket = connect(this.#probePath);
    let said = "";
    socket.on("data", (chunk) => {
      said += chunk.toString();
    });
    await within(30_000, "the probe's answer", once(socket, "end"));
    return JSON.parse(said) as Probed;
  }

  async metrics(): Promise<string> {
    const answer = await fetch(`http://127.0.0.1:${this.ports.admin}/metrics`, {
      signal: AbortSignal.timeout(10_000),
    });
    return answer.text();
  }

  /** Waits until every apiserver is ready for new clients. */
  async ready(ms = 60_000): Promise<void> {
    const until = performance.now() + ms;
    for (;;) {
      if (this.isOver) throw new Error(`The proxy has ended: ${this.#said}`);
      const text = await this.metrics().catch(() => "");
      const ready = text.match(/^watchkeeper_backend_ready\{backend="one\/[^}]*\} 1$/gm) ?? [];
      if (ready.length === this.apiservers.length) return;
      if (performance.now() > until) throw new Error(`${ready.length} apiservers are ready\n${this.#said}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async stop(): Promise<void> {
    if (!this.isOver) {
      const gone = once(this.#child, "exit");
      this.#child.kill("SIGTERM");
      await within(20_000, "the proxy's end", gone).catch(() => this.#child.kill("SIGKILL"));
    }
    await Promise.all(this.apiservers.map((one) => one.stop()));
    this.#target.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  get #probePath(): string {
    return join(this.#directory, "probe");
  }

  #launch(): ChildProcess {
    const probe = join(import.meta.dirname, "../../bench/gc-probe.ts");
    const own = ["bin/watchkeeper.js", "run", "--config", join(this.#directory, "watchkeeper.yaml")];
    const child = spawn(process.execPath, ["--expose-gc", "--import", probe, ...own], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, WATCHKEEPER_GC_PROBE: this.#probePath },
    });
    // If the soak is interrupted, the proxy must not be left running.
    process.once("exit", () => child.kill("SIGKILL"));
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        this.#said = (this.#said + chunk.toString()).slice(-keptChars);
      });
    return child;
  }
}

function configText(shape: Shape, ports: Ports, addresses: readonly number[], side: number): string {
  const backends = addresses
    .slice(0, shape.backends)
    .map((port, at) => `{name: a${at}, url: "https://localhost:${port}"}`);
  const host =
    "{serverNames: [side.test], cluster: side, tls: {certFile: m/tls.crt, keyFile: m/tls.key, reloadInterval: 1s}}";
  return `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
metadata: {name: soak}
listeners:
  - name: kube
    address: "127.0.0.1:${ports.kube}"
    cluster: one
    tls: {certFile: m/tls.crt, keyFile: m/tls.key, reloadInterval: 1s}
    hosts: [${shape.hasSide ? host : ""}]
  - {name: through, address: "127.0.0.1:${ports.through}", mode: Passthrough, cluster: one}
${shape.hasExtra ? '  - {name: extra, address: "127.0.0.1:0", cluster: one}' : ""}
clusters:
  - {name: one, backends: [${backends.join(", ")}], tls: {caFile: m/ca.crt}}
${shape.hasSide ? `  - {name: side, backends: [{name: s, url: "https://localhost:${side}"}], tls: {caFile: m/ca.crt}}` : ""}
admin: {address: "127.0.0.1:0", metricsAddress: "127.0.0.1:${ports.admin}"}
drain: {shutdownDelay: 10ms, timeout: 2s}
`;
}
