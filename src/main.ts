/**
 * Wires the parts. The only place where they all meet (the simulation is their other wiring): a Config goes in, a
 * running proxy comes out, or why there is none.
 */
import { getHeapStatistics } from "node:v8";
import { textOf } from "./address.ts";
import { type Readiness, readinessOf } from "./admin/probes.ts";
import { Windows } from "./admin/windows.ts";
import { wallClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { changedParts } from "./config-changes.ts";
import type { Descriptors } from "./descriptors.ts";
import { adminName } from "./descriptors.ts";
import { Failure } from "./failure.ts";
import type { Probe } from "./health/prober.ts";
import { Expiries, loopbackName } from "./health/probes/certificate.ts";
import { createReadyProbe } from "./health/probes/ready.ts";
import { keyOf, readRetransmissions } from "./health/probes/retransmissions.ts";
import type { Journal } from "./journal.ts";
import { limits } from "./limits.ts";
import { BackendSet } from "./proxy/backend-set.ts";
import { connectLane, connectThrough, connectUpgrade, openSocket, openUntrusting } from "./proxy/connect.ts";
import { Credentials, vouchedIn } from "./proxy/credentials.ts";
import { type DialUpgradeParts, dialUpgrade } from "./proxy/dial-upgrade.ts";
import { drain } from "./proxy/drain.ts";
import type { Exchanges } from "./proxy/exchanges.ts";
import { createH1 } from "./proxy/h1.ts";
import { HungTunnels } from "./proxy/hung-tunnels.ts";
import { identify } from "./proxy/identify.ts";
import { Listeners } from "./proxy/listeners.ts";
import { Operations } from "./proxy/operations.ts";
import { Passthrough } from "./proxy/passthrough.ts";
import { Path } from "./proxy/path.ts";
import { respond } from "./proxy/respond.ts";
import { settle } from "./proxy/settle.ts";
import { type SpliceParts, Splices } from "./proxy/splice.ts";
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
  // Its readers come with the proxy, which it may not outlive: nothing is told before it is started.
  let proxy: Watchkeeper | undefined;
  const backends = BackendSet.of(config, {
    clock: wallClock,
    journal: around.journal,
    onChange: (names) => proxy?.reconcile(names),
    isReady: (name) => proxy?.isReady(name) === true,
  });
  if (backends instanceof Failure) return backends;
  proxy = new Watchkeeper(config, backends, around);
  return (await proxy.start()) ?? proxy;
}

type OnHung = SpliceParts["onHung"];

class Watchkeeper implements Running {
  #config: Config;
  readonly #around: Surroundings;
  readonly #path: Path;
  readonly #splices: Splices;
  readonly #passthrough: Passthrough;
  readonly #listeners: Listeners;
  readonly #backends: BackendSet;
  readonly #expiries: Expiries;
  readonly #credentials: Credentials;
  readonly #windows: Windows;
  #isDraining = false;
  #configState = { isGood: true, loadedAtMs: wallClock.wall() };

