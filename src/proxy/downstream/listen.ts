/**
 * Accepts sockets, terminates TLS, and makes each socket an HTTP/2 session (downstream.ts) or an HTTP/1.1 connection
 * (h1-connection.ts). One port takes h2, http/1.1 and clients without ALPN.
 */
import assert from "node:assert/strict";
import net from "node:net";
import { type Networks, networksOf, textOf, withoutMapping } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { cannotListen, Failure } from "../../base/failure.ts";
import { inSlices } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import type { ListenerConfig } from "../../ops/config/config.ts";
import { Client } from "../../upstream/context/client.ts";
import { type Identity, leavesAt } from "../../upstream/identity/asserted-identity.ts";
import { adopt, bind } from "../../upstream/net/bind.ts";
import { descriptorOf, type InheritedSocket } from "../../upstream/net/descriptors.ts";
import type { PassedHandle } from "../../upstream/net/handle-channel.ts";
import { type Decision, peek } from "../../upstream/net/peek.ts";
import type { Ends } from "../../upstream/net/proxy-protocol.ts";
import { type Keepalive, setKeepalive, wireOf } from "../../upstream/net/socket.ts";
import { closeAfterFlush } from "../../upstream/net/socket-end.ts";
import { keyOf, Sources } from "../admission/sources.ts";
import { plainHttpOnTls } from "../h1/h1-refusal.ts";
import { shakeHands } from "../tls/handshake.ts";
import type { Host, Hosts } from "../tls/sni-hosts.ts";
import type { Passthrough } from "../tunnel/passthrough.ts";
import { routeBySni } from "../tunnel/passthrough-router.ts";
import { Downstream, type DownstreamParts } from "./downstream.ts";
import type { H1Client } from "./h1-connection.ts";
import type { HandshakeQueue } from "./handshake-queue.ts";
import type { Intake } from "./intake.ts";
import { type ProxyProtocolRules, readProxyHeader } from "./proxy-protocol-listener.ts";

/**
 * Milliseconds that `cut` waits after it has ended all connections, before it closes their sockets. In this time, the
 * clients can read their last responses.
 */
const cutGraceMs = 50;

/**
 * Maximum number of listening sockets of other processes from which a listener accepts. Usually two processes share a
 * port, and the other process has passed on one socket. After a crash of the other process, a socket that it passed on
 * earlier may still be open here, too.
 */
export const mostPassedSockets = 4;

/** What a listener needs to pass sockets and requests to one cluster. */
export type Gate = DownstreamParts & {
  readonly h1: (socket: net.Socket, client: Client) => H1Client;
  /** Forwards the bytes of connections whose TLS ends at a backend. */
  readonly passthrough: Pick<Passthrough, "pass">;
};

export type ListenParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** By cluster name: what is needed to serve the clusters to which the listener, its hosts and its routes refer. */
  readonly gates: ReadonlyMap<string, Gate>;
  readonly handshakes: HandshakeQueue;
  /**
   * Decides whether a new client socket is accepted. All listeners share it, because file descriptors and memory belong
   * to the process.
   */
  readonly intake: Intake;
  readonly keepalive: () => Keepalive;
  readonly sockets?: SocketSource;
};

/**
 * How client sockets reach the process that serves them. pass: the listener gives each accepted socket to this function
 * instead of serving it; the function calls `leave` when a worker has the socket. "passed": the listener has no port,
 * and its `accept` is called with sockets of another process. Default: the listener serves what it accepts.
 */
export type SocketSource = { readonly pass: PassSocket } | "passed";

type PassSocket = (listener: string, socket: net.Socket, leave: () => void) => void;

type NegotiatedProtocol = {
  readonly alpn: "h2" | "http/1.1";
  readonly host?: Host;
  readonly identity?: Identity;
};

/** A client's socket, and what must be undone when it has closed. */
type Accepted = {
  readonly socket: net.Socket;
  /** The address for whose limit the socket counts; undefined: it counts for none. */
  source?: string;
  session?: Downstream | H1Client;
};

/** An "error" event without a listener would end the process (A52). The event "close" follows. */
function ignore(): void {}

