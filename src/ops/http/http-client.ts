/**
 * The HTTP client of everything outside of the data path and its probes: discovery, reviews, replicas and the CLI. Each
 * request uses a connection of its own, so that a server that hangs delays no other request. undici's `Client` is used
 * without its agents and interceptors: it follows no redirect and repeats no request.
 */
import net, { type Socket } from "node:net";
import tls, { type ConnectionOptions } from "node:tls";
import type { Client } from "undici";
import { isIpAddress } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { type Failure, timeout } from "../../base/failure.ts";
import { checkServerName, clientTls, trustAsGo } from "../../x509/trust.ts";

export type HttpServer = {
  /** Scheme, host and port. With "http:", the connection is not encrypted. */
  readonly origin: string;
  /** The name that the server's certificate must contain; default: the host of `origin`. */
  readonly serverName?: string | undefined;
  readonly tls?: Pick<
    ConnectionOptions,
    "ca" | "cert" | "key" | "pfx" | "passphrase" | "rejectUnauthorized" | "secureContext"
  >;
};

export type HttpRequest = {
  /** Path and query, in ASCII without spaces. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a POST; default: the request is a GET. */
  readonly body?: string | undefined;
  readonly signal?: AbortSignal;
};

export type Bounds = {
  readonly clock: Clock;
  /** Milliseconds that the whole response may take, from the start of the connection. */
  readonly timeoutMs: number;
  readonly mostBytes: number;
  /**
   * Adds the size of a chunk to a total that several responses share. Returns a Failure if the total is too large;
   * default: the total is not limited.
   */
  readonly count?: (bytes: number) => Failure | undefined;
  /**
   * Takes the chunks of a response with status 200, whose length is not limited. `timeoutMs` then limits the time until
   * the first chunk, and between two chunks. An exception of `stream` ends the request.
   */
  readonly stream?: (chunk: Buffer) => void;
};

export type HttpResponse = { readonly status: number; readonly bytes: Buffer };

/**
 * Returns the response. @throws {Error} as a rejected promise, if the response is too large, comes too late or switches
 * protocols, or if the connection fails. The message contains no field of the request.
 */
export async function sendRequest(
  server: HttpServer,
  { path, headers, body, signal }: HttpRequest,
  { clock, timeoutMs, mostBytes, count, stream }: Bounds,
): Promise<HttpResponse> {
  const { socket, client } = await open(server);
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  socket.on("error", reject);
  const late = (): void => reject(timeout(`no answer in ${timeoutMs} ms`));
  let stopTimer = clock.after(timeoutMs, late);
  const abort = (): void => reject(signal?.reason);
  signal?.addEventListener("abort", abort);
  if (signal?.aborted === true) abort();
  const chunks: Buffer[] = [];
  let [status, bytes] = [0, 0];
  const take = (chunk: Buffer): void => {
    if (status === 200 && stream !== undefined) {
      stopTimer();
      stopTimer = clock.after(timeoutMs, late);
      return stream(chunk);
    }
    bytes += chunk.length;
    chunks.push(chunk);
    const refusal = bytes > mostBytes ? new Error(`an answer of more than ${mostBytes} bytes`) : undefined;
    const reason = refusal ?? count?.(chunk.length);
    if (reason !== undefined) reject(reason);
  };
  client.dispatch(
    { method: body === undefined ? "GET" : "POST", path, headers, body: body ?? null, reset: true },
    {
      onRequestStart: () => {},
      onResponseStart: (_controller, code) => void (status = code),
      onResponseData: (_controller, chunk) => take(chunk),
      onResponseEnd: () => resolve({ status, bytes: Buffer.concat(chunks) }),
      onResponseError: (_controller, error) => reject(error),
    },
  );
  return promise.finally(() => {
    stopTimer();
    signal?.removeEventListener("abort", abort);
    socket.destroy();
    void client.destroy();
  });
}

async function open(server: HttpServer): Promise<{ readonly socket: Socket; readonly client: Client }> {
  // Only this file of the package is loaded, and only for the first request: it takes 9 MB, and the package 23 MB.
  const { default: OneClient } = await import("undici/lib/dispatcher/client.js");
  const socket = openSocket(server);
  const client = new OneClient(server.origin, {
    connect: (_options, done) =>
      socket.once("encrypted" in socket ? "secureConnect" : "connect", () => done(null, socket)),
    allowH2: false,
    // The timer of `sendRequest` limits the connection, the head and the body. undici's timers are up to 0.5 s late.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return { socket, client };
}

/** Returns a socket that connects to the server, and verifies its certificate. */
function openSocket({ origin, serverName, tls: options = {} }: HttpServer): Socket {
  const { protocol, hostname, port } = new URL(origin);
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  if (protocol === "http:") return net.connect({ host, port: Number(port || 80) });
  const name = serverName ?? host;
  const socket = tls.connect({
    ...clientTls,
    ...options,
    // Only `false` turns verification off, as `insecure-skip-tls-verify` in a kubeconfig does.
    rejectUnauthorized: options.rejectUnauthorized !== false,
    host,
    port: Number(port || 443),
    ALPNProtocols: ["http/1.1"],
    // An IP address is not sent as SNI (RFC 6066 §3). `checkServerIdentity` verifies it instead.
    servername: isIpAddress(name) ? "" : name,
    checkServerIdentity: (_name, certificate) => checkServerName(name, certificate),
  });
  trustAsGo(socket, options.ca?.toString());
  return socket;
}
