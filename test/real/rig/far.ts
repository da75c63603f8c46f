/**
 * Distance: a relay before an apiserver that holds every piece of a connection for a while, in order, and lets it go
 * on. In user space, since a kernel without netem cannot delay packets; what is lost is lost by iptables behind it.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import type { Random } from "../../support/random.ts";

/** One way. A round trip takes two of them. */
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
 * Nothing overtakes: a piece with a short way waits for the one before it, as TCP would make it. One timer for all of
 * them, since two that are due at once may run in either order.
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
