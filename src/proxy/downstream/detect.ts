/** What does a new socket speak? Looks at its first octets without taking them (A22: within a deadline). */
import type net from "node:net";
import type { Clock } from "../../base/clock.ts";
import { peek, type Seen } from "../net/peek.ts";

export type Spoken = "tls" | "h2" | "http/1.1";

/** TLS's record type for a handshake (RFC 8446 §5.1). */
const tlsHandshake = 0x16;
/** The start of HTTP/2's preface; no HTTP/1.1 request line begins so. */
const preface = "PRI * HTTP/2.0";

export function detect(socket: net.Socket, clock: Clock, tell: (spoken: Spoken) => void): void {
  peek(socket, clock, look, (spoken) => {
    tell(spoken);
    // A TLS socket takes over the handle; the others read on as soon as they listen.
    if (spoken !== "tls") socket.resume();
  });
}

function look(seen: Buffer): Seen<Spoken> | undefined {
  const verdict = spokenIn(seen);
  return verdict && { verdict, taken: 0 };
}

/** Undefined: too few octets to tell. */
function spokenIn(chunk: Buffer): Spoken | undefined {
  if (chunk[0] === tlsHandshake) return "tls";
  const start = chunk.toString("latin1", 0, preface.length);
  if (start === preface) return "h2";
  return preface.startsWith(start) ? undefined : "http/1.1";
}
