/**
 * Who may ask at a port that is not for Kubernetes clients, and how much at once: whoever reaches it must neither keep a
 * kubelet's probe out nor fill the heap.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { limits } from "../../base/limits.ts";
import { stopParsing } from "../../proxy/net/stop-parsing.ts";

/** Beyond the limit the oldest goes, not the newest: idle sockets must not be able to keep a kubelet's probe out. */
export function keepNewest(server: Server): void {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    const [oldest] = sockets;
    if (sockets.size > limits.adminSockets) oldest?.destroy();
  });
}

const waiting = new WeakMap<Socket, number>();

/** Is it one of the few that its socket may have unanswered? Else the socket ends, and with it what waits there. */
export function mayAsk({ socket }: IncomingMessage, response: ServerResponse): boolean {
  const count = waiting.get(socket) ?? 0;
  if (count >= limits.adminWaiting) {
    stopParsing(socket);
    socket.destroy();
    return false;
  }
  waiting.set(socket, count + 1);
  response.once("close", () => waiting.set(socket, (waiting.get(socket) ?? 0) - 1));
  return true;
}
