/** Asks for each request to the API whether it may be: all but for the page's own files, which say nothing of anybody. */
import type { IncomingMessage } from "node:http";
import type { Admitted, Authorization } from "../authorization/authorization.ts";
import type { Reply, Routes } from "../http/reply.ts";

export type Guard = {
  /** Who asks, or what they are answered instead; undefined: it is for everybody. */
  admit(request: IncomingMessage, path: string): Promise<Admitted | Reply | undefined>;
};

/** A browser asks for the page before anybody could give it a token. */
export function guardOf(authorization: Pick<Authorization, "admit">, open: Routes): Guard {
  return {
    async admit({ method, headers, socket }, path) {
      const isRead = method === "GET" || method === "HEAD";
      if (isRead && open(path) !== undefined) return undefined;
      return authorization.admit({
        // Whatever else it is, it is refused: but not told so to everybody.
        verb: isRead ? "get" : "post",
        path,
        authorization: headers.authorization,
        address: socket.remoteAddress ?? "",
      });
    },
  };
}
