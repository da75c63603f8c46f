/** Opens sockets to backends: TLS verified against the cluster's CA and name, ALPN h2; plain TCP on loopback only. */
import net from "node:net";
import tls from "node:tls";
import { Failure, failureFrom } from "../failure.ts";
import type { Journal } from "../journal.ts";
import type { Met } from "./fate.ts";
import { type Keepalive, setKeepalive, wireOf } from "./socket.ts";
import type { Wire, WireOwner } from "./wire.ts";

export type BackendAddress = {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** Undefined: plain h2c, which config allows on loopback only. */
  readonly tls: { readonly ca: string | undefined; readonly serverName: string } | undefined;
};

/** A socket that is opening; errors come as its "error" and "close" events, as usual. */
export function openSocket(address: BackendAddress, alpn: "h2" | "http/1.1"): net.Socket {
  const { host, port } = address;
  if (address.tls === undefined) return net.connect({ host, port });
  const { ca, serverName } = address.tls;
  return tls.connect({
    host,
    port,
    secureContext: contextFor(ca),
    // An IP address is no SNI name (RFC 6066 §3), but the certificate is still checked against it.
    servername: net.isIP(serverName) === 0 ? serverName : "",
    checkServerIdentity: (_name, certificate) => tls.checkServerIdentity(serverName, certificate),
    ALPNProtocols: [alpn],
  });
}

/** Parsing the CA again at each dial would cost more than the handshake; a reload brings another text. */
let last: { readonly ca: string | undefined; readonly context: tls.SecureContext } | undefined;

function contextFor(ca: string | undefined): tls.SecureContext {
  if (last === undefined || last.ca !== ca) {
    last = {
      ca,
      context: tls.createSecureContext({ ...(ca === undefined ? {} : { ca }), minVersion: "TLSv1.2" }),
    };
  }
  return last.context;
}

/** For a lane: the wire is there at once, what is written before the handshake waits. */
export function connectLane(
  address: BackendAddress,
  owner: WireOwner,
  parts: { readonly journal: Journal; readonly keepalive: Keepalive },
): Wire {
  const socket = openSocket(address, "h2");
  setKeepalive(socket, parts.keepalive);
  if (socket instanceof tls.TLSSocket) {
    socket.on("secureConnect", () => {
      if (socket.alpnProtocol === "h2") return;
      socket.destroy(
        new Error(`Backend ${address.name} does not speak HTTP/2: ALPN gave ${String(socket.alpnProtocol)}`),
      );
    });
  }
  return wireOf(socket, owner, { journal: parts.journal, origin: "backend" });
}

/** For an Upgrade: an http/1.1 socket once it is ready, or why there is none. `withinMs` bounds all of it. */
export function connectUpgrade(
  address: BackendAddress,
  keepalive: Keepalive,
  withinMs: number,
): Promise<net.Socket | Failure> {
  const socket = openSocket(address, "http/1.1");
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
      const reason = new Error(`No socket to backend ${address.name} in ${withinMs} ms`);
      fail(Object.assign(reason, { code: "ETIMEDOUT" }));
    });
    socket.once(address.tls === undefined ? "connect" : "secureConnect", () => {
      socket.off("error", fail);
      socket.removeAllListeners("timeout");
      socket.setTimeout(0);
      resolve(socket);
    });
  });
}

/** Node's codes for nobody saying anything; any other failure was said by someone. */
const silences = new Set(["ETIMEDOUT", "EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH"]);

/** What a fresh socket meets at a backend. */
export async function meet(address: BackendAddress, keepalive: Keepalive, withinMs: number): Promise<Met> {
  const socket = await connectUpgrade(address, keepalive, withinMs);
  if (!(socket instanceof Failure)) {
    socket.destroy();
    return "answer";
  }
  const { cause } = socket;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return silences.has(code) ? "silence" : "refusal";
}
