/**
 * Serves the two admin ports. On the port of metrics and probes, probes never need authorization, and metrics need it
 * only if the port has a guard. Therefore a probe's response does not say why a check failed. The port of the JSON API
 * listens on loopback by default, and its responses contain no secrets.
 */
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import { isLoopback, textOf } from "../../../base/address.ts";
import { cannotListen, type Failure, wordsOf } from "../../../base/failure.ts";
import type { Journal } from "../../../events/journal.ts";
import { adopt, bind } from "../../../upstream/net/bind.ts";
import { descriptorOf } from "../../../upstream/net/descriptors.ts";
import { stopParsing } from "../../../upstream/net/socket-end.ts";
import type { Admitted, Authorization } from "../authorization/authorization.ts";
import type { EventStreams, Permission } from "../events/event-stream.ts";
import { adminLimits } from "../http/limits.ts";
import { isLocalHost } from "../http/local-host.ts";
import { replyToPost } from "../http/posting.ts";
import { failed, type Posts, type Reply, type Route, type Routes } from "../http/reply.ts";
import {
  openMetricsOf,
  openMetricsType,
  wantsOpenMetrics,
  withoutExemplars,
} from "../metrics/open-metrics.ts";
import type { ProbeName, ProbeSource } from "./answers.ts";
import { answerTo } from "./probes.ts";
import { type ApiTls, secureServer } from "./secure-server.ts";

/** What the two ports have in common. */
type PortOptions = {
  readonly host: string;
  /** TCP port; 0: the kernel picks a free one. */
  readonly port: number;
  /** Descriptor of an inherited listening socket, which is used if it has the configured address; default: none. */
  readonly inherited?: number | undefined;
  readonly journal: Journal;
  /** The certificate and TLS options; default: plain HTTP. */
  readonly tls?: ApiTls | undefined;
  /** Authorizes requests; default: none, which the configuration allows on loopback and for metrics only. */
  readonly guard?: Guard | undefined;
};

export type AdminOptions = PortOptions & { readonly asker: ProbeSource; readonly contentType: string };

export type Admin = {
  readonly address: string;
  /** Descriptor of the listening socket, which a successor process inherits; undefined: none. */
  readonly descriptor: number | undefined;
  stop(): Promise<void>;
};

const plain = "text/plain; charset=utf-8";
const foreignHost: Reply = {
  status: 421,
  type: plain,
  text: "421 the Host of this port must be this machine\n",
};
const twoHosts: Reply = { status: 400, type: plain, text: "400 two hosts\n" };

/** Path of the event streams. `eventReply` is the response to a request for one more stream when too many are open. */
const eventsPath = "/api/v1/events";
const eventReply: Reply = failed(503, "Too many streams are open");

/** Opens the port of metrics and probes. Resolves when it listens, or with a Failure that says why it does not. */
export function startAdmin(options: AdminOptions): Promise<Admin | Failure> {
  const routes = routesOf(options);
  // Prometheus reaches other addresses than loopback by names that this process does not know.
  const isLocal = options.guard === undefined && isLoopback(options.host);
  return open({
    ...options,
    listener: "metrics",
    routes: (path) => routes.get(path),
    isLocal,
    mayOmitHost: true,
  });
}

/** Authorizes requests to an admin port. Public paths, such as files of the admin page, need no authorization. */
export type Guard = {
  /** Returns the user, or the response that rejects the request; undefined: the path is public. */
  admit(request: IncomingMessage, path: string): Promise<Admitted | Reply | undefined>;
};

/** Returns a guard. `isPublic`: true for paths that need no user, such as the files of the admin page. */
export function guardOf(
  authorization: Pick<Authorization, "admit">,
  isPublic: (path: string) => boolean,
): Guard {
  return {
    async admit({ method, headers, socket }, path) {
      const isRead = method === "GET" || method === "HEAD";
      if (isRead && isPublic(path)) return undefined;
      return authorization.admit({
        // A request with a method other than GET and HEAD needs the permission for POST. After that, the router accepts
        // only POST.
        verb: isRead ? "get" : "post",
        path,
        authorization: headers.authorization,
        address: socket.remoteAddress ?? "",
      });
    },
  };
}

/** Only requests for /metrics need an authenticated user. Probes come from the kubelet, which has no token. */
export function metricsGuard(authorization: Pick<Authorization, "admit">): Guard {
  return guardOf(authorization, (path) => path !== "/metrics");
}

export type ApiOptions = PortOptions & Served;

type Served = {
  readonly routes: Routes;
  /** Operations that POST requests run; default: none. */
  readonly posts?: Posts;
  readonly events?: EventStreams;
};