  constructor(config: Config, backends: BackendSet, around: Surroundings) {
    const { journal } = around;
    this.#credentials = new Credentials({
      clock: wallClock,
      journal,
      onSwap: (trust) => this.#path.upstreams.renew(trust),
      ready: () => backends.ready,
    });
    const { keepalive, ping, probe } = config.health;
    this.#config = config;
    this.#around = around;
    this.#backends = backends;
    this.#windows = new Windows(journal);
    this.#expiries = new Expiries({
      clock: wallClock,
      journal,
      openLoopback: (backend) => openUntrusting(backends.addressOf(backend), loopbackName),
    });
    this.#path = new Path({
      clock: wallClock,
      journal,
      ping,
      probes: { probe: this.#createProbe(probe.path), times: probe, random: Math.random },
      lanes: config.upstream.lanes,
      bufferBytes: getHeapStatistics().heap_size_limit * limits.bufferShare,
      sharing: config.upstream.sharing,
      accessLog: config.logging.accessLog,
      ...config.watches,
      // Looked up at each dial, so that a reloaded CA or address holds from the next lane on.
      connect: (backend, owner, trust) => {
        const pair = this.#credentials.pairFor(trust);
        return connectLane(backends.addressOf(backend), owner, { journal, keepalive, pair });
      },
      vouched: vouchedIn(config),
    });
    const hung = new HungTunnels({ clock: wallClock, read: readRetransmissions });
    const onHung: OnHung = (sockets, run) => hung.watch(sockets.map(keyOf), run);
    this.#splices = this.#createSplices(journal, onHung);
    this.#passthrough = this.#createPassthrough(journal, onHung);
    this.#listeners = this.#createListeners(journal);
  }

  #createProbe(path: string): Probe {
    return createReadyProbe({
      path,
      open: (backend) => openSocket(this.#backends.addressOf(backend), "http/1.1"),
      seen: (backend, notAfter) => this.#expiries.seen(backend, notAfter),
    });
  }

  #createListeners(journal: Journal): Listeners {
    const { clock, turn, buffered, serve } = this.#path;
    const h1 = createH1({
      serve,
      clock,
      journal,
      splice: (request, socket, head, client) => this.#splices.splice(request, socket, head, client),
    });
    const parts = { clock, turn, buffered, journal, serve, h1, passthrough: this.#passthrough };
    return new Listeners(parts, this.#config.health.keepalive, this.#around.inherited);
  }

  #createPassthrough(journal: Journal, onHung: OnHung): Passthrough {
    const { backends, upstreams, hold } = this.#path;
    const { keepalive } = this.#config.health;
    return new Passthrough({
      clock: wallClock,
      journal,
      backends,
      upstreams,
      hold,
      onHung,
      connect: (backend, ends) => connectThrough(this.#backends.addressOf(backend), ends, keepalive),
    });
  }

  #createSplices(journal: Journal, onHung: OnHung): Splices {
    const { backends, upstreams } = this.#path;
    const { keepalive } = this.#config.health;
    const connect: DialUpgradeParts["connect"] = (backend, withinMs, { trust, ends }) => {
      const pair = this.#credentials.pairFor(trust);
      return connectUpgrade(this.#backends.addressOf(backend), { keepalive, pair, ends }, withinMs);
    };
    const tunnels = (backend: string): number => this.#splices.openOn(backend);
    return new Splices({
      identify: (request, client) => identify(request, client, wallClock.wall()),
      respond,
      clock: wallClock,
      journal,
      onHung,
      dialUpgrade: (client, trust) => dialUpgrade(client, { backends, upstreams, tunnels, connect, trust }),
    });
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
    return this.#path.exchanges;
  }

  /** Opens every listener, or none. */
  async start(): Promise<Failure | undefined> {
    const { inherited } = this.#around;
    // Listening sockets that were passed in have a queue, in which somebody may stand.
    const isAwaited = inherited !== undefined && !inherited.isEmpty;
    const failure =
      (await this.#takeCredentials(this.#config)) ??
      (isAwaited ? await this.#awaitBackends() : undefined) ??
      (await this.#listeners.reconcile(this.#config.listeners)) ??
      (await this.#openWindows());
    // Only now, so that a port that somebody else has is the only thing that is told; not before our own certificates
    // are there, for lanes are dialled at once.
    if (failure === undefined && !isAwaited) this.#backends.start();
    inherited?.closeRest();
    if (failure !== undefined) this.#cut();
    return failure;
  }

  async #takeCredentials(config: Config): Promise<Failure | undefined> {
    const take = await this.#credentials.prepare(config);
    return take instanceof Failure ? take : take();
  }

  async #awaitBackends(): Promise<Failure | undefined> {
    this.#backends.start();
    const { isSuccessor } = this.#around;
    const isReady = await settle(() => this.#path.backends.views, wallClock, limits.settleMs);
    if (isReady || isSuccessor !== true) return undefined;
    return new Failure("no-backend", "proxy", `No backend was ready in ${limits.settleMs} ms`);
  }

  async reload(loaded: Config | undefined): Promise<readonly string[] | Failure> {
    const outcome = loaded === undefined ? undefined : await this.#take(loaded);
    const isGood = outcome !== undefined && !(outcome instanceof Failure);
    this.#configState = { isGood, loadedAtMs: isGood ? wallClock.wall() : this.#configState.loadedAtMs };
    return outcome ?? [];
  }

  async #take(config: Config): Promise<readonly string[] | Failure> {
    const takeBackends = await this.#backends.prepare(config);
    if (takeBackends instanceof Failure) return takeBackends;
    // Before the listeners: whoever comes by a new one may need them at once.
    const failure =
      (await this.#takeCredentials(config)) ?? (await this.#listeners.reconcile(config.listeners));
    if (failure !== undefined) return failure;
    const waiting = changedParts(this.#config, config);
    this.#config = config;
    takeBackends();
    return waiting;
  }

  reconcile(names: readonly string[]): void {
    this.#path.reconcile(names);
    this.#passthrough.reconcile(names, this.#config.drain.timeoutMs);
    this.#expiries.reconcile(names);
  }

  isReady(backend: string): boolean {
    return this.#path.backends.views.some(({ name, state }) => name === backend && state === "ready");
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
      exchanges: this.#path.exchanges,
      queuedBytes: () => this.#path.buffered.bytes,
      upgrades: () => this.#splices.openCount + this.#passthrough.openCount,
      close: () => this.#listeners.close(),
      goAway: () => this.#listeners.drain(),
      cut: () => this.#cut(),
    };
    await drain(parts, times, hurry);
    if (!isHandedOver) await this.#windows.close();
  }

  #cut(): void {
    this.#windows.stop();
    this.#backends.stop();
    this.#credentials.stop();
    this.#splices.cut();
    this.#passthrough.cut();
    this.#listeners.cut();
    this.#path.reconcile([]);
  }

  #openWindows(): Promise<Failure | undefined> {
    const { journal, inherited, droppedLogLines = () => 0 } = this.#around;
    const { upstreams, exchanges, backends, hedges, hold, moves, timeTravel, talk, standings } = this.#path;
    return this.#windows.open({
      name: this.#config.name,
      addresses: this.#config.admin,
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
      upgrades: () => this.#splices.openCount,
      passthrough: this.#passthrough,
      sessions: () => this.#listeners.sessionCount,
      handshakeErrors: () => this.#listeners.handshakeErrors,
      queuedBytes: () => this.#path.buffered.bytes,
      config: () => this.#configState,
      discovery: () => this.#backends.record,
      detectors: (name) => this.#path.detectors(name),
      addressOf: (name) => textOf(this.#backends.addressOf(name)),
      certificates: () => [
        ...this.#listeners.certificates,
        ...this.#backends.certificates,
        ...this.#credentials.certificates.map((one) => ({ purpose: "client", ...one })),
        ...this.#expiries.all,
      ],
      droppedLogLines,
      operations: new Operations({ journal, backends, exchanges, moves, reload: this.#around.readAgain }),
      ready: () => this.#ready(),
    });
  }

  /** May new clients be sent here? Not while draining, and not when no backend could answer them. */
  #ready(): readonly Readiness[] {
    const states = this.#path.backends.views.map(({ state }) => state);
    return readinessOf({ states, lost: this.#listeners.lost, isDraining: this.#isDraining });
  }
}
