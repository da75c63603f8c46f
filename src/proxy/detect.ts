/** What does a new socket speak? Looks at its first octets without taking them (A22: within a deadline). */
import type net from "node:net";
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";

export type Spoken = "tls" | "h2" | "http/1.1";

/** TLS's record type for a handshake (RFC 8446 §5.1). */
const tlsHandshake = 0x16;
/** The start of HTTP/2's preface; no HTTP/1.1 request line begins so. */
const preface = "PRI * HTTP/2.0";

export function detect(socket: net.Socket, clock: Clock, tell: (spoken: Spoken) => void): void {
  const stopTimer = clock.after(limits.handshakeMs, () => socket.destroy());
  socket.once("close", stopTimer);
  let seen: Buffer = Buffer.alloc(0);
  // Not "readable" with unshift: what is put back makes it fire again at once, and one octet would spin for ever.
  const look = (chunk: Buffer): void => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const spoken = spokenIn(seen);
    if (spoken === undefined) return;
    stopTimer();
    socket.off("data", look);
    socket.pause();
    socket.unshift(seen);
    tell(spoken);
    // A TLS socket takes over the handle; the others read on as soon as they listen.
    if (spoken !== "tls") socket.resume();
  };
  socket.on("data", look);
}

/** Undefined: too few octets to tell. */
function spokenIn(chunk: Buffer): Spoken | undefined {
  if (chunk[0] === tlsHandshake) return "tls";
  const start = chunk.toString("latin1", 0, preface.length);
  if (start === preface) return "h2";
  return preface.startsWith(start) ? undefined : "http/1.1";
}
