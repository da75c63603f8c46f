/**
 * Step 5 of 7: on which lane to that backend?
 *
 * Pure but for the lanes it asks. A lane with room takes the request at once; else the request waits, unsent, until
 * a lane opens or the backend cannot be reached. Next: relay.
 */
import type { Failure } from "../failure.ts";
import type { Client } from "./client.ts";
import type { Lane } from "./lane.ts";
import type { LaneKey, LaneKind, Waiter } from "./lanes.ts";
import type { TrustClass } from "./trust.ts";
import type { Upstreams } from "./upstreams.ts";

/** What is to be sent: an exchange, of which only this matters here. */
export type Departing = {
  readonly backend: string;
  readonly order: { readonly client: Client };
  start(lane: Lane): void;
  /** Undoes the wait, should the client hang up meanwhile. */
  stopWaiting: () => void;
};

export type Wanted = { readonly trust: TrustClass; readonly kind: LaneKind };

/**
 * `wanted` is asked again while the request waits. `refused` is called when nothing was sent and nothing will be:
 * another backend may be asked.
 */
export function dial(
  upstreams: Upstreams,
  exchange: Departing,
  wanted: () => Wanted,
  refused: (failure: Failure) => void,
): void {
  const lanes = upstreams.lanesOf(exchange.backend);
  if (lanes === undefined) return refused(upstreams.unknown(exchange.backend));
  const keyNow = (): LaneKey => upstreams.keyFor(wanted(), exchange.order.client);
  const key = keyNow();
  const lane = lanes.take(key);
  if (lane !== undefined) return exchange.start(lane);
  const waiter: Waiter = { key, wanted: keyNow, ready: (ready) => exchange.start(ready), refused };
  // Before the wait begins: it may be refused at once, and the next backend's wait must not be overwritten.
  exchange.stopWaiting = () => lanes.forget(waiter);
  lanes.wait(waiter);
}
