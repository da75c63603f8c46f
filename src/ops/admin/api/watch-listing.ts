/** `/api/v1/watches`: every open watch, with its client, the version that it has reached, and the age of its last event. */
import type { Clock } from "../../../base/clock.ts";
import { limits } from "../../../base/limits.ts";
import { inSlices, stop } from "../../../base/slices.ts";
import type { Exchange } from "../../../proxy/request/exchange.ts";
import type { LifeEntry } from "../../../watch/session/watch-lives.ts";
import { watchStates } from "../../../watch/session/watch-state.ts";
import { withoutSecrets } from "../events/log.ts";
import type { JsonObject, Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import { callerFields } from "./client-listing.ts";
import {
  age,
  count,
  type Fields,
  flag,
  list,
  listingOf,
  oneOf,
  text,
  time,
  viewOf,
  within,
} from "./fields.ts";

const states = ["pending", "opening", "listing", "live", "opaque", "hung", "stale", "parked", "ended"];

/** The fields of a watch. If the proxy cannot decode the watch, its events, versions and ages are 0, "" or null. */
export const watchFields = {
  auditId: text(
    "Audit ID: names the watch in the move operation, and in the apiserver's audit log.",
    ({ context }) => context.auditId,
  ),
  ...within(callerFields, ({ context }: Exchange) => context.caller),
  port: count("The client's port.", ({ context }) => context.client.port),
  protocol: text('The ALPN protocol; "" without ALPN.', ({ context }) => context.client.alpn),
  resource: text('"group/name"; the core group is empty.', ({ context }) => context.resource),
  path: text("The request's path and query, without tokens.", pathOf),
  backend: text("The backend that serves the watch now.", "backend"),
  state: oneOf("The state of the watch.", states, stateOf),
  startedAt: time("When the request arrived.", ({ context }) => context.at),
  ageMs: age("Time since the request arrived.", ({ context }) => context.at),
  bytes: count("Bytes sent to the client.", "sentBytes"),
  queuedBytes: count("Bytes that wait until the client reads.", "queuedBytes"),
  startResourceVersion: text(
    "The resourceVersion of the request.",
    ({ watch }) => watch?.asked.version ?? "",
  ),
  resourceVersion: text(
    "The version that the watch has reached.",
    ({ watch }) => watch?.progress.cursor ?? "",
  ),
  lastEventAgeMs: age("Time since the latest event.", ({ watch }) => watch?.progress.lastEventAt ?? -1),
  lastBookmarkAgeMs: age(
    "Time since the latest bookmark.",
    ({ watch }) => watch?.progress.lastBookmarkAt ?? -1,
  ),
  events: count("Events delivered.", ({ watch }) => watch?.progress.events ?? 0),
  moves: count("Moves from one backend to another.", ({ watch }) => watch?.moves ?? 0),
  session: oneOf(
    "The state of the upstream streams; empty before the response, and if the proxy cannot decode it.",
    [...watchStates, ""],
    ({ watch }) => watch?.state ?? "",
  ),
  isResumable: flag(
    "True if the watch could continue on another backend now, without a lost or repeated event.",
    ({ watch }) => watch?.progress.resumeVersion !== undefined,
  ),
  versionRegressions: count(
    "Events with a lower version than an earlier one.",
    ({ watch }) => watch?.progress.versionRegressions ?? 0,
  ),
} satisfies Fields<Exchange>;

const lifeFields = {
  at: time("When the state changed.", "at"),
  state: oneOf("The state after the change, as in `session`.", watchStates, "state"),
  backend: text("The backend of the first upstream stream, or the one that was lost.", "backend"),
  version: text("The version that the watch had reached.", "version"),
} satisfies Fields<LifeEntry>;

export const watchDetailFields = {
  ...watchFields,
  life: list(
    "The latest changes of `session`, oldest first. watchkeeper keeps the latest 16,384 changes of all watches of a cluster.",
    lifeFields,
    ({ watch }) => watch?.life.entries ?? [],
  ),
} satisfies Fields<Exchange>;

/**
 * Resolves with the open watch that has this audit ID, as `/api/v1/watches/{id}` shows it; undefined: there is none.
 * Searches in time slices, because there may be 50,000 watches.
 */
export function watchDetail(
  live: readonly Exchange[],
  id: string,
  { clock, times }: { readonly clock: Clock; readonly times: Times },
): Promise<JsonObject | undefined> {
  let found: JsonObject | undefined;
  return new Promise((resolve) => {
    inSlices(
      clock,
      live,
      (exchange) => {
        const { context } = exchange;
        if (context.kind !== "watch" || context.auditId !== id) return undefined;
        found = viewOf(watchDetailFields, exchange, times);
        return stop;
      },
      () => resolve(found),
    );
  });
}

export function watchListing(live: () => readonly Exchange[], times: Times): Listing<Exchange> {
  return listingOf(
    {
      kind: "WatchList",
      rows: live,
      has: ({ context }) => context.kind === "watch",
      sort: "-ageMs",
      fields: watchFields,
      by: "resource backend state client agent clientKind subject auditId ageMs events bytes moves session queuedBytes",
      columns: { idleMs: (exchange) => times.now() - lastAt(exchange) },
    },
    times,
  );
}

/** Returns the watch's state: "pending" before the response, "opaque" if the proxy cannot decode its content type. */
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

/** Returns path and query without values that may be credentials: some clients send a token in the query (A55). */
function pathOf({ context }: Exchange): string {
  return withoutSecrets(context.target).slice(0, limits.apiTextChars);
}
