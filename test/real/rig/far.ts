/**
 * A relay in front of an apiserver that delays every piece of data of a connection and keeps the order. It runs in user
 * space, because a kernel without netem cannot delay packets. Packet loss is added by iptables behind the relay.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import type { Random } from "../../support/random.ts";

/** One-way delay, at least and at most, in milliseconds. A round trip has two of these delays. */
export type Distance = { readonly leastMs: number; readonly mostMs: number };

export class Far {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;

  private constructor(server: Server, sockets: Set<Socket>, port: number) {
    this.#server = server;
    this.#sockets = sockets;
    this.url = `https://127.0.0.1:${port}`;
  }

  static async start(origin: string, distance: Distance, random: Random): Promise<Far> {
    const { hostname, port } = new URL(origin);
    const sockets = new Set<Socket>();
    const server = createServer((near) => {
      const away = connect({ host: hostname, port: Number(port), noDelay: true });
      carry(near, away, distance, random);
      carry(away, near, distance, random);
      for (const socket of [near, away]) {
        sockets.add(socket);
        socket.on("close", () => sockets.delete(socket));
      }
    });
    const { promise, resolve } = Promise.withResolvers<number>();
    server.listen(0, "127.0.0.1", () => {
      const bound = server.address();
      resolve(typeof bound === "object" && bound !== null ? bound.port : 0);
    });
    return new Far(server, sockets, await promise);
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/**
 * Forwards data from one socket to the other. As with TCP, no piece overtakes another: a piece with a short delay waits
 * for the one before it. All pieces share one timer, because two timers that are due at the same time may fire in
 * either order.
 */
function carry(from: Socket, to: Socket, { leastMs, mostMs }: Distance, random: Random): void {
  const under: { readonly due: number; readonly act: () => void }[] = [];
  const arrive = (): void => {
    for (let next = under[0]; next !== undefined && next.due <= Date.now(); next = under[0]) {
      under.shift();
      next.act();
    }
    const [next] = under;
    if (next !== undefined) setTimeout(arrive, Math.max(1, next.due - Date.now()));
  };
  const later = (act: () => void): void => {
    const due = Date.now() + leastMs + random.below(mostMs - leastMs + 1);
    under.push({ due, act });
    if (under.length === 1) setTimeout(arrive, due - Date.now());
  };
  from.setNoDelay(true);
  from.on("data", (chunk) => later(() => to.write(chunk)));
  from.on("end", () => later(() => to.end()));
  from.on("error", () => undefined); // close follows
  from.on("close", () => later(() => to.destroy()));
}
