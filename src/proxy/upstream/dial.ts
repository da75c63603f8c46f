/**
 * Step 5 of 7: on which upstream connection to that backend?
 *
 * Pure but for the upstream connections it asks. An upstream connection with room takes the leg at once; else it waits, unsent, until an upstream connection opens or
 * the backend cannot be reached. Next: relay.
 */
import type { Leg } from "./leg.ts";
import type { PoolSet } from "./pool-set.ts";

/** Gives the leg to its backend's upstream connections. It hears `ready` or `refused`, perhaps before this returns. */
export function dial(pools: PoolSet, leg: Leg): void {
  const connections = pools.poolOf(leg.backend);
  if (connections === undefined) return leg.refused(pools.unknown(leg.backend));
  const connection = connections.take(leg.key);
  if (connection !== undefined) return leg.ready(connection);
  // Before the wait begins: it may be refused at once.
  leg.waitsIn = connections;
  connections.wait(leg);
}
