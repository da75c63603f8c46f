/** Counters since the process began, as one JSON object: who asks twice can draw their growth. Pure. */

import type { JsonObject } from "../http/listing.ts";
import type { Snapshot } from "./family.ts";

/** What the process itself is known by. Times are milliseconds. */
export type OwnFigures = {
  readonly at: string;
  /** The configuration's name. */
  readonly name: string;
  readonly uptimeMs: number;
  /** Of the processor, all threads together. */
  readonly cpuMs: number;
  /** How late the event loop was at worst since somebody asked last. */
  readonly eventLoopDelayMs: number;
  readonly rssBytes: number;
};

/** Requests are summed by the class of their code ("2xx"); "none" are those that never had an answer. */
export function figuresOf(
  snapshot: Pick<Snapshot, "version" | "requests" | "watchEvents">,
  own: OwnFigures,
): JsonObject {
  const requests: Record<string, number> = {};
  for (const { code, count } of snapshot.requests) {
    const kind = code === 0 ? "none" : `${Math.floor(code / 100)}xx`;
    requests[kind] = (requests[kind] ?? 0) + count;
  }
  return { kind: "Stats", version: snapshot.version, requests, watchEvents: snapshot.watchEvents, ...own };
}
