/** Opens sockets to backends: TLS, verified against the cluster's CA and server name, or plain TCP on loopback. */
import net from "node:net";
import tls from "node:tls";
import { Failure, failureFrom, timeout } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import { checkServerName, clientTls, trustAsGo } from "../../x509/trust.ts";
import { type Ends, type HeaderVersion, writeHeader } from "./proxy-protocol.ts";
import { type Keepalive, setKeepalive, wireOf } from "./socket.ts";
import { reword, type Trusted, withoutHttp2, wrongName } from "./untrusted-certificate.ts";
import type { Wire, WireOwner } from "./wire.ts";

/**
 * Maximum number of cached TLS contexts: three for each of 16 clusters, namely one with the CA alone, and one with each
 * of the two client certificates.
 */
const tlsContexts = 48;

export type BackendAddress = {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** The path below which the apiserver is served; undefined: at the root. */
  readonly path?: string;
  /** The CA and the name to verify; undefined for h2c without TLS, which the configuration allows on loopback only. */
  readonly tls: ({ readonly ca: string | undefined } & Trusted) | undefined;
  /** Set if a load balancer in front of the backend needs a PROXY header that states each connection's client. */
  readonly proxyProtocol?: HeaderVersion | undefined;
};

/**
 * The proxy's client certificate (with its chain) and private key, in PEM. Presented if a backend requests a
 * certificate.
 */
export type ClientPair = { readonly chain: string; readonly key: string };

/**
 * Returns a socket that is still connecting. `ends`: both ends of the client's connection, if the socket serves only
 * one client. Failures are reported by the socket's events "error" and "close".
 */
export function openSocket(
  address: BackendAddress,
  alpn: "h2" | "http/1.1",
  pair?: ClientPair,
  ends?: Ends,
): net.Socket {
  if (address.tls === undefined) return openTcp(address, { ends });
  const { ca, serverName } = address.tls;
  const trusted = address.tls;
  const options: tls.ConnectionOptions = {
    secureContext: contextFor(ca, pair),
    rejectUnauthorized: true,
    // An IP address cannot be sent as SNI (RFC 6066 §3), but the certificate is still checked against the address.
    servername: net.isIP(serverName) === 0 ? serverName : "",
    checkServerIdentity: (_name, certificate) =>
      wrongName(checkServerName(serverName, certificate), trusted, certificate),
    ALPNProtocols: [alpn],
  };
  const socket = openTls(address, options, ends);
  trustAsGo(socket, ca);
  // Runs before all other listeners, so that they get the reworded message (untrusted-certificate.ts).
  socket.prependListener("error", (reason) => reword(reason, trusted));
  if (alpn === "h2")
    socket.on("secureConnect", () => {
      if (socket.alpnProtocol !== "h2") socket.destroy(new Error(withoutHttp2));
    });
  return socket;
}

/**
 * Opens a TLS socket that accepts any certificate, to read the one that a backend presents for this SNI name. Sends no
 * request. Returns undefined if the backend has no TLS.
 */
export function openUntrusting(address: BackendAddress, name: string): tls.TLSSocket | undefined {
  if (address.tls === undefined) return undefined;
  return openTls(address, {
    servername: name,
    rejectUnauthorized: false,
    ALPNProtocols: ["http/1.1"],
  });
}

/** Opens a TCP socket. Without `ends`, its PROXY header (if any) states that the connection is the proxy's own. */
function openTcp(
  address: BackendAddress,
  options: { ends?: Ends | undefined; allowHalfOpen?: boolean } = {},
): net.Socket {
  const { host, port, proxyProtocol } = address;
  const { ends, allowHalfOpen = false } = options;
  if (proxyProtocol === undefined) return net.connect({ host, port, allowHalfOpen });
  // `autoSelectFamily` is off, because it would replace the TCP socket's handle even while TLS is using it.
  const socket = net.connect({ host, port, allowHalfOpen, autoSelectFamily: false });
  socket.write(writeHeader(proxyProtocol, ends));
  return socket;
}

