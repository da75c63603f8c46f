/**
 * Step 1 of 7: who comes, over what? Accepts sockets, ends TLS, and makes each an HTTP/2 session (downstream.ts) or
 * an HTTP/1.1 one (h1.ts). On one port: h2, http/1.1 and no ALPN at all. Next: classify, called by serve.
 */
import { readFileSync } from "node:fs";
import net from "node:net";
import tls from "node:tls";
import type { Networks } from "../address.ts";
import type { Clock } from "../clock.ts";
import { Failure, failureFrom } from "../failure.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import { Client } from "./client.ts";
import { detect } from "./detect.ts";
import { Downstream, type DownstreamParts } from "./downstream.ts";
import { plainHttpOnTls } from "./h1-refusal.ts";
import { type Keepalive, setKeepalive, wireOf } from "./socket.ts";

export type ListenerOptions = {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** The current serving context and the options that go with it; undefined is plain text, for loopback only. */
  readonly tls:
    | { readonly context: () => tls.SecureContext; readonly options: tls.SecureContextOptions }
    | undefined;
  readonly trustedForwarders: Networks;
  readonly keepalive: Keepalive;
};

export type ListenParts = DownstreamParts & {
  /** Takes over a socket, and returns how to let it go. */
  readonly h1: (socket: net.Socket, client: Client) => () => void;
  readonly clock: Clock;
  readonly journal: Journal;
};

/** Deadlines of ten seconds and more need no finer look. */
const checkMs = 1000;

/** Descriptors are the process's, so all its listeners count together. */
const mostSockets = Math.floor(openFilesLimit() * limits.connectionShare);
let sockets = 0;

export class Listener {
  readonly #options: ListenerOptions;
  readonly #parts: ListenParts;
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  readonly #downstreams = new Set<Downstream>();
  /** HTTP/1.1 sockets, by how each is let go. */
  readonly #h1Drains = new Set<() => void>();
  #stopChecks: () => void = () => {};
  #checkedAt = 0;
  /** The port that it got when it asked for any; once bound it comes back to the same. */
  #port: number;
  handshakeErrors = 0;
  /** Called each time that the last socket has gone. */
  onEmpty: () => void = () => {};

