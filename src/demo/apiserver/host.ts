/**
 * Serves an embedded apiserver on a TLS port of its own, like a real one: HTTP/2, and HTTP/1.1 for clients that choose
 * it.
 */
import type http from "node:http";
import tls from "node:tls";
import { wallClock } from "../../base/clock.ts";
import type { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import { FlushScheduler } from "../../h2/core/flush-scheduler.ts";
import type { Pair } from "../../pki/pki.ts";
import { wireOf } from "../../proxy/net/socket.ts";
import type { Apiserver } from "./apiserver.ts";
import type { Answer, Ask } from "./ask.ts";
import { bindLoopback } from "./bind.ts";
import { createH1Host } from "./h1-host.ts";
import { ApiserverSession } from "./session.ts";

export type HostOptions = {
  readonly apiserver: Pick<Apiserver, "handle" | "endWatches">;
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  readonly journal: Journal;
  /**
   * The loopback certificate of a real apiserver, presented to clients that use its server name (seed 003); default:
   * none.
   */
  readonly loopback?: Pair;
};

export class Host {
  readonly #server: tls.Server;
  readonly #h1: http.Server;
  readonly #sockets = new Set<tls.TLSSocket>();
  readonly #options: HostOptions;

  constructor(options: HostOptions) {
    this.#options = options;
    const { certificate, key, loopback } = options;
    const own = loopback && tls.createSecureContext({ cert: loopback.certificate, key: loopback.key });
    this.#server = tls.createServer({
      cert: certificate,
      key,
      ALPNProtocols: ["h2", "http/1.1"],
      SNICallback: (name, done) => done(null, name === "apiserver-loopback-client" ? own : undefined),
    });
    this.#h1 = createH1Host((ask, answer) => options.apiserver.handle(ask, answer));
    const turn = new FlushScheduler(wallClock);
    this.#server.on("secureConnection", (socket) => this.#accept(socket, turn));
    // A client that closes the socket during the handshake needs no handling.
    this.#server.on("tlsClientError", () => {});
  }

  /** Binds a loopback port, default: any free one, and returns it. */
  start(port = 0): Promise<number | Failure> {
    return bindLoopback(this.#server, port);
  }

  /** Ends its watches between two events, then every socket. */
  stop(): void {
    this.#server.close();
    this.#options.apiserver.endWatches();
    // After this turn's flush, which writes those ends.
    wallClock.soon(() => {
      for (const socket of this.#sockets) socket.destroySoon();
    });
  }

  #accept(socket: tls.TLSSocket, turn: FlushScheduler): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("close", () => this.#sockets.delete(socket));
    const { apiserver, journal } = this.#options;
    if (socket.alpnProtocol !== "h2") {
      this.#h1.emit("connection", socket);
      return;
    }
    const parts = {
      handle: (ask: Ask, answer: Answer) => apiserver.handle(ask, answer),
      clock: wallClock,
      turn,
    };
    void new ApiserverSession(parts, (owner) => wireOf(socket, owner, { journal, origin: "proxy" }));
  }
}
