/**
 * Reads the ClientHello of a passthrough client, and selects the cluster and its backends by the server name in it. It
 * reads nothing behind the hello.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { RouteConfig } from "../../config/config.ts";
import type { Journal } from "../../events/journal.ts";
import { plainHttpOnTls } from "../h1/h1-refusal.ts";
import { entryNamed, type Hello, readHello } from "../net/client-hello.ts";
import { peek, type Seen } from "../net/peek.ts";
import type { Ends } from "../net/proxy-protocol.ts";
import { closeAfterFlush } from "../net/socket-end.ts";

/** The client, and the listener that it reached. */
export type Caller = { readonly ends: Ends; readonly listener: string };

/** A complete hello, and all bytes that came with it. */
export type ReadHello = { readonly hello: Extract<Hello, { state: "whole" }>; readonly bytes: Buffer };

/** Takes over a socket whose hello is read. */
export type HelloReceiver = {
  pass(down: Socket, read: ReadHello, caller: Caller, route: RouteConfig): void;
};

type Parts = { readonly clock: Clock; readonly journal: Journal };

/** Fatal TLS alerts (RFC 8446 §6), sent in clear while nothing is negotiated. */
const alert = (code: number): Buffer => Buffer.from([0x15, 3, 3, 0, 2, 2, code]);
const decodeError = alert(50);
const unrecognizedName = alert(112);

/** Takes over a new socket; `receiverOf` returns the cluster that a route leads to. */
export function routeBySni(
  down: Socket,
  caller: Caller & { readonly routes: readonly RouteConfig[] },
  receiverOf: (cluster: string) => HelloReceiver,
  parts: Parts,
): void {
  peek(down, parts.clock, helloIn, ({ hello, bytes }) => {
    // Set now and not earlier: a client that ends without a hello is gone.
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

/** Undefined: no route has this name. The configuration has checked that none has two. */
export function routeFor(
  routes: readonly RouteConfig[],
  serverName: string | undefined,
): RouteConfig | undefined {
  const named =
    serverName === undefined ? undefined : entryNamed(routes, ({ serverNames }) => serverNames, serverName);
  return named ?? routes.find(({ serverNames }) => serverNames.length === 0);
}

/** Without an alert only the connection's end is sent, after which client-go reconnects. */
export function refuseCaller(
  down: Socket,
  { ends, listener }: Caller,
  { code, origin, message }: Failure,
  { clock, journal, answer }: Parts & { readonly answer?: Buffer },
): void {
  const client = ends.source.address;
  journal.write({ kind: "passthrough.refused", client, listener, code, origin, message });
  if (answer === undefined) down.end();
  else down.end(answer);
  closeAfterFlush(down, clock);
}

/** Takes all bytes: they are sent to the backend again. The buffer that holds them is not reused. */
function helloIn(seen: Buffer): Seen<{ readonly hello: Hello; readonly bytes: Buffer }> | undefined {
  const hello = readHello(seen);
  return hello.state === "partial" ? undefined : { verdict: { hello, bytes: seen }, taken: seen.length };
}
