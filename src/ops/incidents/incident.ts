/** A present or past problem, its evidence and the affected clients. All times are clock readings in ms. */
import { limits } from "../../base/limits.ts";
import type { IncidentKind } from "./kinds.ts";
import { incidentLimits } from "./limits.ts";

/**
 * One piece of evidence: a measurement, the detector that made it, and the limit of this detector. If nothing was
 * measured, `unit` is "", and `value` and `threshold` are 0.
 */
export type EvidenceRow = {
  readonly at: number;
  readonly detector: string;
  readonly value: number;
  readonly threshold: number;
  readonly unit: "" | "ms" | "times" | "backends";
  readonly text: string;
  readonly auditId?: string;
  /** Number of earlier rows with the same finding that were replaced by this row; default: 0. */
  readonly repeats?: number;
};

/**
 * Number of watches, tunnels and requests that the problem affected. `slowestMoveMs`: the longest time (ms) that it
 * took to move a watch to another backend.
 */
export type Impact = {
  watchesMoved: number;
  slowestMoveMs: number;
  watchesEnded: number;
  tunnelsEnded: number;
  requestsFailed: number;
};

/**
 * A set of clients: the names of the first few, and the number of all. A client whose name is not in `names` may be
 * counted more than once.
 */
export type ClientNames = { readonly names: string[]; count: number };

export type Incident = {
  readonly id: number;
  readonly kind: IncidentKind;
  /**
   * What the incident is about, such as a backend, a client and the resource that it watches, a lease, a certificate,
   * or a file.
   */
  readonly subject: string;
  /** Name of the backend that the incident concerns; "": none. */
  readonly backend: string;
  /** Cluster that the incident is about, as in the journal; "": it is about none, or only one cluster exists. */
  readonly cluster: string;
  summary: string;
  /** Clock reading (ms) at which the cause began, as far as the evidence shows. */
  readonly startedAt: number;
  readonly detectedAt: number;
  readonly evidence: EvidenceRow[];
  omitted: number;
  readonly impact: Impact;
  /** Clients that the problem harms. */
  readonly affected: ClientNames;
  /** Clients that cause the problem, such as a client that replays history. */
  readonly causedBy: ClientNames;
  lastSeenAt: number;
  /** Clock reading (ms) at which the incident ended; -1: it is still active. */
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

/**
 * Adds a client to the set. Cuts the client's name at the length limit, because the name contains the client's
 * User-Agent header, which can have any length.
 */
export function addClient(clients: ClientNames, name: string): void {
  const clipped = name.slice(0, incidentLimits.nameChars);
  if (clients.names.includes(clipped)) return;
  clients.count += 1;
  if (clients.names.length < limits.incidentClients) clients.names.push(clipped);
}

export function noClients(): ClientNames {
  return { names: [], count: 0 };
}

/**
 * Adds a row of evidence. Of consecutive rows with the same finding, only the first and the latest stay. If there are
 * too many rows, removes one from the middle, because the first rows prove the incident and the last rows show its
 * present state.
 */
export function addEvidence(incident: Incident, row: EvidenceRow): void {
  const { evidence } = incident;
  const text = row.text.slice(0, incidentLimits.textChars);
  const [first, last] = evidence.slice(-2).filter((one) => isSameFinding(one, { ...row, text }));
  if (first !== undefined && last !== undefined) {
    evidence.pop();
    evidence.push({ ...row, text, repeats: (last.repeats ?? 0) + 1 });
  } else evidence.push({ ...row, text });
  incident.lastSeenAt = Math.max(incident.lastSeenAt, row.at);
  if (evidence.length <= incidentLimits.incidentEvidence) return;
  evidence.splice(incidentLimits.incidentEvidence / 2, 1);
  incident.omitted += 1;
}

/** Matches measured figures, which differ between rows with the same finding. Other numbers are parts of names. */
const measured = /\b\d+(?:\.\d+)?(?= ?(?:ms|s|h|days|times|requests|watches)\b)/g;

function isSameFinding(one: EvidenceRow, other: EvidenceRow): boolean {
  return (
    one.detector === other.detector && one.text.replace(measured, "") === other.text.replace(measured, "")
  );
}