function openTls(address: BackendAddress, options: tls.ConnectionOptions, ends?: Ends): tls.TLSSocket {
  const { host, port, proxyProtocol } = address;
  if (proxyProtocol === undefined) return tls.connect({ host, port, ...options });
  const socket = openTcp(address, { ends });
  const secure = tls.connect({ socket, ...options });
  // Node reports an error of the TCP socket on the TLS socket, too, and reports a failed dial twice. These listeners
  // ignore the repeats.
  secure.on("error", () => {});
  socket.on("error", () => {});
  socket.on("close", () => secure.destroy());
  secure.on("close", () => socket.destroy());
  return secure;
}

type CachedContext = {
  readonly ca: string | undefined;
  readonly pair: ClientPair | undefined;
  readonly context: tls.SecureContext;
};

/** TLS contexts, most recently used first. Cached, because parsing a CA at each dial costs more than the handshake. */
let contexts: readonly CachedContext[] = [];

function contextFor(ca: string | undefined, pair: ClientPair | undefined): tls.SecureContext {
  const known = contexts.find((one) => one.ca === ca && one.pair === pair);
  const latest = known ?? { ca, pair, context: createContext(ca, pair) };
  if (latest !== contexts[0])
    contexts = [latest, ...contexts.filter((one) => one !== latest)].slice(0, tlsContexts);
  return latest.context;
}

function createContext(ca: string | undefined, pair: ClientPair | undefined): tls.SecureContext {
  return tls.createSecureContext({
    ...(ca === undefined ? {} : { ca }),
    ...(pair === undefined ? {} : { cert: pair.chain, key: pair.key }),
    ...clientTls,
  });
}

/** Opens an upstream connection. The wire accepts writes at once and sends them after the TLS handshake. */
export function connectConnection(
  address: BackendAddress,
  owner: WireOwner,
  parts: { readonly journal: Journal; readonly keepalive: Keepalive; readonly pair?: ClientPair | undefined },
): Wire {
  const socket = openSocket(address, "h2", parts.pair);
  setKeepalive(socket, parts.keepalive);
  return wireOf(socket, owner, { journal: parts.journal, origin: "backend" });
}

/** Opens a TCP socket for a passthrough connection. Failures are reported only by the event "close". */
export function connectThrough(address: BackendAddress, ends: Ends, keepalive: Keepalive): net.Socket {
  const socket = openTcp(address, { ends, allowHalfOpen: true });
  socket.on("error", () => {});
  setKeepalive(socket, keepalive);
  return socket;
}

/** Opens an HTTP/1.1 socket for an Upgrade. Resolves after the TLS handshake. `withinMs` bounds the whole dial. */
export function connectUpgrade(
  address: BackendAddress,
  parts: {
    readonly keepalive: Keepalive;
    readonly pair?: ClientPair | undefined;
    readonly ends?: Ends | undefined;
  },
  withinMs: number,
): Promise<net.Socket | Failure> {
  const { keepalive, pair, ends } = parts;
  const socket = openSocket(address, "http/1.1", pair, ends);
  setKeepalive(socket, keepalive);
  socket.setTimeout(withinMs);
  return new Promise((resolve) => {
    const fail = (reason: Error): void => {
      socket.destroy();
      const { message } = failureFrom(reason, "backend");
      const text = `Cannot open an http/1.1 socket to backend ${address.name} for the Upgrade: ${message}`;
      resolve(new Failure("backend-refused", "backend", text, reason));
    };
    socket.once("error", fail);
    socket.once("timeout", () => {
      fail(timeout(`No socket to backend ${address.name} in ${withinMs} ms`));
    });
    socket.once(address.tls === undefined ? "connect" : "secureConnect", () => {
      socket.off("error", fail);
      socket.removeAllListeners("timeout");
      socket.setTimeout(0);
      resolve(socket);
    });
  });
}
