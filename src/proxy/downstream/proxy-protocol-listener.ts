/**
 * Determines the addresses of a new connection's two ends: the socket's own, or those in a PROXY header of a trusted
 * load balancer. If any other peer sends such a header, the connection is refused.
 */
import type net from "node:net";
import { type Networks, withoutMapping } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { type Decision, peek } from "../../upstream/net/peek.ts";
import { type Endpoint, type Ends, readHeader } from "../../upstream/net/proxy-protocol.ts";

export type ProxyProtocolRules = {
  /**
   * Disabled: no PROXY header is expected. Optional: trusted peers may send one. Required: they must send one, and
   * other peers are refused.
   */
  readonly mode: "Disabled" | "Optional" | "Required";
  readonly trusted: Networks;
};

/**
 * Calls `done` when the header is read, or at once if none is expected. Never calls `done` if the peer ends the
 * connection or sends nothing.
 */
export function readProxyHeader(
  socket: net.Socket,
  { mode, trusted }: ProxyProtocolRules,
  clock: Clock,
  done: (ends: Ends | Failure) => void,
): void {
  const own = new OwnEnds(socket);
  const isTrusted = trusted.has(own.source.address);
  if (mode === "Disabled") return done(own);
  if (mode === "Required" && !isTrusted) return done(refused("PROXY header from an untrusted source"));
  const look = (seen: Buffer): Decision<Ends | Failure> | undefined => {
    const header = readHeader(seen);
    if (header.state === "partial") return undefined;
    if (header.state === "absent") {
      const isMissing = mode === "Required";
      return { verdict: isMissing ? refused("PROXY header is missing") : own, taken: 0 };
    }
    if (!isTrusted) return { verdict: refused("PROXY header from an untrusted source"), taken: seen.length };
    if (header.state === "malformed")
      return { verdict: refused(`PROXY header is malformed: ${header.reason}`), taken: seen.length };
    return { verdict: header.ends ?? own, taken: header.length };
  };
  peek(socket, clock, look, done);
}

/**
 * The ends of the socket itself. The destination is seldom used, so it is read at each use and takes no memory while the
 * client is connected.
 */
class OwnEnds implements Ends {
  readonly #socket: net.Socket;
  readonly source: Endpoint;

  constructor(socket: net.Socket) {
    this.#socket = socket;
    this.source = endpointOf(socket.remoteAddress, socket.remotePort);
  }

  get destination(): Endpoint {
    return endpointOf(this.#socket.localAddress, this.#socket.localPort);
  }
}

function endpointOf(address = "", port = 0): Endpoint {
  return { address: withoutMapping(address), port };
}

function refused(message: string): Failure {
  return new Failure("bad-request", "client", message);
}