/** Milliseconds between two checks of all sessions. Their deadlines are ten seconds and more. */
const checkMs = 1000;

export class Listener {
  readonly #config: ListenerConfig;
  /**
   * The hosts from which a client's SNI selects one; undefined for plain HTTP (on loopback only) and for passthrough.
   */
  readonly #hosts: Hosts | undefined;
  readonly #parts: ListenParts;
  readonly #proxyProtocol: ProxyProtocolRules;
  readonly #trustedForwarders: Networks;
  readonly #server: net.Server;
  /** Listening sockets of other processes. This process accepts from them until a successor takes them back. */
  readonly #passed = new Set<net.Server>();
  readonly #sockets = new Set<net.Socket>();
  /** Client sockets that belong to neither a session nor a Passthrough connection yet. */
  readonly #opening = new Set<net.Socket>();
  readonly #sources: Sources;
  readonly #downstreams = new Set<Downstream>();
  readonly #h1Clients = new Set<H1Client>();
  #stopChecks: () => void = () => {};
  #checkedAt = 0;
  #isDraining = false;
  /**
   * The listening port. If the kernel chose the port (0 in the configuration), the listener binds the same port again
   * after a failed reload.
   */
  #port: number;
  /** An inherited listening socket, which is used if it has this listener's address. */
  #inherited: InheritedSocket | undefined;
  /** Passes a client's socket on to a worker; undefined: this process serves its clients itself. */
  readonly #pass: PassSocket | undefined;
  handshakeErrors = 0;
  #onEmpty: () => void = () => {};

  constructor(
    config: ListenerConfig,
    {
      hosts,
      inherited,
    }: { readonly hosts: Hosts | undefined; readonly inherited: InheritedSocket | undefined },
    parts: ListenParts,
  ) {
    this.#config = config;
    this.#hosts = hosts;
    this.#port = config.address.port;
    this.#inherited = inherited;
    this.#parts = parts;
    const { mode, trustedCIDRs } = config.proxyProtocol;
    this.#proxyProtocol = { mode, trusted: networksOf(trustedCIDRs) };
    this.#trustedForwarders = networksOf(config.trustedForwarderCIDRs);
    this.#sources = new Sources(config.maxConnectionsPerSource);
    const { sockets } = parts;
    this.#pass = typeof sockets === "object" ? sockets.pass : undefined;
    this.#server = this.#createServer();
  }

