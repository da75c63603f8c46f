/** Protects the API from DNS rebinding (A56): a browser may resolve a foreign web page's host name to 127.0.0.1. */
import { isLoopback } from "../../../base/address.ts";

/** True if the Host header names this machine's loopback, with or without a port. */
export function isLocalHost(host: string): boolean {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?$/.exec(host) ?? [];
  const name = (bracketed ?? plain ?? "").toLowerCase();
  return name !== "" && isLoopback(name);
}
