/**
 * Converts the record of a trace to spans of OpenTelemetry's SDK, with the attributes of OpenTelemetry's semantic
 * conventions for HTTP. The attribute `audit-id` is also on kube-apiserver's own spans.
 */
import { SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import type { SpanRecord, TraceRecord } from "../../../proxy/observe/request-trace.ts";
import { withoutSecrets } from "../events/log.ts";

/** The instrumentation scope. All spans share one object, because the exporter groups spans by it. */
const scope = { name: "watchkeeper" };

type Attributes = ReadableSpan["attributes"];
type Resource = ReadableSpan["resource"];

type Part = {
  readonly name: string;
  readonly kind: SpanKind;
  readonly spanId: string;
  readonly parentId: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly isError: boolean;
};

/** Returns the request's span and its child spans. `newId` returns a random span id. */
export function spansOf(record: TraceRecord, resource: Resource, newId: () => string): ReadableSpan[] {
  const parts = record.spans.map((span) => partOf(span, record, newId()));
  return [rootOf(record), ...parts].map((part) => spanOf(part, record.traceId, resource));
}

/**
 * If a request ends without a response for one of these reasons, its span counts as an error, because the proxy or a
 * backend caused the end.
 */
const failedEnds: ReadonlySet<string> = new Set(["backend_gone", "refused"]);

function rootOf(record: TraceRecord): Part {
  const { method, verb, path, auditId, client, userAgent, protocol, code, end, bytes } = record;
  const isError = code >= 500 || (code === 0 && failedEnds.has(end));
  return {
    name: `${method} ${verb}`,
    kind: SpanKind.SERVER,
    spanId: record.spanId,
    parentId: record.parentId,
    startMs: record.startMs,
    endMs: record.endMs,
    isError,
    attributes: {
      "http.request.method": method,
      "url.scheme": "https",
      "url.path": withoutSecrets(path),
      "client.address": client,
      "user_agent.original": withoutSecrets(userAgent),
      "network.protocol.name": "http",
      "network.protocol.version": protocol,
      "http.response.body.size": bytes,
      "audit-id": auditId,
      "watchkeeper.verb": verb,
      "watchkeeper.end": end,
      ...(code === 0 ? {} : { "http.response.status_code": code }),
      ...(isError ? { "error.type": code === 0 ? end : String(code) } : {}),
      ...(record.droppedSpans === 0 ? {} : { "watchkeeper.dropped_spans": record.droppedSpans }),
    },
  };
}

function partOf(span: SpanRecord, { method, auditId, spanId: parentId }: TraceRecord, spanId: string): Part {
  const { name, startMs, endMs, backend, reason, from, error } = span;
  const isAttempt = name === "attempt";
  // An attempt is not marked as an error if another attempt was answered first.
  const isError = error !== "" && error !== "superseded";
  return {
    name: isAttempt ? method : `watchkeeper.${name}`,
    kind: isAttempt ? SpanKind.CLIENT : SpanKind.INTERNAL,
    spanId,
    parentId,
    startMs,
    endMs,
    isError,
    attributes: {
      "audit-id": auditId,
      ...(backend === "" ? {} : { "watchkeeper.backend": backend }),
      ...(isAttempt ? { "http.request.method": method } : {}),
      ...(isAttempt && reason !== "" ? { "watchkeeper.attempt": reason } : {}),
      ...(name === "move" ? { "watchkeeper.move.reason": reason, "watchkeeper.move.from": from } : {}),
      ...(error === "" ? {} : { "error.type": error }),
    },
  };
}

function spanOf(part: Part, traceId: string, resource: Resource): ReadableSpan {
  const { name, startMs, endMs, attributes, parentId, spanId } = part;
  const traceFlags = TraceFlags.SAMPLED;
  return {
    name,
    kind: part.kind,
    spanContext: () => ({ traceId, spanId, traceFlags }),
    ...(parentId === "" ? {} : { parentSpanContext: { traceId, spanId: parentId, traceFlags } }),
    startTime: hrTimeOf(startMs),
    endTime: hrTimeOf(endMs),
    duration: hrTimeOf(endMs - startMs),
    status: { code: part.isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes,
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** Returns the time as OpenTelemetry's pair of seconds and nanoseconds. */
function hrTimeOf(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