/**
 * Opens the port of the JSON API. Resolves when the port listens, or with a Failure that says why it does not. Rejects
 * requests that a foreign web page makes a browser send (A56).
 */
export function startApi(options: ApiOptions): Promise<Admin | Failure> {
  const { events, routes: others } = options;
  const routes: Routes = (path) =>
    path === eventsPath && events !== undefined ? () => eventReply : others(path);
  // With authorization, the Host field is not checked, because a web page under a foreign host name has no token to
  // send.
  return open({ ...options, routes, listener: "admin", isLocal: options.guard === undefined });
}

type Opening = PortOptions & Parts & { readonly listener: string };

async function open(options: Opening): Promise<Admin | Failure> {
  const { journal, listener, inherited: fd } = options;
  const server = serverOf(options);
  keepNewest(server);
  const isAdopted = fd !== undefined && (await adopt(server, { fd }, options));
  const fault = isAdopted ? undefined : await bind(server, options);
  if (fault !== undefined) return cannotListen(listener, textOf(options), fault);
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
    [
      "/metrics",
      async (_query, { accept = "" } = {}) => scrapeReply(await asker.scrape(), contentType, accept),
    ],
  ]);
}

function scrapeReply(text: string, type: string, accept: string): Reply {
  return wantsOpenMetrics(accept)
    ? { status: 200, type: openMetricsType, text: openMetricsOf(text) }
    : { status: 200, type, text: withoutExemplars(text) };
}

function probe(name: ProbeName, asker: ProbeSource): Route {
  return async (query) => {
    const { ok, text } = answerTo(name, query, await asker.checks(name));
    return { status: ok ? 200 : 500, type: plain, text };
  };
}

type Parts = Served &
  Pick<PortOptions, "journal" | "guard"> & {
    /**
     * True if the port rejects requests whose Host header does not name this machine's loopback. This protects against
     * DNS rebinding (A56).
     */
    readonly isLocal: boolean;
    /** True if a request may have no Host: every browser sends one, but checks of load balancers over HTTP/1.0 do not. */
    readonly mayOmitHost?: boolean;
  };

async function answer(request: IncomingMessage, response: ServerResponse, parts: Parts): Promise<void> {
  const reply = await replyTo(request, parts);
  if (response.destroyed) return;
  const isStream = reply === eventReply && request.method === "GET";
  if (isStream && parts.events?.serve(request, response, () => permissionOf(request, parts)) === true)
    return void streaming.add(peerOf(request.socket));
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
    // A 413 ends the connection, because the rest of the request's body is not read.
    ...(status === 413 ? { connection: "close" } : {}),
  };
}

/** Authorizes an event stream again, because the token may have expired or been revoked since the stream began. */
async function permissionOf(request: IncomingMessage, { guard }: Parts): Promise<Permission> {
  const admitted = await guard?.admit(request, pathOf(request));
  if (admitted === undefined || !("status" in admitted)) return "yes";
  return admitted.status === 503 ? "unknown" : "no";
}

async function replyTo(request: IncomingMessage, parts: Parts): Promise<Reply> {
  const refused = hostRefused(request, parts);
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

function hostRefused(
  { headers, headersDistinct }: IncomingMessage,
  { isLocal, mayOmitHost = false }: Parts,
): Reply | undefined {
  // Two Host headers are rejected (RFC 9112 §3.2), because Node would use only the first.
  if ((headersDistinct["host"] ?? []).length > 1) return twoHosts;
  const host = headers.host ?? (mayOmitHost ? "localhost" : "");
  return isLocal && !isLocalHost(host) ? foreignHost : undefined;
}

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
    return () => route(url.slice(path.length + 1), request.headers);
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

/**
 * Closes the oldest socket if there are too many, so that idle sockets cannot keep out a kubelet's new probe. Sockets of
 * event streams stay: there are only a few, and their clients were authorized.
 */
function keepNewest(server: Server): void {
  const sockets = new Map<string, Socket>();
  server.on("connection", (socket: Socket) => {
    const peer = peerOf(socket);
    sockets.set(peer, socket);
    socket.on("close", () => {
      sockets.delete(peer);
      streaming.delete(peer);
    });
    if (sockets.size <= adminLimits.adminSockets) return;
    const oldest = Array.from(sockets).find(([name]) => !streaming.has(name));
    oldest?.[1].destroy();
  });
}

/** The sockets of event streams, by their ends, because Node has another object for the TLS in a socket. */
const streaming = new Set<string>();

function peerOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

const waiting = new WeakMap<Socket, number>();

/** True if the socket has fewer unanswered requests than the limit. Otherwise, closes the socket. */
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
