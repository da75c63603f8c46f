/**
 * Step 5 of 7: on which lane to that backend?
 *
 * Pure but for the lanes it asks. A lane with room takes the leg at once; else it waits, unsent, until a lane opens or
 * the backend cannot be reached. Next: relay.
 */
import type { Leg } from "./leg.ts";
import type { Upstreams } from "./upstreams.ts";

/** Gives the leg to its backend's lanes. It hears `ready` or `refused`, perhaps before this returns. */
export function dial(upstreams: Upstreams, leg: Leg): void {
  const lanes = upstreams.lanesOf(leg.backend);
  if (lanes === undefined) return leg.refused(upstreams.unknown(leg.backend));
  const lane = lanes.take(leg.key);
  if (lane !== undefined) return leg.ready(lane);
  // Before the wait begins: it may be refused at once.
  leg.waitsIn = lanes;
  lanes.wait(leg);
}
