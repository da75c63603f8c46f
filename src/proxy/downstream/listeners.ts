/**
 * All configured listeners. A changed configuration opens new listeners, closes removed ones, and leaves the others
 * alone. If a new listener cannot be opened, all listeners stay as they were (D10).
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import type { ListenerConfig } from "../../ops/config/config.ts";
import { Descriptors } from "../../upstream/net/descriptors.ts";
import type { Keepalive } from "../../upstream/net/socket.ts";
import { type Expiry, Hosts } from "../tls/sni-hosts.ts";
import type { Downstream } from "./downstream.ts";
import type { H1Client } from "./h1-connection.ts";
import { HandshakeQueue } from "./handshake-queue.ts";
import type { Intake } from "./intake.ts";
import { type Gate, Listener, type SocketSource } from "./listen.ts";

/** Milliseconds between attempts to bind a port that another process took while a reload failed. */
const rebindMs = 1000;

type Opened = {
  readonly config: ListenerConfig;
  readonly listener: Listener;
  readonly hosts: Hosts | undefined;
  readonly address: string;
};

export type ListenersParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Returns what a listener needs to serve a cluster. A listener keeps the result as long as it has clients. */
  readonly gateOf: (cluster: string) => Gate;
  readonly intake: Intake;
  /** Returns the kernel's keepalive times for new connections of clients. */
  readonly keepalive: () => Keepalive;
  /**
   * How client sockets reach the workers. Set in a process with workers, and in a worker; default: there are no
   * workers.
   */
  readonly sockets?: SocketSource | undefined;
};

export class Listeners {
  readonly #parts: ListenersParts;
  /** The queue of TLS handshakes. All listeners share it, because one event loop computes all handshakes. */
  readonly #handshakes: HandshakeQueue;
  readonly #inherited: Descriptors;
  #opened: readonly Opened[] = [];
  #hasOpened = false;
  #pastHandshakeErrors = 0;
  readonly #draining = new Set<Listener>();
  /**
   * Listeners that could not be bound again after a failed reload. Each one's function cancels the next attempt to bind
   * it.
   */
  readonly #lost = new Map<Listener, () => void>();

  constructor(parts: ListenersParts, inherited = new Descriptors()) {
    this.#parts = parts;
    this.#handshakes = new HandshakeQueue(parts.clock);
    this.#inherited = inherited;
  }

  /** The bound address of each listener by name, such as "127.0.0.1:8443". */
  get addresses(): ReadonlyMap<string, string> {
    return new Map(this.#opened.map(({ config, address }) => [config.name, address]));
  }

  /** Descriptors of the listening sockets that a successor process can inherit, by the listener's name. */
  get descriptors(): ReadonlyMap<string, number> {
    return new Map(
      this.#opened.flatMap(({ config, listener: { descriptor } }) =>
        descriptor === undefined ? [] : [[config.name, descriptor] as const],
      ),
    );
  }

