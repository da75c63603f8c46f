/**
 * Clients with certificates, and a backend that authenticates them in the apiserver's order (union in
 * k8s.io/apiserver): first by the proxy's X-Remote headers on a connection with the front-proxy certificate, then by a
 * bearer token, else as anonymous.
 */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import http2 from "node:http2";
import https from "node:https";
import tls from "node:tls";
import { wallClock } from "../../src/base/clock.ts";
import { type Authority, createAuthority, type Pair } from "../../src/ops/pki/pki.ts";
import { answerCanary, canaryPath, type Manner } from "./canary.ts";
import { testPki } from "./pki.ts";
import type { PlayedTarget, TestProxy } from "./proxy.ts";

export type FrontProxyPki = {
  /** The CA that signs client certificates. */
  readonly clients: Authority;
  /** The CA that signs the front-proxy certificate. */
  readonly authority: Authority;
  readonly pair: Pair;
};

export async function frontProxyPki(): Promise<FrontProxyPki> {
  const [clients, authority] = await Promise.all([
    createAuthority({ name: "cluster", clock: wallClock }),
    createAuthority({ name: "front-proxy-ca", clock: wallClock }),
  ]);
  return { clients, authority, pair: authority.issue({ name: "front-proxy-client", usage: "client" }) };
}

/** One request as the backend received it. */
export type Seen = {
  /** The common name of the client certificate on this connection; "" if there is none. */
  readonly shown: string;
  readonly headers: IncomingHttpHeaders;
  /** Complete once the request has ended. */
  trailers: object;
  /** The authenticated user: "front-proxy alice devs|a, b", "bearer x" or "anonymous". */
  readonly who: string;
};

export type JudgingBackend = PlayedTarget & {
  readonly seen: Seen[];
  /** How it answers canaries; at first "takes". */
  manner: Manner;
  /** One entry for each connection: the common name of its client certificate. */
  readonly sockets: readonly string[];
  stop(): void;
};

