/** One problem, present or past: since when, which clients it affects, and the evidence. Times are clock readings. */
import { limits } from "../base/limits.ts";
import type { IncidentKind } from "./kinds.ts";
import { incidentLimits } from "./limits.ts";

/** One measurement, its detector and its limit; `unit` "" and both numbers 0 if the sentence says everything. */
export type EvidenceRow = {
  readonly at: number;
  readonly detector: string;
  readonly value: number;
  readonly threshold: number;
  readonly unit: "" | "ms" | "times" | "backends";
  readonly text: string;
  /** The matching entry in the apiserver's audit log. */
  readonly auditId?: string;
};

/** What was done about it, and what it cost. */
export type Impact = {
  watchesMoved: number;
  slowestMoveMs: number;
  watchesEnded: number;
  tunnelsEnded: number;
  requestsFailed: number;
};

/**
 * The affected clients: the first few by name, all as a number. A client that is hit twice counts once among the named
 * ones.
 */
export type Affected = { readonly names: string[]; count: number };

export type Incident = {
  readonly id: number;
  readonly kind: IncidentKind;
  /** A backend, a client with its watch, a lease, a certificate, or a file. */
  readonly subject: string;
  /** "" if no backend is concerned. */
  readonly backend: string;
  readonly summary: string;
  /** When its cause began, as far as known, and when it was detected. */
  readonly startedAt: number;
  readonly detectedAt: number;
  readonly evidence: EvidenceRow[];
  /** Rows dropped from the middle. */
  omitted: number;
  readonly impact: Impact;
  readonly affected: Affected;
  lastSeenAt: number;
  /** -1 while it lasts. */
  endedAt: number;
  ending: string;
};

export function noImpact(): Impact {
  return { watchesMoved: 0, slowestMoveMs: 0, watchesEnded: 0, tunnelsEnded: 0, requestsFailed: 0 };
}

export function addImpact(impact: Impact, more: Partial<Impact>): void {
  impact.watchesMoved += more.watchesMoved ?? 0;
  impact.slowestMoveMs = Math.max(impact.slowestMoveMs, more.slowestMoveMs ?? 0);
  impact.watchesEnded += more.watchesEnded ?? 0;
  impact.tunnelsEnded += more.tunnelsEnded ?? 0;
  impact.requestsFailed += more.requestsFailed ?? 0;
}

/** Names are truncated, because a client chooses its own User-Agent. */
export function addAffected(affected: Affected, name: string): void {
  const clipped = name.slice(0, limits.incidentNameChars);
  if (affected.names.includes(clipped)) return;
  affected.count += 1;
  if (affected.names.length < limits.incidentClients) affected.names.push(clipped);
}

/**
 * The first rows prove the incident and the last ones show its present state, so excess rows are dropped from the
 * middle.
 */
export function addEvidence(incident: Incident, row: EvidenceRow): void {
  const { evidence } = incident;
  evidence.push({ ...row, text: row.text.slice(0, limits.incidentTextChars) });
  incident.lastSeenAt = Math.max(incident.lastSeenAt, row.at);
  if (evidence.length <= incidentLimits.incidentEvidence) return;
  evidence.splice(incidentLimits.incidentEvidence / 2, 1);
  incident.omitted += 1;
}