  /** All listeners in use, by name. */
  get byName(): ReadonlyMap<string, Listener> {
    return new Map(this.#opened.map(({ config, listener }) => [config.name, listener]));
  }

  /** Number of client sockets. */
  get socketCount(): number {
    return this.#all().reduce((sum, { socketCount }) => sum + socketCount, 0);
  }

  get sessionCount(): { readonly h2: number; readonly h1: number } {
    const counts = this.#all().map((listener) => listener.sessionCount);
    return {
      h2: counts.reduce((sum, { h2 }) => sum + h2, 0),
      h1: counts.reduce((sum, { h1 }) => sum + h1, 0),
    };
  }

  /** Number of connected clients that have neither a session nor a Passthrough connection yet. */
  get openingCount(): number {
    return this.#all().reduce((sum, { openingCount }) => sum + openingCount, 0);
  }

  /** The clients without an open request, most recently idle first. */
  get idle(): readonly (Downstream | H1Client)[] {
    return this.#all()
      .flatMap((listener) => listener.idle)
      .toSorted((a, b) => b.idleSince - a.idleSince);
  }

  /** Connections of one client address as a share of a listener's limit, for the address with the highest share. */
  get fullestSourceShare(): number {
    return Math.max(0, ...this.#all().map((listener) => listener.fullestSourceShare));
  }

  get handshakeErrors(): number {
    return this.#all().reduce((sum, listener) => sum + listener.handshakeErrors, this.#pastHandshakeErrors);
  }

  /** Names of the listeners that cannot accept clients, because another process has bound their port. */
  get lost(): readonly string[] {
    return this.#opened.filter(({ listener }) => this.#lost.has(listener)).map(({ config }) => config.name);
  }

  /** The certificates in use, with the purpose "serving", or "client-ca" for a CA that verifies client certificates. */
  get certificates(): readonly Expiry[] {
    return this.#opened.flatMap(({ hosts }) => hosts?.certificates ?? []);
  }

  /** Serves a socket that the parent of this worker has accepted. Closes it if there is no such listener any more. */
  accept(name: string, socket: Socket): void {
    const opened = this.#opened.find(({ config }) => config.name === name);
    if (opened === undefined) socket.destroy();
    else opened.listener.accept(socket);
  }

  /** Opens and closes listeners until they match `wanted`. On a Failure, nothing has changed. */
  async reconcile(wanted: readonly ListenerConfig[]): Promise<Failure | undefined> {
    const stay = this.#opened.filter(({ config }) => wanted.some((one) => isSame(one, config)));
    const leave = this.#opened.filter((opened) => !stay.includes(opened));
    // A changed listener usually keeps its port, so its old socket must be closed before the new one is bound.
    for (const { listener } of leave) listener.close();
    const come = wanted.filter((one) => !stay.some(({ config }) => isSame(one, config)));
    const newcomers = await this.#openAll(come);
    if (newcomers instanceof Failure) {
      await Promise.all(leave.map((opened) => this.#reopen(opened)));
      return newcomers;
    }
    for (const opened of leave) this.#drain(opened);
    this.#opened = [...stay, ...newcomers];
    return undefined;
  }

  close(): void {
    for (const listener of this.#all()) listener.close();
  }

  drain(): void {
    for (const listener of this.#all()) listener.drain();
  }

  cut(): void {
    for (const { hosts, listener } of this.#opened) {
      hosts?.stop();
      this.#forgetLost(listener);
    }
    for (const listener of this.#all()) {
      listener.close();
      listener.cut();
    }
  }

  #all(): readonly Listener[] {
    return [...this.#opened.map(({ listener }) => listener), ...this.#draining];
  }

  #drain({ listener, hosts }: Opened): void {
    hosts?.stop();
    this.#forgetLost(listener);
    const forget = (): void => {
      this.#draining.delete(listener);
      // The count is kept after the listener is closed, because the metric is a counter and must never fall.
      this.#pastHandshakeErrors += listener.handshakeErrors;
      listener.cut();
    };
    if (listener.socketCount === 0) return forget();
    this.#draining.add(listener);
    listener.drain(forget);
  }

  /** Opens a listener again if its replacement could not be opened. Retries while another process has the port. */
  async #reopen(opened: Opened): Promise<void> {
    const { listener, config } = opened;
    const outcome = await listener.start();
    const isWanted = this.#opened.includes(opened);
    if (!(outcome instanceof Failure)) {
      this.#lost.delete(listener);
      if (!isWanted) listener.close();
    } else if (isWanted) {
      if (!this.#lost.has(listener))
        this.#parts.journal.write({ kind: "listener.lost", listener: config.name, reason: outcome.message });
      const again = (): void => void this.#reopen(opened);
      this.#lost.set(listener, this.#parts.clock.after(rebindMs, again));
    }
  }

  #forgetLost(listener: Listener): void {
    this.#lost.get(listener)?.();
    this.#lost.delete(listener);
  }

  async #openAll(wanted: readonly ListenerConfig[]): Promise<readonly Opened[] | Failure> {
    const outcomes = await Promise.all(wanted.map((one) => this.#open(one)));
    const opened = outcomes.filter((outcome): outcome is Opened => !(outcome instanceof Failure));
    const unserved = opened
      .map(({ config, hosts }) => unservedIn(config, hosts))
      .filter((one) => one !== undefined);
    // At the start, a listener without a usable certificate costs the other listeners nothing: it opens, and serves when
    // its certificate is usable. A reload with such a listener is refused.
    const isTolerated = unserved.length < opened.length;
    const failure =
      outcomes.find((outcome) => outcome instanceof Failure) ?? (isTolerated ? undefined : unserved[0]);
    if (failure === undefined) {
      this.#hasOpened = true;
      return opened;
    }
    for (const { listener, hosts } of opened) {
      hosts?.stop();
      listener.close();
      listener.cut();
    }
    return failure;
  }

  #gatesOf(config: ListenerConfig): ReadonlyMap<string, Gate> {
    const { cluster, hosts, routes } = config;
    const names = [cluster, ...hosts.map((host) => host.cluster), ...routes.map((route) => route.cluster)];
    return new Map(names.map((name) => [name, this.#parts.gateOf(name)]));
  }

  async #open(config: ListenerConfig): Promise<Opened | Failure> {
    const { name } = config;
    const { clock, journal, intake, keepalive, sockets } = this.#parts;
    const onOtherCa = (host: string): void => listener?.sendAway(host);
    // `listener` is undefined while the hosts are being loaded. A host's client CA may already change in that time.
    let listener: Listener | undefined;
    const hosts = await Hosts.load(config, { clock, journal, onOtherCa });
    const unserved = unservedIn(config, hosts);
    if (unserved !== undefined && this.#hasOpened) {
      hosts?.stop();
      return unserved;
    }
    listener = new Listener(
      config,
      { hosts, inherited: this.#inherited.take(name) },
      {
        clock,
        journal,
        gates: this.#gatesOf(config),
        handshakes: this.#handshakes,
        intake,
        keepalive,
        ...(sockets && { sockets }),
      },
    );
    const address = await listener.start();
    if (!(address instanceof Failure)) return { config, listener, hosts, address };
    hosts?.stop();
    return address;
  }
}

/** Returns why no client can be served on the listener; undefined: a host has a certificate, or there is no TLS. */
function unservedIn(config: ListenerConfig, hosts: Hosts | undefined): Failure | undefined {
  const { failure } = hosts ?? {};
  if (failure === undefined) return undefined;
  return new Failure(
    failure.code,
    failure.origin,
    `listener ${config.name}: ${failure.message}`,
    failure.cause,
  );
}

function isSame(one: ListenerConfig, other: ListenerConfig): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
