/**
 * Journals finished requests at the level that the operator configures (`logging.accessLog`): the client, the request,
 * the backend, the result, and why the request ended. Bodies, queries and credentials are never journaled. Also ends
 * the requests' traces, because they contain the same facts.
 */

import { clipped } from "../../base/detach.ts";
import { limits } from "../../base/limits.ts";
import type { Entry, Journal } from "../../events/journal.ts";
import type { Config } from "../../ops/config/config.ts";
import type { Exchange, ExchangeEnd } from "./exchange.ts";
import { namesOf } from "./request-names.ts";

export type AccessLogLevel = Config["logging"]["accessLog"];

/** Logs a finished exchange (a request with its response). `now`: a clock reading. */
export type AccessLogger = (exchange: Exchange, end: ExchangeEnd, now: number) => void;

/** Returns undefined if this level journals no requests. */
export function accessLogger(level: AccessLogLevel, journal: Journal): AccessLogger | undefined {
  const isWanted = wanted[level];
  if (isWanted === undefined) return undefined;
  return (exchange, end, now) => {
    if (isWanted(exchange, end)) journal.write(entryOf(exchange, end, now));
  };
}

const isLong = ({ context }: Exchange): boolean => context.kind !== "plain";

/** Requests that the proxy refused itself are journaled as "request.failed" already. */
const isError = ({ status }: Exchange, end: ExchangeEnd): boolean => status >= 500 && end !== "refused";

const wanted: Readonly<
  Record<AccessLogLevel, ((exchange: Exchange, end: ExchangeEnd) => boolean) | undefined>
> = {
  None: undefined,
  Errors: isError,
  LongRunning: (exchange, end) => isLong(exchange) || isError(exchange, end),
  All: () => true,
};

/** Ends the trace of a finished exchange. The trace contains the same facts as the access log, except for the user. */
export function endTrace(
  { context, status, sentBytes, attempts }: Exchange,
  end: ExchangeEnd,
  now: number,
): void {
  const { client, userAgent, verb, path, auditId } = namesOf(context);
  const { method } = context;
  const protocol = context.client.alpn === "h2" ? "2" : "1.1";
  const facts = { method, path, verb, auditId, client, userAgent, protocol };
  attempts.trace?.end({ ...facts, code: status, end, bytes: sentBytes }, now);
}

function entryOf(
  { context, status, backend, sentBytes, watch }: Exchange,
  end: ExchangeEnd,
  now: number,
): Entry {
  const { resource, at } = context;
  return {
    kind: "request.ended",
    ...namesOf(context),
    resource: clipped(resource, limits.resourceChars),
    backend,
    code: status,
    end,
    bytes: sentBytes,
    events: watch?.progress.events ?? 0,
    version: watch?.progress.resumeVersion ?? "",
    moves: watch?.moves ?? 0,
    durationMs: Math.round((now - at) * 1000) / 1000,
  };
}
