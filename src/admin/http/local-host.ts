/** Protects from DNS rebinding: a foreign name may resolve to loopback, so that a browser sends its page's requests here (A56). */
import { isLoopback } from "../../base/address.ts";

/** True if this Host field names this machine's loopback, with or without a port. */
export function isLocalHost(host: string): boolean {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?$/.exec(host) ?? [];
  const name = (bracketed ?? plain ?? "").toLowerCase();
  return name !== "" && isLoopback(name);
}