  constructor(options: ListenerOptions, parts: ListenParts) {
    this.#options = options;
    this.#port = options.port;
    this.#parts = parts;
    this.#server = net.createServer({ pauseOnConnect: false, noDelay: true }, (socket) =>
      this.#accept(socket),
    );
  }

  /** Binds, and returns the address with the port that it got. */
  async start(): Promise<string | Failure> {
    const { name, host } = this.#options;
    const port = this.#port;
    const failure = await new Promise<Failure | undefined>((resolve) => {
      this.#server.once("error", (error) => resolve(failureFrom(error, "proxy")));
      this.#server.listen({ host, port }, () => resolve(undefined));
    });
    if (failure !== undefined)
      return new Failure("bad-request", "proxy", `Cannot listen on ${host}:${port}: ${failure.message}`);
    this.#server.on("error", (error) => this.#contained(error));
    this.#stopChecks();
    this.#check();
    const bound = this.#server.address();
    const at = typeof bound === "object" && bound !== null ? bound : { address: host, port };
    this.#port = at.port;
    const address = at.address.includes(":") ? `[${at.address}]:${at.port}` : `${at.address}:${at.port}`;
    this.#parts.journal.write({ kind: "listener.opened", listener: name, address });
    return address;
  }

  get socketCount(): number {
    return this.#sockets.size;
  }

  get sessionCount(): { readonly h2: number; readonly h1: number } {
    return { h2: this.#downstreams.size, h1: this.#h1Drains.size };
  }

  /** Accepts nothing more; what is open stays. */
  close(): void {
    this.#server.close();
  }

  /** Sends every HTTP/2 client away in two steps, every HTTP/1.1 one with its present answer. */
  drain(): void {
    for (const drain of Array.from(this.#h1Drains)) drain();
    for (const downstream of this.#downstreams) downstream.drain();
  }

  /** Ends everything now. */
  cut(): void {
    this.#stopChecks();
    for (const downstream of Array.from(this.#downstreams)) downstream.cut();
    for (const socket of this.#sockets) socket.destroySoon();
  }

  #accept(socket: net.Socket): void {
    // Closed at once rather than left in the kernel's queue, where it would take the place of one that leaves (A24).
    if (sockets >= mostSockets) return void socket.destroy();
    sockets += 1;
    socket.on("close", () => {
      sockets -= 1;
    });
    this.#sockets.add(socket);
    socket.on("close", () => {
      this.#sockets.delete(socket);
      if (this.#sockets.size === 0) this.onEmpty();
    });
    // A socket without a listener for "error" takes the process down with it (A52).
    socket.on("error", () => {});
    setKeepalive(socket, this.#options.keepalive);
    detect(socket, this.#parts.clock, (spoken) => {
      if (this.#options.tls === undefined) {
        if (spoken === "tls") socket.destroy();
        else this.#serve(socket, spoken, false);
      } else if (spoken === "tls") this.#handshake(socket, this.#options.tls);
      else socket.end(plainHttpOnTls());
    });
  }

  #handshake(socket: net.Socket, { context, options }: NonNullable<ListenerOptions["tls"]>): void {
    const secure = new tls.TLSSocket(socket, {
      ...options,
      isServer: true,
      secureContext: context(),
      ALPNProtocols: ["h2", "http/1.1"],
      // Asked for so that it can be refused by name; nothing is derived from it, so resumption carries nothing over.
      requestCert: true,
      rejectUnauthorized: false,
    });
    const stopTimer = this.#parts.clock.after(limits.handshakeMs, () => secure.destroy());
    let isDone = false;
    secure.on("error", () => {
      if (!isDone) this.handshakeErrors += 1;
    });
    secure.once("close", () => {
      stopTimer();
      socket.destroy();
    });
    secure.once("secure", () => {
      isDone = true;
      stopTimer();
      this.#serve(secure, secure.alpnProtocol === "h2" ? "h2" : "http/1.1", true);
    });
  }

  #serve(socket: net.Socket, alpn: "h2" | "http/1.1", isTls: boolean): void {
    const address = withoutMapping(socket.remoteAddress ?? "");
    const client = new Client({
      address,
      port: socket.remotePort ?? 0,
      listener: this.#options.name,
      alpn,
      isTls,
      isTrustedForwarder: this.#options.trustedForwarders.has(address),
      hasCertificate: socket instanceof tls.TLSSocket && socket.getPeerX509Certificate() !== undefined,
    });
    if (alpn === "h2") this.#serveH2(socket, client);
    else this.#serveH1(socket, client);
  }

  #serveH2(socket: net.Socket, client: Client): void {
    const { journal } = this.#parts;
    const downstream = new Downstream(client, this.#parts, (owner) =>
      wireOf(socket, owner, { journal, origin: "client" }),
    );
    this.#downstreams.add(downstream);
    socket.once("close", () => this.#downstreams.delete(downstream));
  }

  #serveH1(socket: net.Socket, client: Client): void {
    const drain = this.#parts.h1(socket, client);
    this.#h1Drains.add(drain);
    socket.once("close", () => this.#h1Drains.delete(drain));
  }

  /** One timer for all sessions of the listener: deadlines need no better than a second. */
  #check(): void {
    const now = this.#parts.clock.now();
    // After a stall of our own, what clients sent in time is still to be read: it is judged a second later (F11).
    if (now - this.#checkedAt < 2 * checkMs) for (const downstream of this.#downstreams) downstream.check();
    this.#checkedAt = now;
    this.#stopChecks = this.#parts.clock.after(checkMs, () => this.#check());
  }

  #contained(error: Error): void {
    this.#parts.journal.write({ kind: "fault.contained", ring: "session", message: error.message });
  }
}

/** "::ffff:10.0.0.1" is 10.0.0.1 on a dual-stack socket. */
function withoutMapping(address: string): string {
  return address.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
}

/** Linux tells in /proc; elsewhere POSIX' usual soft limit is assumed. */
function openFilesLimit(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return Number(soft ?? 1024);
  } catch {
    return 1024; // no /proc on this system
  }
}
