/** `/api/v1/watches`: every open watch, who has it, where it stands, and when something last came. */
import { limits } from "../../base/limits.ts";
import type { Exchange } from "../../proxy/request/relay.ts";
import type { Watching } from "../../watch/session/watching.ts";
import type { Json, JsonObject, Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import { callerView } from "./caller-view.ts";

export function watchListing(live: () => readonly Exchange[], times: Times): Listing<Exchange> {
  return {
    kind: "WatchList",
    rows: () => live().filter(({ order }) => order.kind === "watch"),
    sort: "-ageMs",
    columns: {
      resource: ({ order }) => order.resource,
      backend: ({ backend }) => backend,
      state: stateOf,
      client: ({ order }) => order.client.address,
      agent: ({ order }) => order.caller.agent,
      subject: ({ order }) => order.caller.subject.name,
      auditId: ({ order }) => order.auditId,
      ageMs: ({ order }) => times.now() - order.at,
      idleMs: (exchange) => times.now() - lastAt(exchange),
      events: ({ watching }) => watching?.progress.events ?? 0,
      bytes: ({ sentBytes }) => sentBytes,
      moves: ({ watching }) => watching?.legs.moves ?? 0,
      queuedBytes: ({ queuedBytes }) => queuedBytes,
    },
    view: (exchange) => viewOf(exchange, times),
  };
}

/** As it is known; one that is not answered yet is "unanswered", one that nobody here can read "opaque". */
function stateOf({ watching, isAnswered }: Exchange): string {
  if (!isAnswered) return "unanswered";
  if (watching === undefined) return "opaque";
  if (watching.legs.isHung) return "hung";
  if (watching.leg === undefined) return "waiting";
  return watching.legs.stalledMs >= 0 ? "stale" : watching.progress.phase;
}

function lastAt({ order, watching }: Exchange): number {
  return Math.max(order.at, watching?.progress.lastEventAt ?? -1);
}

function viewOf(exchange: Exchange, times: Times): Json {
  const { timeOf, ageOf } = times;
  const { order, watching, backend, sentBytes, queuedBytes } = exchange;
  return {
    auditId: order.auditId,
    ...callerView(order.caller),
    port: order.client.port,
    protocol: order.client.alpn,
    resource: order.resource,
    path: pathOf(exchange),
    backend,
    state: stateOf(exchange),
    startedAt: timeOf(order.at),
    ageMs: ageOf(order.at),
    bytes: sentBytes,
    queuedBytes,
    ...(watching === undefined ? unread : progressView(watching, times)),
  };
}

/** Of one that nobody here reads. */
const unread = {
  askedFrom: "",
  version: "",
  lastEventAgeMs: null,
  lastBookmarkAgeMs: null,
  events: 0,
  moves: 0,
  hasShadow: false,
  mayMove: false,
  violations: 0,
};

function progressView({ progress, legs }: Watching, { ageOf }: Times): JsonObject {
  return {
    askedFrom: legs.askedFrom,
    version: progress.cursor,
    lastEventAgeMs: ageOf(progress.lastEventAt),
    lastBookmarkAgeMs: ageOf(progress.lastBookmarkAt),
    events: progress.events,
    moves: legs.moves,
    hasShadow: legs.isMerged,
    mayMove: progress.resumeVersion !== undefined,
    violations: progress.violations,
  };
}

/** A watch by websocket carries its token in a field, never in its path; a query may hold one all the same (A55). */
function pathOf({ order }: Exchange): string {
  const path = order.fields.find(({ name }) => name === ":path")?.value ?? "";
  return path.replace(/([?&](?:access_)?token=)[^&]*/gi, "$1[redacted]").slice(0, limits.apiTextChars);
}
