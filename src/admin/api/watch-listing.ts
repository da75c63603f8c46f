/** `/api/v1/watches`: every open watch, its client, its version, and the age of its last event. */
import { limits } from "../../base/limits.ts";
import type { Exchange } from "../../proxy/request/exchange.ts";
import { watchStates } from "../../watch/session/watch-state.ts";
import type { Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import { callerFields } from "./client-listing.ts";
import { age, count, type Fields, flag, listingOf, oneOf, text, time, within } from "./fields.ts";

const states = ["pending", "opening", "listing", "live", "opaque", "hung", "stale", "parked", "ended"];

/** Those of a watch's progress are 0 or empty if the proxy does not decode it. */
export const watchFields = {
  auditId: text(
    "Audit ID: identifies it for a move, and in the apiserver's audit log.",
    ({ context }) => context.auditId,
  ),
  ...within(callerFields, ({ context }: Exchange) => context.caller),
  port: count("The port of its connection.", ({ context }) => context.client.port),
  protocol: text('The ALPN protocol; "" without ALPN.', ({ context }) => context.client.alpn),
  resource: text('"group/name"; the core group is empty.', ({ context }) => context.resource),
  path: text("The request's path and query, without tokens.", pathOf),
  backend: text("The backend that serves it now.", "backend"),
  state: oneOf("Its state.", states, stateOf),
  startedAt: time("When the request came.", ({ context }) => context.at),
  ageMs: age("Time since then.", ({ context }) => context.at),
  bytes: count("Bytes sent to its client.", "sentBytes"),
  queuedBytes: count("Bytes that wait until its client reads.", "queuedBytes"),
  startResourceVersion: text(
    "The resourceVersion of the request.",
    ({ watch }) => watch?.asked.request.version ?? "",
  ),
  resourceVersion: text("The version that it has reached.", ({ watch }) => watch?.progress.cursor ?? ""),
  lastEventAgeMs: age("Time since its latest event.", ({ watch }) => watch?.progress.lastEventAt ?? -1),
  lastBookmarkAgeMs: age(
    "Time since its latest bookmark.",
    ({ watch }) => watch?.progress.lastBookmarkAt ?? -1,
  ),
  events: count("Events delivered.", ({ watch }) => watch?.progress.events ?? 0),
  moves: count("Moves from one backend to another.", ({ watch }) => watch?.moves ?? 0),
  session: oneOf(
    "The state of its upstream streams; empty if no response has come or its bytes cannot be read.",
    [...watchStates, ""],
    ({ watch }) => watch?.state ?? "",
  ),
  isResumable: flag(
    "True if it could continue on another backend now, without a lost or repeated event.",
    ({ watch }) => watch?.progress.resumeVersion !== undefined,
  ),
  versionRegressions: count(
    "Events with a lower version than an earlier one.",
    ({ watch }) => watch?.progress.versionRegressions ?? 0,
  ),
} satisfies Fields<Exchange>;

export function watchListing(live: () => readonly Exchange[], times: Times): Listing<Exchange> {
  return listingOf(
    {
      kind: "WatchList",
      rows: () => live().filter(({ context }) => context.kind === "watch"),
      sort: "-ageMs",
      fields: watchFields,
      by: "resource backend state client agent subject auditId ageMs events bytes moves session queuedBytes",
      columns: { idleMs: (exchange) => times.now() - lastAt(exchange) },
    },
    times,
  );
}

/** Returns the watch's state: "pending" before a response, "opaque" if the proxy cannot decode its content type. */
function stateOf({ watch, isAnswered }: Exchange): string {
  if (!isAnswered) return "pending";
  if (watch === undefined) return "opaque";
  if (watch.isHung) return "hung";
  if (watch.attempt === undefined) return "parked";
  return watch.stalledMs >= 0 ? "stale" : watch.progress.phase;
}

function lastAt({ context, watch }: Exchange): number {
  return Math.max(context.at, watch?.progress.lastEventAt ?? -1);
}

/** A watch over WebSocket carries its token in a header field, but a query may contain one all the same (A55). */
function pathOf({ context }: Exchange): string {
  const path = context.fields.find(({ name }) => name === ":path")?.value ?? "";
  return path.replace(/([?&](?:access_)?token=)[^&]*/gi, "$1[redacted]").slice(0, limits.apiTextChars);
}
