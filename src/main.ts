/**
 * Wires the parts. The only place where they all meet (the simulation is their other wiring): a Config goes in, a
 * running proxy comes out, or why there is none.
 */
import { textOf } from "./address.ts";
import { type Readiness, readinessOf } from "./admin/probes.ts";
import { Windows } from "./admin/windows.ts";
import { wallClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { changedParts } from "./config-changes.ts";
import type { Descriptors } from "./descriptors.ts";
import { adminName } from "./descriptors.ts";
import { Failure } from "./failure.ts";
import type { Journal } from "./journal.ts";
import { limits } from "./limits.ts";
import { Cluster } from "./proxy/cluster.ts";
import { drain } from "./proxy/drain.ts";
import type { Exchanges } from "./proxy/exchanges.ts";
import { Listeners } from "./proxy/listeners.ts";
import { Operations } from "./proxy/operations.ts";
import { ownVersion } from "./version.ts";

/** A proxy that serves. */
export type Running = {
  /** Where each listener is bound, by its name: "127.0.0.1:8443". */
  readonly addresses: ReadonlyMap<string, string>;
  /** Where metrics and probes are served. */
  readonly adminAddress: string;
  /** Where the JSON API is; "" while its port is somebody else's. */
  readonly apiAddress: string;
  readonly exchanges: Exchanges;
  /**
   * Takes another configuration's listeners, backends, CA and drain, or none of it. Returns the names of changed parts
   * that hold from the next start only. Undefined says that there was a file, but a bad one.
   */
  reload(loaded: Config | undefined): Promise<readonly string[] | Failure>;
  /** Every listening socket, by its listener's name, for a successor. */
  readonly descriptors: ReadonlyMap<string, number>;
  /** Ends gracefully; `hurry` aborts the waiting. Once handed over, new clients are a successor's from the start. */
  stop(hurry: AbortSignal, isHandedOver?: boolean): Promise<void>;
};

export type Surroundings = {
  readonly journal: Journal;
  /** Lines that the log had to drop, for the metric. */
  readonly droppedLogLines?: () => number;
  /** Listening sockets that were passed in. Clients may wait there, so nobody is accepted before a backend is ready. */
  readonly inherited?: Descriptors;
  /** Somebody else serves on these sockets until we do: better not to start than to start without a backend. */
  readonly isSuccessor?: boolean;
  /** Reads the configuration again, as a signal would; resolves with the problems for which it was not taken. */
  readonly readAgain?: () => Promise<readonly string[]>;
};

/** Opens every listener and the admin port, or says why it cannot. */
export async function startWatchkeeper(config: Config, around: Surroundings): Promise<Running | Failure> {
  const cluster = Cluster.of(config, around.journal);
  if (cluster instanceof Failure) return cluster;
  const proxy = new Watchkeeper(config, cluster, around);
  return (await proxy.start()) ?? proxy;
}

class Watchkeeper implements Running {
  #config: Config;
  readonly #around: Surroundings;
  readonly #cluster: Cluster;
  readonly #listeners: Listeners;
  readonly #windows: Windows;
  #isDraining = false;
  #configState = { isGood: true, loadedAtMs: wallClock.wall() };

  constructor(config: Config, cluster: Cluster, around: Surroundings) {
    this.#config = config;
    this.#around = around;
    this.#cluster = cluster;
    this.#windows = new Windows(around.journal);
    this.#listeners = new Listeners(cluster.entry, config.health.keepalive, around.inherited);
  }

  get addresses(): ReadonlyMap<string, string> {
    return this.#listeners.addresses;
  }

  get adminAddress(): string {
    return this.#windows.adminAddress;
  }

  get apiAddress(): string {
    return this.#windows.apiAddress;
  }

  get exchanges(): Exchanges {
    return this.#cluster.path.exchanges;
  }

  /** Opens every listener, or none. */
  async start(): Promise<Failure | undefined> {
    const { inherited } = this.#around;
    // Listening sockets that were passed in have a queue, in which somebody may stand.
    const isAwaited = inherited !== undefined && !inherited.isEmpty;
    const failure =
      (await this.#cluster.load()) ??
      (isAwaited ? await this.#awaitBackends() : undefined) ??
      (await this.#listeners.reconcile(this.#config.listeners)) ??
      (await this.#openWindows());
    // Only now, so that a port that somebody else has is the only thing that is told; not before our own certificates
    // are there, for lanes are dialled at once.
    if (failure === undefined && !isAwaited) this.#cluster.start();
    inherited?.closeRest();
    if (failure !== undefined) this.#cut();
    return failure;
  }

  async #awaitBackends(): Promise<Failure | undefined> {
    this.#cluster.start();
    const { isSuccessor } = this.#around;
    if ((await this.#cluster.settled()) || isSuccessor !== true) return undefined;
    return new Failure("no-backend", "proxy", `No backend was ready in ${limits.settleMs} ms`);
  }

  async reload(loaded: Config | undefined): Promise<readonly string[] | Failure> {
    const outcome = loaded === undefined ? undefined : await this.#take(loaded);
    const isGood = outcome !== undefined && !(outcome instanceof Failure);
    this.#configState = { isGood, loadedAtMs: isGood ? wallClock.wall() : this.#configState.loadedAtMs };
    return outcome ?? [];
  }

  async #take(config: Config): Promise<readonly string[] | Failure> {
    const take = await this.#cluster.prepare(config);
    if (take instanceof Failure) return take;
    const failure = await this.#listeners.reconcile(config.listeners);
    if (failure !== undefined) return failure;
    const waiting = changedParts(this.#config, config);
    this.#config = config;
    take();
    return waiting;
  }

  get descriptors(): ReadonlyMap<string, number> {
    const admin = this.#windows.descriptor;
    return new Map([
      ...this.#listeners.descriptors,
      ...(admin === undefined ? [] : [[adminName, admin] as const]),
    ]);
  }

  async stop(hurry: AbortSignal, isHandedOver = false): Promise<void> {
    this.#isDraining = true;
    // The port is the successor's now: whoever asks there asks about that one.
    if (isHandedOver) await this.#windows.close();
    const times = isHandedOver ? { ...this.#config.drain, readyDelayMs: 0 } : this.#config.drain;
    const parts = {
      clock: wallClock,
      journal: this.#around.journal,
      exchanges: this.exchanges,
      queuedBytes: () => this.#cluster.path.buffered.bytes,
      upgrades: () => this.#cluster.tunnelCount,
      close: () => this.#listeners.close(),
      goAway: () => this.#listeners.drain(),
      cut: () => this.#cut(),
    };
    await drain(parts, times, hurry);
    if (!isHandedOver) await this.#windows.close();
  }

  #cut(): void {
    this.#windows.stop();
    this.#cluster.stop();
    this.#listeners.cut();
    this.#cluster.path.reconcile([]);
  }

  #openWindows(): Promise<Failure | undefined> {
    const { journal, inherited, droppedLogLines = () => 0 } = this.#around;
    const { path, backends: set, passthrough } = this.#cluster;
    const { upstreams, exchanges, backends, hedges, hold, moves, timeTravel, talk, standings } = path;
    return this.#windows.open({
      name: this.#config.name,
      addresses: this.#config.admin,
      current: () => this.#config,
      inherited: inherited?.take(adminName),
      version: ownVersion(),
      journal,
      views: () => backends.views,
      upstreams,
      moves,
      timeTravel,
      exchanges,
      hedges,
      hold,
      talk,
      standings,
      upgrades: () => this.#cluster.splices.openCount,
      passthrough,
      sessions: () => this.#listeners.sessionCount,
      handshakeErrors: () => this.#listeners.handshakeErrors,
      queuedBytes: () => path.buffered.bytes,
      config: () => this.#configState,
      discovery: () => set.record,
      detectors: (name) => path.detectors(name),
      addressOf: (name) => textOf(set.addressOf(name)),
      certificates: () => [...this.#listeners.certificates, ...this.#cluster.certificates],
      droppedLogLines,
      operations: new Operations({ journal, backends, exchanges, moves, reload: this.#around.readAgain }),
      ready: () => this.#ready(),
    });
  }

  /** May new clients be sent here? Not while draining, and not when no backend could answer them. */
  #ready(): readonly Readiness[] {
    const states = this.#cluster.path.backends.views.map(({ state }) => state);
    return readinessOf({ states, lost: this.#listeners.lost, isDraining: this.#isDraining });
  }
}
