/**
 * The whole process of a run: everything that src/main.ts connects, with its files, its listeners and its admin ports,
 * in virtual time. Only the connections for clients' requests are simulated.
 */
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { Journal } from "../../../src/events/journal.ts";
import { type Running, startWatchkeeper } from "../../../src/main.ts";
import { Reloads } from "../../../src/ops/cli/serve/reloads.ts";
import { containFaults } from "../../../src/ops/cli/serve/signals.ts";
import { loadConfig } from "../../../src/ops/config/config.ts";
import { isProblems, lineOf } from "../../../src/ops/config/problem.ts";
import type { Cluster } from "../../../src/proxy/cluster/cluster.ts";
import { Clusters } from "../../../src/proxy/cluster/clusters.ts";
import { Downstream } from "../../../src/proxy/downstream/downstream.ts";
import { type Identity, identityOf } from "../../../src/upstream/identity/asserted-identity.ts";
import type { BackendAddress, ClientPair } from "../../../src/upstream/net/connect.ts";
import type { Wire, WireOwner } from "../../../src/upstream/net/wire.ts";
import { usualNames } from "../../support/certificate.ts";
import { clientOf } from "../../support/client.ts";
import { checkExchanges } from "../../support/exchange-invariants.ts";
import { guardedWire, type Plug, type ProxyOptions } from "../proxy.ts";
import type { Caller } from "../watches/caller.ts";

const yearMs = 31_536_000_000;
/** The object identifier of a common name, as x509/certificate.ts writes it. */
const commonName = "550403";
const policy = { clientCerts: "FrontProxy", names: usualNames } as const;

export class WholeProxy {
  readonly directory = mkdtempSync(join(tmpdir(), "watchkeeper-operators-"));
  readonly wallClock = wallClock;
  readonly journal = new Journal(wallClock);
  readonly #options: ProxyOptions;
  readonly #startedAt = Date.now();
  readonly #downstreams = new Set<Downstream>();
  readonly #wrong: (what: string) => void;
  #clusters: Clusters | undefined;
  #reloads: Reloads | undefined;
  #clients = 0;
  readonly #handlers: NodeJS.UncaughtExceptionListener[];
  /** By how many ms the operator has set the machine's clock back. */
  setBackMs = 0;
  /** The CA with which the backends must be verified, whatever the proxy's file contains. */
  ca = "";
  running: Running | undefined;

  constructor(options: ProxyOptions, wrong: (what: string) => void) {
    this.#options = options;
    this.#wrong = wrong;
    const { world } = options;
    // From here on, the proxy's time is virtual.
    Object.assign(wallClock, {
      now: () => world.now(),
      wall: () => this.#startedAt + world.now() - this.setBackMs,
      after: (ms: number, run: () => void) => world.after(ms, run),
      soon: (run: () => void) => world.soon(run),
    });
    // The scene replaces the dial in cluster.ts by this function.
    Object.assign(globalThis, { dialSimulated: this.#dial });
    this.journal.subscribe((entry) => options.tell(entry));
    const before = process.listeners("uncaughtException");
    containFaults(this.journal, () => this.#wrong("an exception drains the process"));
    this.#handlers = process.listeners("uncaughtException").filter((one) => !before.includes(one));
    this.#check();
  }

  put(file: string, text: string): void {
    writeFileSync(join(this.directory, file), text);
  }

  remove(file: string): void {
    rmSync(join(this.directory, file));
  }

  async start(): Promise<void> {
    const file = join(this.directory, "watchkeeper.yaml");
    const config = loadConfig(file);
    if (isProblems(config)) throw new Error(config.map(lineOf).join("\n"));
    const create = Clusters.of.bind(Clusters);
    Clusters.of = (...given: Parameters<typeof create>) => {
      const clusters = create(...given);
      if (!(clusters instanceof Failure)) this.#clusters = clusters;
      return clusters;
    };
    const reloads = new Reloads(file, this.journal);
    this.#reloads = reloads;
    const running = await startWatchkeeper(config, { journal: this.journal, readAgain: () => reloads.now() });
    if (running instanceof Failure) throw new Error(running.message);
    this.running = running;
    reloads.apply(running);
  }

  get cluster(): Cluster {
    const [cluster] = this.#clusters?.present ?? [];
    if (cluster === undefined) throw new Error("There is no cluster");
    return cluster;
  }

  /** True if each of these backends is ready, and takes asserted identities. */
  isWell(backends: readonly string[]): boolean {
    const { credentials } = this.cluster;
    return backends.every((name) => this.cluster.isReady(name) && credentials.isProven("front-proxy", name));
  }

  reloadNow(): void {
    void this.#reloads?.now();
  }

  /** Accepts a client's connection. A client without a token has shown a certificate of its own name. */
  accept(end: Plug, { name, isBearer }: Pick<Caller, "name" | "isBearer">): void {
    this.#clients += 1;
    const client = clientOf({
      address: `10.0.0.${this.#clients % 250}`,
      port: 40_000 + this.#clients,
      identity: this.#identityOf(isBearer ? undefined : name),
    });
    const guard = {
      onClose: () => this.#downstreams.delete(downstream),
      check: () => {},
      thrown: this.#options.thrown,
    };
    const downstream: Downstream = new Downstream(client, this.cluster.gate, (owner) =>
      guardedWire(end, owner, guard),
    );
    this.#downstreams.add(downstream);
  }

  #identityOf(name: string | undefined): Identity {
    if (name === undefined) return identityOf(undefined, policy);
    const attributes = [{ type: commonName, text: name }];
    const notAfter = this.#startedAt + yearMs;
    return identityOf({ attributes, fingerprint: "0".repeat(64), notAfter, problem: undefined }, policy);
  }

  /** The states of the backends, for a message. */
  get states(): string {
    return this.cluster.path.backends.views
      .map(({ name, state }) => [name, state, ...this.cluster.credentials.identitiesOf(name)].join(" "))
      .join("; ");
  }

  async stop(): Promise<void> {
    for (const downstream of this.#downstreams) downstream.cut();
    this.#reloads?.stop();
    await this.running?.stop(AbortSignal.abort());
    for (const handler of this.#handlers) process.off("uncaughtException", handler);
  }

  clear(): void {
    rmSync(this.directory, { recursive: true });
  }

  readonly #dial = (
    { name, tls }: BackendAddress,
    owner: WireOwner,
    { pair }: { readonly pair?: ClientPair | undefined },
  ): Wire => {
    const right = String(new X509Certificate(this.ca));
    if (tls?.ca?.includes(right) !== true) this.#wrong(`a dial to ${name} with another CA`);
    const { dial, thrown, world } = this.#options;
    const end = dial(name, pair);
    if (end !== undefined) return guardedWire(end, owner, { onClose() {}, check: () => {}, thrown });
    const failure = new Failure("backend-refused", "backend", "connect ECONNREFUSED");
    world.after(1, () => owner.closed(failure));
    return { write: () => true, end() {}, destroy() {} };
  };

  /** What the listener does for its connections each second, and the checks of all exchanges and watches. */
  #check(): void {
    for (const downstream of this.#downstreams) downstream.check();
    this.#options.world.after(1_000, () => this.#check());
    const live = this.#clusters?.present.flatMap(({ path }) => path.exchanges.live) ?? [];
    try {
      checkExchanges(live);
    } catch (error) {
      this.#options.thrown(error);
    }
    for (const { watch, isEnded } of live) {
      const broken = isEnded ? undefined : watch?.check();
      if (broken !== undefined) this.#options.thrown(new Error(broken));
    }
  }
}
