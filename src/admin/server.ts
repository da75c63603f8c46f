/**
 * The port of metrics and probes. Whoever reaches it may ask, so it tells no reasons and no names of clients, takes no
 * bodies, believes no Host, and cannot be made to keep the data path waiting.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Clock, wallClock } from "../clock.ts";
import { Failure } from "../failure.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import { answerTo, complaintOf, type Readiness } from "./probes.ts";

export type AdminOptions = {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly journal: Journal;
  /** Whether a restart would not help. Dead backends are no reason for one: they are why the proxy is there. */
  readonly live: () => readonly Readiness[];
  /** Whether new clients may be sent here. */
  readonly ready: () => readonly Readiness[];
  readonly registry: { readonly metrics: () => Promise<string>; readonly contentType: string };
  readonly clock?: Clock;
};

export type Admin = { readonly address: string; stop(): Promise<void> };

type Reply = { readonly status: number; readonly type: string; readonly text: string };
type Route = (query: string) => Reply | Promise<Reply>;
type Routes = ReadonlyMap<string, Route>;

const plain = "text/plain; charset=utf-8";

/** Listens until it is stopped, or says why it cannot. */
export async function startAdmin(options: AdminOptions): Promise<Admin | Failure> {
  const { journal } = options;
  const routes = routesOf(options);
  const server = createServer(
    {
      maxHeaderSize: limits.adminHeaderBytes,
      headersTimeout: limits.adminRequestMs,
      requestTimeout: limits.adminRequestMs,
      keepAliveTimeout: limits.adminRequestMs,
      connectionsCheckingInterval: 1000,
    },
    (request, response) => void answer(request, response, { routes, journal }),
  );
  keepNewest(server);
  const failure = await listen(server, options);
  if (failure !== undefined) return failure;
  server.on("error", (error) => contained(journal, error));
  const address = addressOf(server);
  journal.write({ kind: "listener.opened", listener: "admin", address });
  return { address, stop: () => stop(server) };
}

function routesOf({ live, ready, registry, journal, clock = wallClock }: AdminOptions): Routes {
  const livez = probe("livez", live, journal);
  const scrape = reusing(() => registry.metrics(), clock);
  return new Map<string, Route>([
    ["/livez", livez],
    ["/healthz", livez],
    ["/readyz", probe("readyz", ready, journal)],
    ["/metrics", async () => ({ status: 200, type: registry.contentType, text: await scrape() })],
  ]);
}

function probe(name: string, checks: () => readonly Readiness[], journal: Journal): Route {
  let complaint = "";
  return (query) => {
    const now = checks();
    const before = complaint;
    complaint = complaintOf(now);
    if (complaint !== before) journal.write({ kind: "probe.changed", probe: name, complaint });
    const { ok, text } = answerTo(name, query, now);
    return { status: ok ? 200 : 500, type: plain, text };
  };
}

/** The same text for all who ask at nearly the same time: making it takes milliseconds of the one thread there is. */
function reusing(make: () => Promise<string>, clock: Clock): () => Promise<string> {
  let made: Promise<string> | undefined;
  let madeAt = 0;
  return () => {
    if (made === undefined || clock.now() - madeAt >= limits.scrapeReuseMs) {
      madeAt = clock.now();
      made = make();
    }
    return made;
  };
}

type Parts = { readonly routes: Routes; readonly journal: Journal };

async function answer(request: IncomingMessage, response: ServerResponse, parts: Parts): Promise<void> {
  const { status, type, text } = await replyTo(request, parts);
  response.writeHead(status, {
    "content-type": type,
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-cache, private",
    "x-content-type-options": "nosniff",
    ...(status === 405 ? { allow: "GET, HEAD" } : {}),
  });
  response.end(text);
}

async function replyTo({ method, url = "" }: IncomingMessage, { routes, journal }: Parts): Promise<Reply> {
  const mark = url.indexOf("?");
  const route = routes.get(mark < 0 ? url : url.slice(0, mark));
  if (route === undefined) return { status: 404, type: plain, text: "404 page not found\n" };
  if (method !== "GET" && method !== "HEAD")
    return { status: 405, type: plain, text: "405 method not allowed\n" };
  try {
    return await route(mark < 0 ? "" : url.slice(mark + 1));
  } catch (error) {
    contained(journal, error);
    return { status: 500, type: plain, text: "500 internal server error\n" };
  }
}

function contained(journal: Journal, reason: unknown): void {
  const message = reason instanceof Error ? reason.message : String(reason);
  journal.write({ kind: "fault.contained", ring: "session", message: `Admin port: ${message}` });
}

/** Beyond the limit the oldest goes, not the newest: idle sockets must not be able to keep a kubelet's probe out. */
function keepNewest(server: Server): void {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    const [oldest] = sockets;
    if (sockets.size > limits.adminSockets) oldest?.destroy();
  });
}

function listen(server: Server, { host, port }: AdminOptions): Promise<Failure | undefined> {
  return new Promise((resolve) => {
    const refused = (error: Error): void =>
      resolve(
        new Failure("bad-request", "proxy", `Cannot listen on ${host}:${port}: ${error.message}`, error),
      );
    server.once("error", refused);
    server.listen({ host, port }, () => {
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