  #createServer(): net.Server {
    const pass = this.#pass;
    const server = net.createServer({ pauseOnConnect: pass !== undefined, noDelay: true }, (socket) =>
      pass === undefined ? this.accept(socket) : this.#passOn(socket, pass),
    );
    server.on("error", (error) => {
      // An error before the server listens is returned by `bind` instead.
      if (server.listening) this.#contained(error);
    });
    return server;
  }

  /** Binds the listener. Returns its address, with the port that the kernel assigned. */
  async start(): Promise<string | Failure> {
    const { name, reusePort } = this.#config;
    const { host } = this.#config.address;
    const port = this.#port;
    if (this.#parts.sockets === "passed") {
      this.#check();
      return textOf({ host, port });
    }
    const error = (await this.#adopt()) ? undefined : await bind(this.#server, { host, port, reusePort });
    if (error !== undefined) return cannotListen(name, textOf({ host, port }), error);
    this.#stopChecks();
    this.#check();
    const bound = this.#server.address();
    const at = typeof bound === "object" && bound !== null ? bound : { address: host, port };
    this.#port = at.port;
    const address = at.address.includes(":") ? `[${at.address}]:${at.port}` : `${at.address}:${at.port}`;
    this.#parts.journal.write({ kind: "listener.opened", listener: name, address });
    return address;
  }

  /** Listens on the inherited socket if it has the right address, so that clients in its accept queue are not lost. */
  async #adopt(): Promise<boolean> {
    const socket = this.#inherited;
    this.#inherited = undefined;
    return socket !== undefined && this.#listenOn(this.#server, socket);
  }

  /** Makes `server` listen on `socket`. Returns false, and closes the socket, if it is not bound to this address. */
  #listenOn(server: net.Server, socket: InheritedSocket): Promise<boolean> {
    const where = typeof socket === "number" ? { fd: socket } : socket;
    return adopt(server, where, { host: this.#config.address.host, port: this.#port });
  }

  /**
   * Accepts clients from another process's listening socket, too. Returns false, and closes that socket, if it is not
   * bound to this listener's address, or if the listener already accepts from `mostPassedSockets` such sockets.
   */
  async acceptFrom(handle: PassedHandle): Promise<boolean> {
    const server = this.#createServer();
    if (!(await this.#listenOn(server, handle))) return false;
    const isTaken = this.#server.listening && this.#passed.size < mostPassedSockets;
    if (isTaken) this.#passed.add(server);
    else server.close();
    return isTaken;
  }

  /** The open listening sockets: this process's own, and those that other processes have passed to it. */
  get servers(): { readonly own: readonly net.Server[]; readonly passed: readonly net.Server[] } {
    return { own: this.#server.listening ? [this.#server] : [], passed: Array.from(this.#passed) };
  }

  /**
   * Closes the given listening sockets, which came from other processes. Called when a successor of those processes
   * accepts from the sockets, or when this listener closes.
   */
  release(servers: readonly net.Server[]): void {
    for (const server of servers) if (this.#passed.delete(server)) server.close();
  }

  /** The descriptor of the listening socket, which a successor process inherits; undefined: none. */
  get descriptor(): number | undefined {
    return descriptorOf(this.#server);
  }

  get socketCount(): number {
    return this.#sockets.size;
  }

  /** Number of connected clients that have neither a session nor a Passthrough connection yet. */
  get openingCount(): number {
    return this.#opening.size;
  }

  get fullestSourceShare(): number {
    return this.#sources.fullestShare;
  }

  get sessionCount(): { readonly h2: number; readonly h1: number } {
    return { h2: this.#downstreams.size, h1: this.#h1Clients.size };
  }

  close(): void {
    if (this.#parts.sockets === "passed") return;
    this.#server.close();
    this.release(Array.from(this.#passed));
  }

  /**
   * Drains all clients: HTTP/2 clients in two GOAWAY steps, HTTP/1.1 clients after their present response, and also
   * clients whose TLS handshake is still under way. Calls `onEmpty` when the last socket has closed.
   */
  drain(onEmpty: () => void = () => {}): void {
    this.#isDraining = true;
    this.#onEmpty = onEmpty;
    inSlices(this.#parts.clock, this.#sessions(), (one) => one.drain());
  }

  /** Drains the host's clients that have a certificate, so that the new client CA verifies them when they reconnect. */
  sendAway(host: string): void {
    inSlices(this.#parts.clock, this.#sessions(), ({ client }) => {
      if (client.host === host && client.identity.kind !== "none") client.sendAway();
    });
  }

  *#sessions(): Iterable<Downstream | H1Client> {
    yield* this.#h1Clients;
    yield* this.#downstreams;
  }

  get idle(): readonly (Downstream | H1Client)[] {
    return [...this.#downstreams, ...this.#h1Clients].filter(({ isIdle }) => isIdle);
  }

  /**
   * Ends all connections now. Closes the sockets only a moment later, because closing a socket with unread bytes resets
   * the connection. The last responses would then be lost (RFC 9112 §9.6).
   */
  cut(): void {
    this.#stopChecks();
    for (const downstream of Array.from(this.#downstreams)) downstream.cut();
    for (const one of Array.from(this.#h1Clients)) one.cut();
    this.#parts.clock.after(cutGraceMs, () => {
      for (const socket of this.#sockets) socket.destroySoon();
    });
  }

  /** Passes a socket on to a worker. Until the worker has the socket, it counts as a client socket of this process. */
  #passOn(socket: net.Socket, pass: PassSocket): void {
    const leave = this.#parts.intake.enter();
    if (leave === undefined) return void socket.destroy();
    socket.on("error", ignore);
    pass(this.#config.name, socket, leave);
  }

  /** Serves a client's new socket. */
  accept(socket: net.Socket): void {
    const accepted = this.#enter(socket);
    if (accepted === undefined) return;
    this.#opening.add(socket);
    readProxyHeader(socket, this.#proxyProtocol, this.#parts.clock, (ends) => this.#located(accepted, ends));
  }

  /** Counts a client's socket. Returns undefined, and closes the socket, if the process has too many. */
  #enter(socket: net.Socket): Accepted | undefined {
    // A socket above the limit is closed at once. If it stayed in the accept queue, it would take the next free
    // descriptor (A24).
    const leave = this.#parts.intake.enter();
    if (leave === undefined) {
      socket.destroy();
      return undefined;
    }
    const accepted: Accepted = { socket };
    this.#sockets.add(socket);
    // One listener does all that is to be done at the end, because each takes a hundred bytes for as long as the client
    // is connected.
    socket.on("close", () => {
      leave();
      this.#left(accepted);
    });
    socket.on("error", ignore);
    setKeepalive(socket, this.#parts.keepalive());
    return accepted;
  }

  #left({ socket, source, session }: Accepted): void {
    this.#opening.delete(socket);
    this.#sockets.delete(socket);
    if (source !== undefined) this.#sources.leave(source);
    if (session instanceof Downstream) this.#downstreams.delete(session);
    else if (session !== undefined) this.#h1Clients.delete(session);
    if (this.#sockets.size === 0) this.#onEmpty();
  }

  #located(accepted: Accepted, ends: Ends | Failure): void {
    const { socket } = accepted;
    if (ends instanceof Failure)
      return this.#turnAway(socket, withoutMapping(socket.remoteAddress ?? ""), ends.message);
    const { address } = ends.source;
    if (!this.#isBalancer(socket, address)) {
      if (!this.#sources.take(address))
        return this.#turnAway(socket, address, "too many connections from one source");
      accepted.source = address;
    }
    const { mode, name, cluster, routes } = this.#config;
    if (mode === "Passthrough") {
      // Without routes, all backends of the listener's cluster serve every server name.
      const all = routes.length > 0 ? routes : [{ serverNames: [], cluster, backends: [] }];
      return routeBySni(
        socket,
        { ends, routes: all, listener: name },
        (wanted) => {
          this.#opening.delete(socket);
          return this.#gateOf(wanted).passthrough;
        },
        this.#parts,
      );
    }
    detect(socket, this.#parts.clock, (protocol) => {
      const hosts = this.#hosts;
      if (hosts === undefined) {
        this.#opening.delete(socket);
        if (protocol === "tls") socket.destroy();
        else this.#serve(accepted, socket, ends, { alpn: protocol });
      } else if (protocol === "tls") this.#handshake(accepted, ends, hosts);
      else this.#refusePlain(socket);
    });
  }

  /**
   * True if the source is a trusted load balancer that sends no PROXY header. All clients of the balancer then have one
   * address, so a limit for that address would refuse clients that have only a few connections.
   */
  #isBalancer(socket: net.Socket, source: string): boolean {
    return this.#proxyProtocol.trusted.has(source) && source === withoutMapping(socket.remoteAddress ?? "");
  }

  /** Refuses plain HTTP on a TLS port. Ends the connection even if the client does not, to free its descriptor. */
  #refusePlain(socket: net.Socket): void {
    socket.end(plainHttpOnTls());
    closeAfterFlush(socket, this.#parts.clock);
  }

  #turnAway(socket: net.Socket, client: string, reason: string): void {
    socket.destroy();
    this.#parts.journal.write({ kind: "downstream_connection.refused", client, reason });
  }

  #handshake(accepted: Accepted, ends: Ends, hosts: Hosts): void {
    const { socket } = accepted;
    const { clock, handshakes } = this.#parts;
    const begin = (): void => {
      socket.off("close", leave);
      shakeHands(socket, hosts, clock, (shaken) => {
        this.#opening.delete(socket);
        if (!(shaken instanceof Error)) return this.#serve(accepted, shaken.socket, ends, shaken);
        this.handshakeErrors += 1;
        // The reason of OpenSSL. A client that has only gone away is not worth a line in the log.
        if ("reason" in shaken) this.#turnAway(socket, ends.source.address, `TLS: ${String(shaken.reason)}`);
      });
    };
    const handshake = { user: keyOf(ends.source.address), begin };
    const leave = (): void => handshakes.leave(handshake);
    socket.on("close", leave);
    handshakes.enter(handshake);
  }

  /** `socket`: the accepted socket, or the TLS socket on top of it. */
  #serve(accepted: Accepted, socket: net.Socket, ends: Ends, negotiated: NegotiatedProtocol): void {
    const { alpn, host, identity } = negotiated;
    const { source } = ends;
    const client = new Client({
      ...source,
      ends,
      listener: this.#config.name,
      alpn,
      isTls: host !== undefined,
      isTrustedForwarder: this.#trustedForwarders.has(source.address),
      ...(identity && { identity, leavesAt: leavesAt(identity, this.#parts.clock.wall()) }),
      ...(host && { host: host.name }),
      // The authority of requests is checked only on a listener with several hosts.
      ...(host && this.#hosts?.hasSeveral === true && { mayAsk: this.#hosts.judge(host) }),
    });
    const gate = this.#gateOf(host?.cluster ?? this.#config.cluster);
    const session = alpn === "h2" ? this.#serveH2(socket, client, gate) : this.#serveH1(socket, client, gate);
    accepted.session = session;
    if (this.#isDraining) session.drain();
  }

  /** A session belongs to one cluster from its first byte on. A request for a host of another cluster gets 421. */
  #gateOf(cluster: string): Gate {
    const gate = this.#parts.gates.get(cluster);
    assert(gate !== undefined, "A listener was opened without the way into its cluster");
    return gate;
  }

  #serveH2(socket: net.Socket, client: Client, gate: Gate): Downstream {
    const { journal } = gate;
    const downstream = new Downstream(client, gate, (owner) =>
      wireOf(socket, owner, { journal, origin: "client" }),
    );
    this.#downstreams.add(downstream);
    return downstream;
  }

  #serveH1(socket: net.Socket, client: Client, gate: Gate): H1Client {
    const one = gate.h1(socket, client);
    this.#h1Clients.add(one);
    return one;
  }

  #check(): void {
    const { clock } = this.#parts;
    const now = clock.now();
    // After a stall of the event loop, bytes of clients are still unread. Deadlines are then checked only a second
    // later, so that the stall does not count against the clients (F11).
    const isJudged = now - this.#checkedAt < 2 * checkMs;
    this.#checkedAt = now;
    const wall = clock.wall();
    const endWalk = inSlices(clock, this.#sessions(), (one) => {
      if (isJudged && one instanceof Downstream) one.check();
      if (one.client.leavesAt <= wall) one.client.sendAway();
    });
    const stopTimer = clock.after(checkMs, () => this.#check());
    this.#stopChecks = () => {
      endWalk();
      stopTimer();
    };
  }

  #contained(error: Error): void {
    this.#parts.journal.write({ kind: "internal.error", scope: "session", message: error.message });
  }
}

/** The protocol of a new socket, detected from its first bytes without consuming them, within a deadline (A22). */
export type Protocol = "tls" | "h2" | "http/1.1";

/** The record type of a TLS handshake (RFC 8446 §5.1). */
const tlsHandshake = 0x16;
/** The start of HTTP/2's connection preface. No HTTP/1.1 request line begins like this. */
const preface = "PRI * HTTP/2.0";

export function detect(socket: net.Socket, clock: Clock, done: (protocol: Protocol) => void): void {
  peek(socket, clock, look, (protocol) => {
    done(protocol);
    // A TLS socket is read by another object, which takes over its handle. Any other socket is read from now on.
    if (protocol !== "tls") socket.resume();
  });
}

function look(seen: Buffer): Decision<Protocol> | undefined {
  const verdict = protocolIn(seen);
  return verdict && { verdict, taken: 0 };
}

/** Returns undefined if there are too few bytes to decide. */
function protocolIn(chunk: Buffer): Protocol | undefined {
  if (chunk[0] === tlsHandshake) return "tls";
  const start = chunk.toString("latin1", 0, preface.length);
  if (start === preface) return "h2";
  return preface.startsWith(start) ? undefined : "http/1.1";
}
