/**
 * A TCP relay in front of an embedded apiserver that can drop all traffic without root privileges. While pinched,
 * nothing leaves at either end, neither an error nor a FIN, and the kernel accepts new sockets that are never answered.
 * When released, the buffered data flows on, like TCP's retransmissions after a real outage.
 */
import net from "node:net";
import type { Failure } from "../../base/failure.ts";
import { bindLoopback } from "./bind.ts";

export class Hose {
  readonly #targetPort: () => number;
  readonly #sockets = new Set<net.Socket>();
  /** Sockets accepted while pinched, for which no upstream dial was made. */
  readonly #waiting = new Set<net.Socket>();
  /** Closes and resets, deferred while pinched, of sockets whose other end has ended. */
  readonly #untold = new Set<() => void>();
  readonly #server: net.Server;
  #isPinched = false;

  /** The loopback port is looked up at each dial. */
  constructor(targetPort: () => number) {
    this.#targetPort = targetPort;
    this.#server = net.createServer({ pauseOnConnect: true, noDelay: true }, (near) => this.#accept(near));
  }

  /** Binds a free loopback port and returns it. */
  start(): Promise<number | Failure> {
    return bindLoopback(this.#server);
  }

  pinch(): void {
    this.#isPinched = true;
    for (const socket of this.#sockets) socket.pause();
  }

  release(): void {
    this.#isPinched = false;
    for (const socket of this.#sockets) socket.resume();
    for (const near of this.#waiting) this.#join(near);
    this.#waiting.clear();
    for (const tell of this.#untold) tell();
    this.#untold.clear();
  }

  stop(): void {
    this.#server.close();
    for (const socket of [...this.#sockets, ...this.#waiting]) socket.destroy();
  }

  #accept(near: net.Socket): void {
    near.on("error", () => {}); // "close" follows and is handled
    if (this.#isPinched) this.#waiting.add(near);
    else this.#join(near);
  }

  #join(near: net.Socket): void {
    const far = net.connect({ port: this.#targetPort(), host: "127.0.0.1", noDelay: true });
    // Refused: the client's socket is already open, so it is reset.
    far.on("error", () => this.#tell(() => near.resetAndDestroy()));
    this.#pour(near, far);
    this.#pour(far, near);
  }

  #pour(from: net.Socket, to: net.Socket): void {
    this.#sockets.add(from);
    from.on("data", (chunk) => {
      if (!to.write(chunk)) from.pause();
    });
    to.on("drain", () => {
      if (!this.#isPinched) from.resume();
    });
    from.on("close", () => {
      this.#sockets.delete(from);
      this.#tell(() => to.destroySoon());
    });
    from.resume();
  }

  /** A paused socket still receives FIN and RST; an outage must hide them. */
  #tell(tell: () => void): void {
    if (this.#isPinched) this.#untold.add(tell);
    else tell();
  }
}
