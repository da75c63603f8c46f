/**
 * The fields of a journal entry in the log and in the event stream. Fields with the same meaning have the same name in
 * all entries. If kube-apiserver's request log (httplog) has such a field, the name is httplog's, so that queries can
 * join both logs.
 */
import type { Entry } from "../../events/journal.ts";

export type FieldValue = string | number | readonly string[];

const names: Readonly<Record<string, string>> = {
  client: "srcIP",
  path: "URI",
  auditId: "audit-ID",
  version: "resourceVersion",
};

const namesByKind: { readonly [K in Entry["kind"]]?: Readonly<Record<string, string>> } = {
  "request.ended": { code: "resp", durationMs: "latency" },
  "lease.suspect": { subject: "user" },
};

export function fieldsOf(entry: Entry): [string, FieldValue][] {
  const { kind, ...rest } = entry;
  const own = namesByKind[kind] ?? {};
  return Object.entries<FieldValue>(rest).map(([name, value]) => {
    const written = own[name] ?? names[name] ?? name;
    // The latency is written as a duration in Go's format, as in httplog.
    return [written, written === "latency" ? `${String(value)}ms` : value];
  });
}

export const levels = ["Error", "Warning", "Info", "Debug"] as const;
export type Level = (typeof levels)[number];

type Kinds = readonly Entry["kind"][];

/** The kinds of entries with level Error; those with Warning and Debug follow. All other kinds have Info. */
const errors: Kinds = [
  "internal.error",
  "listener.lost",
  "config.refused",
  "certificate.refused",
  "identity.refused",
  "successor.failed",
  "worker.lost",
];
const warnings: Kinds = [
  "backend.api_missing",
  "cache.progress_delayed",
  "cache.stalled",
  "certificate.expiring",
  "discovery.backends_retained",
  "discovery.failed",
  "downstream_connection.refused",
  "event.version_regressed",
  "lease.suspect",
  "operation.refused",
  "passthrough.refused",
  "relist_storm.detected",
  "replica.lost",
  "request.failed",
  "request.refused",
  "response.stale",
  "review.failed",
  "tracing.failed",
  "stale_read_guard.bypassed",
  "watch.hung",
  "watch.replay_loop",
  "watches.ended",
];
/** The kinds of entries with level Debug. Even a healthy proxy writes them again and again. */
const details: Kinds = ["upstream_connection.opened"];

const levelByKind: ReadonlyMap<string, Level> = new Map([
  ...errors.map((kind) => [kind, "Error"] as const),
  ...warnings.map((kind) => [kind, "Warning"] as const),
  ...details.map((kind) => [kind, "Debug"] as const),
]);

export function levelOf(entry: Entry): Level {
  if (entry.kind === "incident.opened") return entry.severity === "critical" ? "Error" : "Warning";
  if (entry.kind === "backend.changed") return isFailed(entry.to) ? "Warning" : "Info";
  return levelByKind.get(entry.kind) ?? "Info";
}

function isFailed(state: string): boolean {
  return state === "suspect" || state === "dead";
}
