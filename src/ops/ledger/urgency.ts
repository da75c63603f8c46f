/** Decides whose watches move first if many watches have lost their backend at once. */
import type { ClientKind } from "./client-kind.ts";

/**
 * Order in which watches move. 0: the control plane, and each program that renews a leader lease. 1: nodes. 2: all
 * others. A client can claim any User-Agent, so the urgency decides only the order, and the rate of the first class is
 * limited.
 */
export type Urgency = 0 | 1 | 2;

export function urgencyOf(kind: ClientKind): Urgency {
  if (kind === "control-plane") return 0;
  return kind === "node" ? 1 : 2;
}
