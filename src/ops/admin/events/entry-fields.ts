/**
 * The fields of a journal entry in the log and in the event stream. Fields with the same meaning have the same name in
 * all entries. If kube-apiserver's request log (httplog) has such a field, the name is httplog's, so that queries can
 * join both logs.
 */
import { eventKinds, type Level } from "../../../events/event-kinds.ts";
import type { Entry } from "../../../events/journal.ts";

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

export function levelOf(entry: Entry): Level {
  if (entry.kind === "incident.opened") return entry.severity === "critical" ? "Error" : "Warning";
  if (entry.kind === "backend.changed") return isFailed(entry.to) ? "Warning" : "Info";
  return eventKinds[entry.kind].level;
}

function isFailed(state: string): boolean {
  return state === "suspect" || state === "dead";
}
