/**
 * A TCP relay in front of an embedded apiserver. While the relay is blocked, neither end gets data, an error or a FIN.
 * Once it is unblocked, the buffered data is delivered, as after a real network outage.
 */
import net from "node:net";
import type { Failure } from "../../src/base/failure.ts";
import { bindLoopback } from "./loopback-server.ts";

export class Relay {
  readonly #targetPort: number;
  readonly #sockets = new Set<net.Socket>();
  readonly #acceptedWhileBlocked = new Set<net.Socket>();
  /**
   * Functions that run once the relay is unblocked. Each closes a connection whose other half was lost while the relay
   * was blocked.
   */
  readonly #deferred = new Set<() => void>();
  readonly #server: net.Server;
  #isBlocked = false;

  constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#server = net.createServer({ pauseOnConnect: true, noDelay: true }, (near) => this.#accept(near));
  }

  start(port = 0): Promise<number | Failure> {
    return bindLoopback(this.#server, port);
  }

  block(isBlocked: boolean): void {
    this.#isBlocked = isBlocked;
    for (const socket of this.#sockets) {
      if (isBlocked) socket.pause();
      else socket.resume();
    }
    if (isBlocked) return;
    for (const near of this.#acceptedWhileBlocked) this.#join(near);
    this.#acceptedWhileBlocked.clear();
    for (const run of this.#deferred) run();
    this.#deferred.clear();
  }

  stop(): void {
    this.#server.close();
    for (const socket of [...this.#sockets, ...this.#acceptedWhileBlocked]) socket.destroy();
  }

  #accept(near: net.Socket): void {
    near.on("error", () => {}); // Ignored, because "close" follows.
    if (this.#isBlocked) this.#acceptedWhileBlocked.add(near);
    else this.#join(near);
  }

  #join(near: net.Socket): void {
    const far = net.connect({ port: this.#targetPort, host: "127.0.0.1", noDelay: true });
    // If the apiserver refuses the relay's connection, the relay resets the client's connection. The client's
    // connection can no longer be refused, because the relay has already accepted it.
    far.on("error", () => this.#unlessBlocked(() => near.resetAndDestroy()));
    this.#pour(near, far);
    this.#pour(far, near);
  }

  #pour(from: net.Socket, to: net.Socket): void {
    this.#sockets.add(from);
    from.on("data", (chunk) => {
      if (!to.write(chunk)) from.pause();
    });
    to.on("drain", () => {
      if (!this.#isBlocked) from.resume();
    });
    from.on("close", () => {
      this.#sockets.delete(from);
      this.#unlessBlocked(() => to.destroySoon());
    });
    from.resume();
  }

  /**
   * Calls `run`, which closes or resets a connection. While the relay is blocked, defers this call until it is
   * unblocked, because in a network outage neither end receives the other's FIN or RST.
   */
  #unlessBlocked(run: () => void): void {
    if (this.#isBlocked) this.#deferred.add(run);
    else run();
  }
}
