/** Authorizes each request to the API, except for the page's own files, which contain no data. */
import type { IncomingMessage } from "node:http";
import type { Admitted, Authorization } from "../authorization/authorization.ts";
import type { Reply, Routes } from "../http/reply.ts";

export type Guard = {
  /** Returns the user, or a refusal; undefined: the path is public. */
  admit(request: IncomingMessage, path: string): Promise<Admitted | Reply | undefined>;
};

/** `open` is public: a browser loads the page before its user can enter a token. */
export function guardOf(authorization: Pick<Authorization, "admit">, open: Routes): Guard {
  return {
    async admit({ method, headers, socket }, path) {
      const isRead = method === "GET" || method === "HEAD";
      if (isRead && open(path) !== undefined) return undefined;
      return authorization.admit({
        // Any other method counts as POST: it is refused later, after authorization.
        verb: isRead ? "get" : "post",
        path,
        authorization: headers.authorization,
        address: socket.remoteAddress ?? "",
      });
    },
  };
}
