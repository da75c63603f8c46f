/**
 * node:http's parser delivers every head of one read, up to 64 KiB of them, even for a destroyed socket. 4 KiB of objects
 * for each stay until the socket is closed, which is after the current tick: 2,000 heads for each socket that is read in
 * the tick.
 */
import type { Socket } from "node:net";

/**
 * Stops parsing what this socket has sent, because it ends anyway. A parser has no public way to stop. Answering a head
 * as if another protocol began behind it, as for an Upgrade, makes it read no further (_http_common.js,
 * parserOnHeadersComplete).
 */
export function stopParsing(socket: Socket): void {
  const parser: unknown = Reflect.get(socket, "parser");
  if (typeof parser === "object" && parser !== null) Reflect.set(parser, "onIncoming", () => 2);
}
