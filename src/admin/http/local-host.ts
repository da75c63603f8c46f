/** Whom a browser believes to be asking: a name that leads to loopback only today may be somebody else's (DNS rebinding, A56). */
import { isLoopback } from "../../base/address.ts";

/** Is this Host field this machine's own name for itself? With or without a port. */
export function isLocalHost(host: string): boolean {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?$/.exec(host) ?? [];
  const name = (bracketed ?? plain ?? "").toLowerCase();
  return name !== "" && isLoopback(name);
}
