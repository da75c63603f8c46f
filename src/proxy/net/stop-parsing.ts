/**
 * node:http's parser hands over every head that one read has brought, up to 64 KiB of them, also those of a socket that is
 * destroyed, and 4 KiB of objects of each stay until the socket is closed, after the turn: 2,000 heads a socket, of all that
 * can be read in one turn.
 */
import type { Socket } from "node:net";

/**
 * No more is parsed of what this socket has sent, for it ends anyway. A parser has no public way to stop; to say of a head that
 * another protocol begins behind it, as for an Upgrade, makes it read no further (_http_common.js, parserOnHeadersComplete).
 */
export function stopParsing(socket: Socket): void {
  const parser: unknown = Reflect.get(socket, "parser");
  if (typeof parser === "object" && parser !== null) Reflect.set(parser, "onIncoming", () => 2);
}
