/**
 * Sizes the window of a backend's stream: larger for a fast reader at a long distance, smaller for all when memory is
 * short.
 */

import { limits } from "../../base/limits.ts";
import type { Stream } from "../../h2/session/stream.ts";

/** The round-trip time to the backend, in ms; 0 while it is not known. */
export type Distance = { readonly rttMs: number };

/**
 * `delivered`: octets that the client has taken since the last change. Doubles a window each time that it was used up
 * twice, but never beyond what arrives in one round trip: octets beyond that only wait here, and leave the processor's
 * caches meanwhile (a LIST over loopback cost twice as much). Returns what counts as delivered from here on.
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
