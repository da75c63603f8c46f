/** Protects the API from DNS rebinding: a foreign web page's host name may resolve to 127.0.0.1 in a browser (A56). */
import { isLoopback } from "../../base/address.ts";

/** True if the Host header names this machine's loopback, with or without a port. */
export function isLocalHost(host: string): boolean {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?$/.exec(host) ?? [];
  const name = (bracketed ?? plain ?? "").toLowerCase();
  return name !== "" && isLoopback(name);
}
