/**
 * The admin ports. The port of metrics and probes is open to any client that can reach it, so its responses contain no
 * reasons and no client names. The API's port is on loopback and returns everything but secrets. Neither can block the data
 * path.
 */
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from "node:http";
import type { ListenOptions, Socket } from "node:net";
import { isBoundAt, textOf } from "../../base/address.ts";
import { cannotListen, type Failure, wordsOf } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import { descriptorOf } from "../../proxy/net/descriptors.ts";
import { stopParsing } from "../../proxy/net/socket-end.ts";
import type { Admitted, Authorization } from "../authorization/authorization.ts";
import type { EventStreams, Verdict } from "../events/event-stream.ts";
import { adminLimits } from "../http/limits.ts";
import { isLocalHost } from "../http/local-host.ts";
import { replyToPost } from "../http/posting.ts";
import { failed, type Posts, type Reply, type Route, type Routes } from "../http/reply.ts";
import type { Asker, ProbeName } from "./answers.ts";
import { answerTo } from "./probes.ts";
import { type ApiTls, secureServer } from "./secure-server.ts";

export type AdminOptions = {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** An inherited listening socket, used if it has the configured address. */
  readonly inherited?: number | undefined;
  readonly journal: Journal;
  /** Answers probes and scrapes. */
  readonly asker: Asker;
  /** Of the metrics. */
  readonly contentType: string;
};

export type Admin = {
  readonly address: string;
  /** Its listening socket, for a successor. */
  readonly descriptor: number | undefined;
  stop(): Promise<void>;
};

const plain = "text/plain; charset=utf-8";
const strangers: Reply = {
  status: 421,
  type: plain,
  text: "421 the Host of this port must be this machine\n",
};
const twoHosts: Reply = { status: 400, type: plain, text: "400 two hosts\n" };

/** Only accepted if there is room for one more stream, because the response has no end. */
const eventsPath = "/api/v1/events";
const eventReply: Reply = failed(503, "Too many streams are open");

/** Metrics and probes: listens until it is stopped, or returns the reason of a failure. */
export function startAdmin(options: AdminOptions): Promise<Admin | Failure> {
  const routes = routesOf(options);
  return open({ ...options, listener: "metrics", routes: (path) => routes.get(path), isLocal: false });
}

/** Authorizes each request to the API, except for the page's own files, which contain no data. */
export type Guard = {
  /** Returns the user, or a refusal; undefined: the path is public. */
  admit(request: IncomingMessage, path: string): Promise<Admitted | Reply | undefined>;
};

