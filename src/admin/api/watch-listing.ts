/** `/api/v1/watches`: every open watch, its client, its version, and the age of its last event. */
import { limits } from "../../base/limits.ts";
import type { Exchange } from "../../proxy/request/exchange.ts";
import type { WatchSession } from "../../watch/session/watch-session.ts";
import type { Json, JsonObject, Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import { callerView } from "./caller-view.ts";

export function watchListing(live: () => readonly Exchange[], times: Times): Listing<Exchange> {
  return {
    kind: "WatchList",
    rows: () => live().filter(({ context }) => context.kind === "watch"),
    sort: "-ageMs",
    columns: {
      resource: ({ context }) => context.resource,
      backend: ({ backend }) => backend,
      state: stateOf,
      client: ({ context }) => context.client.address,
      agent: ({ context }) => context.caller.agent,
      subject: ({ context }) => context.caller.subject.name,
      auditId: ({ context }) => context.auditId,
      ageMs: ({ context }) => times.now() - context.at,
      idleMs: (exchange) => times.now() - lastAt(exchange),
      events: ({ watch }) => watch?.progress.events ?? 0,
      bytes: ({ sentBytes }) => sentBytes,
      moves: ({ watch }) => watch?.merge.moves ?? 0,
      session: ({ watch }) => watch?.state ?? "",
      queuedBytes: ({ queuedBytes }) => queuedBytes,
    },
    view: (exchange) => viewOf(exchange, times),
  };
}

/** Returns the watch's state: "pending" before a response, "opaque" if the proxy cannot decode its content type. */
function stateOf({ watch, isAnswered }: Exchange): string {
  if (!isAnswered) return "pending";
  if (watch === undefined) return "opaque";
  if (watch.merge.isHung) return "hung";
  if (watch.attempt === undefined) return "parked";
  return watch.merge.stalledMs >= 0 ? "stale" : watch.progress.phase;
}

function lastAt({ context, watch }: Exchange): number {
  return Math.max(context.at, watch?.progress.lastEventAt ?? -1);
}

function viewOf(exchange: Exchange, times: Times): Json {
  const { timeOf, ageOf } = times;
  const { context, watch, backend, sentBytes, queuedBytes } = exchange;
  return {
    auditId: context.auditId,
    ...callerView(context.caller),
    port: context.client.port,
    protocol: context.client.alpn,
    resource: context.resource,
    path: pathOf(exchange),
    backend,
    state: stateOf(exchange),
    startedAt: timeOf(context.at),
    ageMs: ageOf(context.at),
    bytes: sentBytes,
    queuedBytes,
    ...(watch === undefined ? unread : progressView(watch, times)),
  };
}

/** Fields of a watch that the proxy does not decode. */
const unread = {
  startResourceVersion: "",
  resourceVersion: "",
  lastEventAgeMs: null,
  lastBookmarkAgeMs: null,
  events: 0,
  moves: 0,
  session: "",
  isResumable: false,
  versionRegressions: 0,
};

function progressView(session: WatchSession, { ageOf }: Times): JsonObject {
  const { progress, merge } = session;
  return {
    startResourceVersion: merge.askedFrom,
    resourceVersion: progress.cursor,
    lastEventAgeMs: ageOf(progress.lastEventAt),
    lastBookmarkAgeMs: ageOf(progress.lastBookmarkAt),
    events: progress.events,
    moves: merge.moves,
    session: session.state,
    isResumable: progress.resumeVersion !== undefined,
    versionRegressions: progress.violations,
  };
}

/** A watch over WebSocket carries its token in a header field, but a query may contain one all the same (A55). */
function pathOf({ context }: Exchange): string {
  const path = context.fields.find(({ name }) => name === ":path")?.value ?? "";
  return path.replace(/([?&](?:access_)?token=)[^&]*/gi, "$1[redacted]").slice(0, limits.apiTextChars);
}
