/**
 * Wires the parts. The only place where they all meet (the simulation is their other wiring): a Config goes in, a
 * running proxy comes out, or why there is none.
 */
import { getHeapStatistics } from "node:v8";
import { createMetrics } from "./admin/metrics.ts";
import type { Readiness } from "./admin/probes.ts";
import { type Admin, startAdmin } from "./admin/server.ts";
import { snapshots } from "./admin/snapshot.ts";
import { wallClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { Failure } from "./failure.ts";
import type { Journal } from "./journal.ts";
import { limits } from "./limits.ts";
import { loadCa } from "./proxy/certificates.ts";
import { type BackendAddress, connectLane, connectUpgrade, meet } from "./proxy/connect.ts";
import { dialUpgrade } from "./proxy/dial-upgrade.ts";
import { drain } from "./proxy/drain.ts";
import type { Exchanges } from "./proxy/exchanges.ts";
import { Fate } from "./proxy/fate.ts";
import { createH1 } from "./proxy/h1.ts";
import { identify } from "./proxy/identify.ts";
import { Listeners } from "./proxy/listeners.ts";
import { Path } from "./proxy/path.ts";
import { respond } from "./proxy/respond.ts";
import { Splices } from "./proxy/splice.ts";
import { ownVersion } from "./version.ts";

/** A proxy that serves. */
export type Running = {
  /** Where each listener is bound, by its name: "127.0.0.1:8443". */
  readonly addresses: ReadonlyMap<string, string>;
  /** Where metrics and probes are served. */
  readonly adminAddress: string;
  readonly exchanges: Exchanges;
  /**
   * Takes another configuration's listeners, backends, CA and drain, or none of it. Returns the names of changed parts
   * that hold from the next start only. Undefined says that there was a file, but a bad one.
   */
  reload(loaded: Config | undefined): Promise<readonly string[] | Failure>;
  /** Ends gracefully; `hurry` aborts the waiting. */
  stop(hurry: AbortSignal): Promise<void>;
};

export type Surroundings = {
  readonly journal: Journal;
  /** Lines that the log had to drop, for the metric. */
  readonly droppedLogLines?: () => number;
};

/** Backends by name, with the CA that vouches for them; replaced whole by a reload. */
type Addresses = ReadonlyMap<string, BackendAddress>;

export async function startWatchkeeper(config: Config, around: Surroundings): Promise<Running | Failure> {
  const addresses = addressesOf(config);
  if (addresses instanceof Failure) return addresses;
  const proxy = new Watchkeeper(config, addresses, around);
  const failure = await proxy.start();
  return failure ?? proxy;
}

class Watchkeeper implements Running {
  #config: Config;
  readonly #around: Surroundings;
  readonly #path: Path;
  readonly #splices: Splices;
  readonly #listeners: Listeners;
  #backends: Addresses;
  #admin: Admin | undefined;
  #isDraining = false;
  #configState = { isGood: true, loadedAtMs: wallClock.wall() };

  constructor(config: Config, backends: Addresses, around: Surroundings) {
    const { journal } = around;
    const { keepalive, ping } = config.health;
    this.#config = config;
    this.#around = around;
    this.#backends = backends;
    this.#path = new Path({
      clock: wallClock,
      journal,
      ping,
      lanes: config.upstream.lanes,
      bufferBytes: getHeapStatistics().heap_size_limit * limits.bufferShare,
      sharing: config.upstream.sharing,
      // Looked up at each dial, so that a reloaded CA or address holds from the next lane on.
      connect: (backend, owner) => connectLane(this.#addressOf(backend), owner, { journal, keepalive }),
    });
    this.#splices = this.#createSplices(journal);
    this.#listeners = this.#createListeners(journal);
  }

  #createListeners(journal: Journal): Listeners {
    const { clock, turn, buffered, serve } = this.#path;
    const h1 = createH1({
      serve,
      clock,
      journal,
      splice: (request, socket, head, client) => this.#splices.splice(request, socket, head, client),
    });
    return new Listeners({ clock, turn, buffered, journal, serve, h1 }, this.#config.health.keepalive);
  }

  #createSplices(journal: Journal): Splices {
    const { backends, upstreams } = this.#path;
    const { keepalive } = this.#config.health;
    const connect = (backend: string, withinMs: number): ReturnType<typeof connectUpgrade> =>
      connectUpgrade(this.#addressOf(backend), keepalive, withinMs);
    const probe = (backend: string): ReturnType<typeof meet> =>
      meet(this.#addressOf(backend), keepalive, limits.dialMs);
    const fate = new Fate({ backends, clock: wallClock, probe });
    const tunnels = (backend: string): number => this.#splices.openOn(backend);
    return new Splices({
      identify,
      respond,
      clock: wallClock,
      journal,
      dialUpgrade: (client) => dialUpgrade(client, { backends, upstreams, fate, tunnels, connect }),
    });
  }

  get addresses(): ReadonlyMap<string, string> {
    return this.#listeners.addresses;
  }

  get adminAddress(): string {
    return this.#admin?.address ?? "";
  }

  get exchanges(): Exchanges {
    return this.#path.exchanges;
  }

  /** Opens every listener, or none. */
  async start(): Promise<Failure | undefined> {
    const failure = (await this.#listeners.reconcile(this.#config.listeners)) ?? (await this.#openAdmin());
    if (failure === undefined) this.#path.reconcile([...this.#backends.keys()]);
    else this.#cut();
    return failure;
  }

  async reload(loaded: Config | undefined): Promise<readonly string[] | Failure> {
    const outcome = loaded === undefined ? undefined : await this.#take(loaded);
    const isGood = outcome !== undefined && !(outcome instanceof Failure);
    this.#configState = { isGood, loadedAtMs: isGood ? wallClock.wall() : this.#configState.loadedAtMs };
    return outcome ?? [];
  }

  async #take(config: Config): Promise<readonly string[] | Failure> {
    const backends = addressesOf(config);
    if (backends instanceof Failure) return backends;
    const failure = await this.#listeners.reconcile(config.listeners);
    if (failure !== undefined) return failure;
    const waiting = changedParts(this.#config, config);
    this.#config = config;
    this.#backends = backends;
    this.#path.reconcile([...backends.keys()]);
    return waiting;
  }

  async stop(hurry: AbortSignal): Promise<void> {
    this.#isDraining = true;
    const parts = {
      clock: wallClock,
      journal: this.#around.journal,
      exchanges: this.#path.exchanges,
      queuedBytes: () => this.#path.buffered.bytes,
      upgrades: () => this.#splices.openCount,
      close: () => this.#listeners.close(),
      goAway: () => this.#listeners.drain(),
      cut: () => this.#cut(),
    };
    await drain(parts, this.#config.drain, hurry);
    await this.#admin?.stop();
  }

  #cut(): void {
    this.#splices.cut();
    this.#listeners.cut();
    this.#path.reconcile([]);
  }

  async #openAdmin(): Promise<Failure | undefined> {
    const { journal, droppedLogLines = () => 0 } = this.#around;
    const { upstreams, exchanges, backends } = this.#path;
    const snapshot = snapshots({
      version: ownVersion(),
      journal,
      views: () => backends.views,
      upstreams,
      exchanges,
      upgrades: () => this.#splices.openCount,
      sessions: () => this.#sessions(),
      handshakeErrors: () => this.#listeners.handshakeErrors,
      queuedBytes: () => this.#path.buffered.bytes,
      config: () => this.#configState,
      certificates: () => this.#listeners.certificates.map((one) => ({ purpose: "serving", ...one })),
      droppedLogLines,
    });
    const admin = await startAdmin({
      ...this.#config.admin.metricsAddress,
      journal,
      live: () => [{ name: "ping", ok: true }],
      ready: () => this.#ready(),
      registry: createMetrics(journal, snapshot),
    });
    if (admin instanceof Failure) return admin;
    this.#admin = admin;
    return undefined;
  }

  #sessions(): { readonly alpn: string; readonly open: number }[] {
    const { h2, h1 } = this.#listeners.sessionCount;
    return [
      { alpn: "h2", open: h2 },
      { alpn: "http/1.1", open: h1 },
    ];
  }

  /** May new clients be sent here? Not while draining, and not when no backend could answer them. */
  #ready(): readonly Readiness[] {
    const { views } = this.#path.backends;
    const ready = views.filter(({ state }) => state === "ready").length;
    return [
      { name: "backends", ok: ready > 0, reason: `${ready} of ${views.length} ready` },
      { name: "config", ok: true },
      { name: "draining", ok: !this.#isDraining, reason: "the proxy is stopping" },
    ];
  }

  #addressOf(backend: string): BackendAddress {
    // A lane may dial in the moment in which its backend is removed: nobody listens on port 0.
    return this.#backends.get(backend) ?? { name: backend, host: "127.0.0.1", port: 0, tls: undefined };
  }
}

function addressesOf(config: Config): Addresses | Failure {
  const { backends, tls } = config.upstream;
  const ca = tls === undefined ? undefined : loadCa(tls.caFile);
  if (ca instanceof Failure) return ca;
  return new Map(
    backends.map(({ name, host, port, isEncrypted }) => [
      name,
      { name, host, port, tls: isEncrypted ? { ca, serverName: tls?.serverName ?? host } : undefined },
    ]),
  );
}

/** What is fixed when the process starts, by its names in the file. */
function fixedParts({ upstream, health, admin, logging }: Config): Record<string, unknown> {
  return { "upstream.lanes": upstream.lanes, "upstream.sharing": upstream.sharing, health, admin, logging };
}

/** Which of those differ between the two. */
function changedParts(before: Config, after: Config): readonly string[] {
  const [was, is] = [fixedParts(before), fixedParts(after)];
  return Object.keys(is).filter((name) => JSON.stringify(was[name]) !== JSON.stringify(is[name]));
}