/** `publicRoutes` need no user: a browser loads the page before its user can enter a token. */
export function guardOf(authorization: Pick<Authorization, "admit">, publicRoutes: Routes): Guard {
  return {
    async admit({ method, headers, socket }, path) {
      const isRead = method === "GET" || method === "HEAD";
      if (isRead && publicRoutes(path) !== undefined) return undefined;
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

export type ApiOptions = {
  readonly host: string;
  readonly port: number;
  readonly journal: Journal;
  readonly routes: Routes;
  /** Operations; default: none. */
  readonly posts?: Posts;
  readonly events?: EventStreams;
  /** Default: plain HTTP. */
  readonly tls?: ApiTls | undefined;
  /** Default: no authorization, which is only for loopback. */
  readonly guard?: Guard | undefined;
};

/**
 * The JSON API: routes, operations (posting.ts) and the stream of events. Refuses requests that a foreign web page made a
 * browser send (A56).
 */
export function startApi(options: ApiOptions): Promise<Admin | Failure> {
  const { events, routes: others } = options;
  const routes: Routes = (path) =>
    path === eventsPath && events !== undefined ? () => eventReply : others(path);
  // With authorization, a browser that was led here under another name has no token to send.
  return open({ ...options, routes, listener: "admin", isLocal: options.guard === undefined });
}

type Opening = Pick<AdminOptions, "host" | "port" | "inherited"> &
  Parts & {
    /** Its name in the journal. */
    readonly listener: string;
  };

async function open(options: Opening): Promise<Admin | Failure> {
  const { journal, listener } = options;
  const server = serverOf(options);
  keepNewest(server);
  const failure = await listen(server, options);
  if (failure !== undefined) return failure;
  server.on("error", (error) => contained(journal, error));
  const address = addressOf(server);
  journal.write({ kind: "listener.opened", listener, address });
  return { address, descriptor: descriptorOf(server), stop: () => stop(server) };
}

function serverOf(options: Opening): Server {
  const { tls, guard } = options;
  const settings = {
    maxHeaderSize: guard === undefined ? adminLimits.adminHeaderBytes : adminLimits.adminTokenHeaderBytes,
    headersTimeout: adminLimits.adminRequestMs,
    requestTimeout: adminLimits.adminRequestMs,
    keepAliveTimeout: adminLimits.adminRequestMs,
    connectionsCheckingInterval: 1000,
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    if (mayAsk(request, response)) void answer(request, response, options);
  };
  return tls === undefined ? createServer(settings, listener) : secureServer(settings, tls, listener);
}

function routesOf({ asker, contentType }: AdminOptions): ReadonlyMap<string, Route> {
  const livez = probe("livez", asker);
  return new Map<string, Route>([
    ["/livez", livez],
    ["/healthz", livez],
    ["/readyz", probe("readyz", asker)],
    ["/metrics", async () => ({ status: 200, type: contentType, text: await asker.scrape() })],
  ]);
}

function probe(name: ProbeName, asker: Asker): Route {
  return async (query) => {
    const { ok, text } = answerTo(name, query, await asker.checks(name));
    return { status: ok ? 200 : 500, type: plain, text };
  };
}

type Parts = {
  readonly routes: Routes;
  readonly posts?: Posts;
  readonly events?: EventStreams;
  readonly journal: Journal;
  /** True to refuse a Host that is not this machine's loopback (DNS rebinding). */
  readonly isLocal: boolean;
  readonly tls?: ApiTls | undefined;
  readonly guard?: Guard | undefined;
};

async function answer(request: IncomingMessage, response: ServerResponse, parts: Parts): Promise<void> {
  const reply = await replyTo(request, parts);
  if (response.destroyed) return;
  const isStream = reply === eventReply && request.method === "GET";
  if (isStream && parts.events?.serve(request, response, () => judged(request, parts)) === true) return;
  const mayPost = parts.posts?.(pathOf(request)) !== undefined;
  response.writeHead(reply.status, {
    ...headOf(reply),
    ...(reply.status === 405 ? { allow: mayPost ? "POST" : "GET, HEAD" } : {}),
  });
  response.end(reply.text);
}

function headOf({ status, type, text, policy = "default-src 'none'", location }: Reply): OutgoingHttpHeaders {
  return {
    "content-type": type,
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-cache, private",
    "x-content-type-options": "nosniff",
    "content-security-policy": policy,
    ...(location === undefined ? {} : { location }),
    ...(status === 401 ? { "www-authenticate": 'Bearer realm="watchkeeper"' } : {}),
    ...(status === 503 ? { "retry-after": "1" } : {}),
    // The rest of a refused body is not read.
    ...(status === 413 ? { connection: "close" } : {}),
  };
}

/** Checks again: a token may have expired or been revoked since the stream began. */
async function judged(request: IncomingMessage, { guard }: Parts): Promise<Verdict> {
  const admitted = await guard?.admit(request, pathOf(request));
  if (admitted === undefined || !("status" in admitted)) return "yes";
  return admitted.status === 503 ? "unknown" : "no";
}

async function replyTo(request: IncomingMessage, parts: Parts): Promise<Reply> {
  const refused = hostRefused(request, parts.isLocal);
  if (refused !== undefined) return refused;
  try {
    const admitted = await parts.guard?.admit(request, pathOf(request));
    if (admitted !== undefined && "status" in admitted) return admitted;
    const made = answerFor(request, parts, admitted?.username);
    return typeof made === "function" ? await made() : made;
  } catch (error) {
    contained(parts.journal, error);
    return { status: 500, type: plain, text: "500 internal server error\n" };
  }
}

function hostRefused({ headers, headersDistinct }: IncomingMessage, isLocal: boolean): Reply | undefined {
  // Node would use the first of two Host fields (RFC 9112 §3.2).
  if ((headersDistinct["host"] ?? []).length > 1) return twoHosts;
  return isLocal && !isLocalHost(headers.host ?? "") ? strangers : undefined;
}

/** Returns the handler of a request, or an error response. */
function answerFor(
  request: IncomingMessage,
  { routes, posts, journal }: Parts,
  username: string | undefined,
): Reply | (() => Reply | Promise<Reply>) {
  const { method, url = "" } = request;
  const path = pathOf(request);
  const post = posts?.(path);
  const route = routes(path);
  if (route === undefined && post === undefined)
    return { status: 404, type: plain, text: "404 page not found\n" };
  if (post !== undefined && method === "POST")
    return () => replyToPost(request, post, { path, journal, username });
  if (route !== undefined && (method === "GET" || method === "HEAD"))
    return () => route(url.slice(path.length + 1));
  return { status: 405, type: plain, text: "405 method not allowed\n" };
}

function pathOf({ url = "" }: IncomingMessage): string {
  const mark = url.indexOf("?");
  return mark < 0 ? url : url.slice(0, mark);
}

function contained(journal: Journal, reason: unknown): void {
  const message = wordsOf(reason);
  journal.write({ kind: "internal.error", scope: "session", message: `Admin port: ${message}` });
}

async function listen(server: Server, options: Opening): Promise<Failure | undefined> {
  const { inherited: fd } = options;
  if (fd !== undefined && (await bind(server, { fd }, options)) === undefined) {
    if (isBoundAt(server.address(), options)) return undefined;
    server.close();
  }
  const { host, port } = options;
  return bind(server, { host, port }, options);
}

function bind(
  server: Server,
  where: ListenOptions | { readonly fd: number },
  { host, port, listener }: Opening,
): Promise<Failure | undefined> {
  return new Promise((resolve) => {
    const refused = (error: Error): void => resolve(cannotListen(listener, textOf({ host, port }), error));
    server.once("error", refused);
    server.listen(where, () => {
      server.off("error", refused);
      resolve(undefined);
    });
  });
}

function addressOf(server: Server): string {
  const bound = server.address();
  if (bound === null || typeof bound === "string") return "";
  return bound.family === "IPv6" ? `[${bound.address}]:${bound.port}` : `${bound.address}:${bound.port}`;
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/*
 * Limits of sockets and requests: a client must neither keep a kubelet's probe out nor fill the heap.
 */

/** Beyond the limit the oldest socket is closed, not the newest: idle sockets must not keep a kubelet's probe out. */
function keepNewest(server: Server): void {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    const [oldest] = sockets;
    if (sockets.size > adminLimits.adminSockets) oldest?.destroy();
  });
}

const waiting = new WeakMap<Socket, number>();

/** True if the socket has fewer pending requests than the limit. Otherwise closes the socket with its pending requests. */
function mayAsk({ socket }: IncomingMessage, response: ServerResponse): boolean {
  const count = waiting.get(socket) ?? 0;
  if (count >= adminLimits.adminWaiting) {
    stopParsing(socket);
    socket.destroy();
    return false;
  }
  waiting.set(socket, count + 1);
  response.once("close", () => waiting.set(socket, (waiting.get(socket) ?? 0) - 1));
  return true;
}
