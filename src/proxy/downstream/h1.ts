/**
 * Parses HTTP/1.1 requests with node:http, which never listens: sockets come from `listen.ts`. Each request becomes an
 * exchange like any other; Upgrades go to UpgradeHandler. Step 1 of 7 for HTTP/1.1. Next: kube/request-info.ts.
 */
import http from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { limits } from "../../base/limits.ts";
import type { Client } from "../context/client.ts";
import { upgradesOf } from "../h1/h1-request.ts";
import { type H1Parts, Http1Connection } from "./h1-connection.ts";

/** One socket, as its listener uses it. */
export type H1Client = Pick<Http1Connection, "client" | "isIdle" | "idleSince" | "drain" | "cut">;

/** Takes over sockets that speak HTTP/1.1. */
export function createH1(parts: H1Parts): (socket: Socket, client: Client) => H1Client {
  const connections = new WeakMap<Duplex, Http1Connection>();
  // Node has this setting for the whole process only.
  http.setMaxIdleHTTPParsers(limits.h1IdleParsers);
  const server = http.createServer({
    maxHeaderSize: limits.headerListBytes,
    // node's own deadlines need a listening server; Http1Connection has them. node's Host check answers without a Status.
    requestTimeout: 0,
    headersTimeout: 0,
    keepAliveTimeout: 0,
    requireHostHeader: false,
    insecureHTTPParser: false,
    shouldUpgradeCallback: (request) => upgradesOf(request.rawHeaders).length > 0,
  });
  server.maxHeadersCount = 0;
  const take = (request: http.IncomingMessage, response: http.ServerResponse): void =>
    connections.get(request.socket)?.take(request, response);
  server.on("request", take);
  // Without these two node itself would answer 100 or 417: only the backend can decide that (RFC 9110 §10.1.1).
  server.on("checkContinue", take);
  server.on("checkExpectation", take);
  server.on("upgrade", (request, socket, head) => connections.get(socket)?.upgrade(request, head));
  server.on("connect", (_request, socket) =>
    connections.get(socket)?.refuse("CONNECT is not supported", 405),
  );
  server.on("clientError", (reason, socket) => connections.get(socket)?.fail(reason));
  return (socket, client) => {
    const own = new Http1Connection(parts, socket, client);
    connections.set(socket, own);
    server.emit("connection", socket);
    return own;
  };
}
