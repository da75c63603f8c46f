/** How much a backend may send ahead: more to who reads fast on a long way, less to everybody when memory is short. */

import { limits } from "../../base/limits.ts";
import type { Stream } from "../../h2/session/stream.ts";

/** How far away the backend is, in ms there and back; 0 while that is not known. */
export type Distance = { readonly rttMs: number };

/**
 * `delivered`: octets that its client has taken since this was looked at last. Twice as much each time that a window was
 * used up twice, but never more than comes in one round trip: what is sent ahead of that only waits here, and leaves the
 * processor's caches meanwhile (a LIST over loopback cost twice as much). Returns what counts as delivered from here on.
 */
export function growWindow(up: Stream, way: Distance, delivered: number, isTight: boolean): number {
  const { size } = up.receiveWindow;
  if (isTight) {
    if (size > limits.streamWindowTightBytes) up.shrinkReceiveWindow(limits.streamWindowTightBytes);
    return delivered;
  }
  if (delivered < 2 * size) return delivered;
  const roundTripBytes = Math.floor(way.rttMs * limits.streamBytesPerMs);
  up.growReceiveWindow(Math.min(limits.streamWindowMostBytes, roundTripBytes, 2 * size));
  return 0;
}
