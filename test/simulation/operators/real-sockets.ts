/**
 * The real sockets with which the process asks the apiservers itself. Virtual time must not pass while one of them waits
 * for bytes that are on their way, because on a busy machine the kernel may take a while to deliver them.
 */
import net from "node:net";
import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";

/** After so many turns of the event loop, the kernel gets a real ms in each turn. */
const quickTurns = 20;
const mostTurns = 120;

export class RealSockets {
  readonly #open = new Map<net.Socket, number>();
  readonly #connect = net.Socket.prototype.connect;
  readonly #answers: (port: number) => boolean;

  /** `answers`: true if the server at this port answers at present. */
  constructor(answers: (port: number) => boolean) {
    this.#answers = answers;
    const [open, connect] = [this.#open, this.#connect];
    const noting = function (this: net.Socket, ...given: readonly unknown[]): unknown {
      open.set(this, portIn(given));
      this.once("close", () => open.delete(this));
      return Reflect.apply(connect, this, given);
    };
    Object.assign(net.Socket.prototype, { connect: noting });
  }

  stop(): void {
    Object.assign(net.Socket.prototype, { connect: this.#connect });
  }

  /** Resolves when no socket waits for a server that answers, and no earlier than after `least` turns. */
  async settle(least: number): Promise<void> {
    for (let count = 0; count < mostTurns && (count < least || this.#isWaiting); count += 1)
      await (count < quickTurns ? turn() : pause(1));
  }

  get #isWaiting(): boolean {
    return this.#open.entries().some(([socket, port]) => isWaiting(socket) && this.#answers(port));
  }
}

/** True while a socket connects, shakes hands, or waits for a response. */
function isWaiting(socket: net.Socket): boolean {
  const isShaking = Reflect.get(socket, "secureConnecting") === true;
  const request: unknown = Reflect.get(socket, "_httpMessage");
  return !socket.destroyed && (socket.connecting || isShaking || (request ?? undefined) !== undefined);
}

/** Returns the port in the arguments of `connect`, which Node itself passes as a list in a list. */
function portIn(given: readonly unknown[]): number {
  const [first] = given.flat();
  return typeof first === "object" && first !== null ? Number(Reflect.get(first, "port")) : 0;
}