export async function startJudge(name: string, pki: FrontProxyPki): Promise<JudgingBackend> {
  const { authority, serving } = await testPki();
  const seen: Seen[] = [];
  const shownOn: string[] = [];
  const server = http2.createSecureServer({
    cert: serving.certificate,
    key: serving.key,
    ca: [pki.authority.certificate, pki.clients.certificate],
    requestCert: true,
    rejectUnauthorized: false,
    allowHTTP1: true,
  });
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    if (session.socket instanceof Object) shownOn.push(commonNameOn(session.socket));
    session.on("close", () => sessions.delete(session));
    session.on("error", () => {});
  });
  server.on("request", (request, response) => {
    const socket =
      (request.httpVersionMajor === 2 ? request.stream.session?.socket : undefined) ?? request.socket;
    const shown = commonNameOn(socket);
    // node:http2 joins repeated fields, so the user is derived from the raw headers.
    const one: Seen = {
      shown,
      headers: request.headers,
      trailers: {},
      who: whoOf(shown, request.rawHeaders),
    };
    // The proxy's own requests, such as health probes and canaries, are not recorded.
    const isOwn = ["/readyz?verbose", "/version", canaryPath].includes(request.url);
    if (!isOwn) seen.push(one);
    request.resume();
    request.on("end", () => {
      one.trailers = request.trailers;
      response.setHeader("content-type", "text/plain");
      // An apiserver, too, answers 401 to a certificate of an unknown CA, and to an expired one (x509.go).
      if (shown !== "" && !isAuthorized(socket)) response.statusCode = 401;
      if (request.url === canaryPath)
        return answerCanary(
          response,
          { name: shown, isValid: isAuthorized(socket) },
          request.rawHeaders,
          judge.manner,
        );
      if (response.statusCode === 200 && request.url.includes("watch=1")) watch(response);
      else response.end(one.who);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const judge: JudgingBackend = {
    name,
    manner: "takes",
    port: typeof address === "object" && address !== null ? address.port : 0,
    ca: authority.certificate,
    seen,
    sockets: shownOn,
    stop() {
      for (const session of sessions) session.destroy();
      server.close();
    },
  };
  return judge;
}

/**
 * Returns the client certificate of a connection. node:http2 wraps the socket in a JavaScript Proxy. Reading a member
 * returns that of the socket, but the operator `in` does not find it.
 */
function certificateOn(socket: object): X509Certificate | undefined {
  const read: unknown = Reflect.get(socket, "getPeerX509Certificate");
  const certificate: unknown = typeof read === "function" ? Reflect.apply(read, socket, []) : undefined;
  return certificate instanceof X509Certificate ? certificate : undefined;
}

/** Returns the common name of the client certificate on this connection; "" if there is none. */
export function commonNameOn(socket: object): string {
  return /CN=(.*)/.exec(certificateOn(socket)?.subject ?? "")?.[1] ?? "";
}

/**
 * True if the certificate was verified and has not expired. An apiserver, too, checks the dates with every request,
 * whereas OpenSSL checks them only in the handshake.
 */
function isAuthorized(socket: object): boolean {
  const ends = certificateOn(socket)?.validToDate.getTime() ?? 0;
  return Reflect.get(socket, "authorized") === true && ends > Date.now();
}

type Watched = Pick<NodeJS.WritableStream, "write" | "on"> & {
  setHeader(name: string, value: string): unknown;
};

/** Sends a watch event every 200 ms until the client closes the connection. */
function watch(response: Watched): void {
  response.setHeader("content-type", "application/json");
  let version = 1;
  const timer = setInterval(() => {
    version += 1;
    const object = { kind: "ConfigMap", metadata: { name: "x", resourceVersion: String(version) } };
    response.write(`${JSON.stringify({ type: "MODIFIED", object })}\n`);
  }, 200);
  response.on("close", () => clearInterval(timer));
}

/**
 * Returns the authenticated user by the apiserver's rules: field names are case-insensitive, and `_` is not equal to
 * `-`.
 */
function whoOf(shown: string, rawHeaders: readonly string[]): string {
  const valuesOf = (wanted: string): string[] =>
    rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === wanted);
  const user = valuesOf("x-remote-user").find((value) => value !== "");
  if (shown === "front-proxy-client" && user !== undefined) {
    const groups = valuesOf("x-remote-group").filter((value) => value !== "");
    return Buffer.from(`front-proxy ${user} ${groups.join("|")}`, "latin1").toString();
  }
  const token = /^bearer (.*)/i.exec(valuesOf("authorization")[0] ?? "")?.[1];
  return token === undefined ? "anonymous" : `bearer ${token}`;
}

/** Opens a TLS connection to the proxy, and resolves after the handshake. */
export function shake(options: tls.ConnectionOptions): Promise<tls.TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = tls.connect({ host: "127.0.0.1", servername: "localhost", ...options });
    socket.once("error", reject);
    socket.once("secureConnect", () => resolve(socket));
  });
}

/** The address of a proxy, and the CA of its certificate. */
export type Place = Pick<TestProxy, "url" | "port" | "ca">;

export type Asking = {
  readonly pair?: Pair | undefined;
  readonly headers?: Record<string, string | string[]>;
  /** `servername` is the SNI name of the handshake, `authority` the :authority or Host of the request. */
  readonly servername?: string;
  readonly authority?: string;
};

export function tlsOptions(
  { ca, port }: Pick<Place, "ca" | "port">,
  pair: Pair | undefined,
): tls.ConnectionOptions {
  return { ca, port, ...(pair === undefined ? {} : { cert: pair.certificate, key: pair.key }) };
}

/** Sends one request over a new HTTP/2 session, and returns status and body. */
export async function askH2(proxy: Place, asking: Asking): Promise<string> {
  const { pair, headers = {}, servername = "localhost", authority = "localhost" } = asking;
  const socket = await shake({ ...tlsOptions(proxy, pair), servername, ALPNProtocols: ["h2"] });
  const session = http2.connect(proxy.url, { createConnection: () => socket });
  session.on("error", () => {});
  const stream = session.request({ ":path": "/api/v1/pods", ":authority": authority, ...headers });
  const [head] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  session.destroy();
  return `${String(head[":status"])} ${Buffer.concat(chunks).toString()}`;
}

/** Sends one request over a new HTTP/1.1 connection, and returns status and body. */
export async function askH1(proxy: Place, asking: Asking): Promise<string> {
  const { pair, headers = {}, servername = "localhost", authority = "localhost" } = asking;
  const request = https.request({
    ...tlsOptions(proxy, pair),
    host: "127.0.0.1",
    servername,
    path: "/api/v1/pods",
    headers: { host: authority, ...headers },
    agent: false,
  });
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return `${response.statusCode} ${Buffer.concat(chunks).toString()}`;
}
