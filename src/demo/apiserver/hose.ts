/**
 * A TCP hose in front of an embedded apiserver. Pinched, it is a black hole that needs no root: nothing comes out at
 * either end, no error and no FIN, and a new socket is taken by the kernel and never answered. Released, what waited
 * flows on, as TCP's retransmissions bring it when a real hole heals.
 */
import net from "node:net";
import type { Failure } from "../../base/failure.ts";
import { bindLoopback } from "./bind.ts";

export class Hose {
  readonly #targetPort: () => number;
  readonly #sockets = new Set<net.Socket>();
  /** Sockets that came while it was pinched: nobody has been dialled for them. */
  readonly #waiting = new Set<net.Socket>();
  /** What is to be told to whoever is at the other end of a socket that died while it was pinched. */
  readonly #untold = new Set<() => void>();
  readonly #server: net.Server;
  #isPinched = false;

  /** The port, on loopback, is looked up at each dial. */
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
    near.on("error", () => {}); // "close" follows and says all that matters
    if (this.#isPinched) this.#waiting.add(near);
    else this.#join(near);
  }

  #join(near: net.Socket): void {
    const far = net.connect({ port: this.#targetPort(), host: "127.0.0.1", noDelay: true });
    // Refused: the asker is refused too, as far as a socket that is open already can be.
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

  /** A paused socket still hears FIN and RST; a hole hides them. */
  #tell(tell: () => void): void {
    if (this.#isPinched) this.#untold.add(tell);
    else tell();
  }
}
