/** `/api/v1/incidents`, and one incident. */
import type { Incident } from "../../incidents/incident.ts";
import { incidentKinds } from "../../incidents/kinds.ts";
import type { Json, Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";

export function incidentListing(all: () => readonly Incident[], times: Times): Listing<Incident> {
  return {
    kind: "IncidentList",
    rows: all,
    sort: "-id",
    columns: {
      id: ({ id }) => id,
      kind: ({ kind }) => kind,
      severity: ({ kind }) => incidentKinds[kind].severity,
      state: ({ endedAt }) => (endedAt < 0 ? "active" : "ended"),
      subject: ({ subject }) => subject,
      backend: ({ backend }) => backend,
      summary: ({ summary }) => summary,
      startedAt: ({ startedAt }) => startedAt,
      lastSeenAt: ({ lastSeenAt }) => lastSeenAt,
    },
    view: (incident) => incidentView(incident, times.timeOf, times.now()),
  };
}

/** `timeOf` converts a clock reading to a time of day; `now` is a clock reading. */
export function incidentView(incident: Incident, timeOf: (at: number) => string, now: number): Json {
  const { startedAt, detectedAt, endedAt, lastSeenAt, evidence, affected } = incident;
  const isActive = endedAt < 0;
  return {
    id: incident.id,
    kind: incident.kind,
    severity: incidentKinds[incident.kind].severity,
    state: isActive ? "active" : "ended",
    subject: incident.subject,
    backend: incident.backend,
    summary: incident.summary,
    startedAt: timeOf(startedAt),
    detectedAt: timeOf(detectedAt),
    detectionMs: Math.round(detectedAt - startedAt),
    lastSeenAt: timeOf(lastSeenAt),
    endedAt: isActive ? null : timeOf(endedAt),
    durationMs: Math.round((isActive ? now : endedAt) - startedAt),
    resolution: incident.ending,
    impact: { ...incident.impact },
    affected: { count: affected.count, names: [...affected.names] },
    evidence: evidence.map(({ at, auditId = "", ...row }) => ({ at: timeOf(at), ...row, auditId })),
    evidenceOmitted: incident.omitted,
  };
}
