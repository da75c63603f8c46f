/** Reads the ClientHello of a passthrough client, and selects the cluster and its backends by the server name. */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import type { RouteConfig } from "../../ops/config/config.ts";
import { entryNamed, type Hello, readHello } from "../../upstream/net/client-hello.ts";
import { type Decision, peek } from "../../upstream/net/peek.ts";
import type { Ends } from "../../upstream/net/proxy-protocol.ts";
import { closeAfterFlush } from "../../upstream/net/socket-end.ts";
import { plainHttpOnTls } from "../h1/h1-refusal.ts";

export type PassthroughClient = { readonly ends: Ends; readonly listener: string };

/** A complete ClientHello, and all bytes that arrived with it. */
export type ReceivedHello = { readonly hello: Extract<Hello, { state: "whole" }>; readonly bytes: Buffer };

export type HelloReceiver = {
  pass(down: Socket, read: ReceivedHello, caller: PassthroughClient, route: RouteConfig): void;
};

type RouterParts = { readonly clock: Clock; readonly journal: Journal };

/** Fatal TLS alerts (RFC 8446 §6), sent in clear text because no keys are negotiated yet. */
const alert = (code: number): Buffer => Buffer.from([0x15, 3, 3, 0, 2, 2, code]);
const decodeError = alert(50);
const unrecognizedName = alert(112);

/** Takes over a new socket. `receiverOf` returns the receiver for a cluster's name. */
export function routeBySni(
  down: Socket,
  caller: PassthroughClient & { readonly routes: readonly RouteConfig[] },
  receiverOf: (cluster: string) => HelloReceiver,
  parts: RouterParts,
): void {
  peek(down, parts.clock, helloIn, ({ hello, bytes }) => {
    // Set only now. Before the ClientHello, Node must close the whole socket if a client closes its half.
    down.allowHalfOpen = true;
    const bad = (message: string, answer: Buffer): void =>
      refuseCaller(down, caller, new Failure("bad-request", "client", message), { ...parts, answer });
    if (hello.state === "foreign") return bad("Client does not use TLS", plainHttpOnTls());
    if (hello.state === "malformed") return bad(`ClientHello is malformed: ${hello.reason}`, decodeError);
    if (hello.state === "partial") return;
    const route = routeFor(caller.routes, hello.serverName);
    if (route === undefined) return bad("No route for this server name", unrecognizedName);
    receiverOf(route.cluster).pass(down, { hello, bytes }, caller, route);
  });
}

/**
 * Returns the route of this server name, or else the route without server names; undefined: there is neither. No two
 * routes share a name.
 */
export function routeFor(
  routes: readonly RouteConfig[],
  serverName: string | undefined,
): RouteConfig | undefined {
  const named =
    serverName === undefined ? undefined : entryNamed(routes, ({ serverNames }) => serverNames, serverName);
  return named ?? routes.find(({ serverNames }) => serverNames.length === 0);
}

/** Refuses a client with `answer`; without one, only closes the connection, after which client-go reconnects. */
export function refuseCaller(
  down: Socket,
  { ends, listener }: PassthroughClient,
  { code, origin, message }: Failure,
  { clock, journal, answer }: RouterParts & { readonly answer?: Buffer },
): void {
  const client = ends.source.address;
  journal.write({ kind: "passthrough.refused", client, listener, code, origin, message });
  if (answer === undefined) down.end();
  else down.end(answer);
  closeAfterFlush(down, clock);
}

/**
 * Reads the ClientHello; undefined: it is incomplete. Consumes all received bytes, because they will be forwarded to
 * the backend.
 */
function helloIn(seen: Buffer): Decision<{ readonly hello: Hello; readonly bytes: Buffer }> | undefined {
  const hello = readHello(seen);
  return hello.state === "partial" ? undefined : { verdict: { hello, bytes: seen }, taken: seen.length };
}
