/** Serves an embedded apiserver on a TLS socket of its own, HTTP/2 only, as the proxy dials its backends. */
import tls from "node:tls";
import { wallClock } from "../clock.ts";
import { type Failure, failureFrom } from "../failure.ts";
import { Turn } from "../h2/turn.ts";
import type { Journal } from "../journal.ts";
import { wireOf } from "../proxy/socket.ts";
import type { Apiserver } from "./apiserver.ts";
import { ApiserverSession } from "./session.ts";

export type HostOptions = {
  readonly apiserver: Apiserver;
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  readonly journal: Journal;
};

export class Host {
  readonly #server: tls.Server;
  readonly #sockets = new Set<tls.TLSSocket>();
  readonly #options: HostOptions;

  constructor(options: HostOptions) {
    this.#options = options;
    const { certificate, key } = options;
    this.#server = tls.createServer({ cert: certificate, key, ALPNProtocols: ["h2"] });
    const turn = new Turn(wallClock);
    this.#server.on("secureConnection", (socket) => this.#accept(socket, turn));
    // A client that gives up in mid-handshake is its own affair.
    this.#server.on("tlsClientError", () => {});
  }

  /** Binds a free loopback port and returns it. */
  async start(): Promise<number | Failure> {
    const failure = await new Promise<Failure | undefined>((resolve) => {
      this.#server.once("error", (error) => resolve(failureFrom(error, "proxy")));
      this.#server.listen(0, "127.0.0.1", () => resolve(undefined));
    });
    if (failure !== undefined) return failure;
    const bound = this.#server.address();
    return typeof bound === "object" && bound !== null ? bound.port : 0;
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

  #accept(socket: tls.TLSSocket, turn: Turn): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("close", () => this.#sockets.delete(socket));
    const { apiserver, journal } = this.#options;
    const parts = { handle: apiserver.handle.bind(apiserver), clock: wallClock, turn };
    void new ApiserverSession(parts, (owner) => wireOf(socket, owner, { journal, origin: "proxy" }));
  }
}
