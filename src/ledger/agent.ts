/** A User-Agent without what differs from build to build and from host to host: "kubelet/v1.36.1 (linux/amd64)" is "kubelet". */
import { limits } from "../base/limits.ts";
import { clipped } from "../base/own-text.ts";

/**
 * The product alone (RFC 9110 §10.1.5), "unknown" without one. client-go writes `binary/version (os/arch) kubernetes/commit`
 * and some controllers a component behind it: `.../leader-election`, which is kept, for it tells the two apart.
 */
export function agentOf(userAgent: string): string {
  const product = /^[^\s/()]+/.exec(clipped(userAgent, limits.userAgentChars))?.[0] ?? "";
  const clean = product.slice(0, limits.agentChars).replace(/[^\w.-]/g, "_");
  if (clean === "") return "unknown";
  return userAgent.endsWith("/leader-election") ? `${clean}/leader-election` : clean;
}
