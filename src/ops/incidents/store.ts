/** The active incidents by kind and subject, and the most recently ended ones. Their number is limited. No I/O. */
import { addClient, addEvidence, type EvidenceRow, type Incident, noClients, noImpact } from "./incident.ts";
import { type IncidentKind, incidentKinds } from "./kinds.ts";
import { incidentLimits } from "./limits.ts";

/** Evidence that opens an incident, or that is added to the active incident of the same kind and subject. */
export type Finding = {
  readonly kind: IncidentKind;
  readonly subject: string;
  readonly backend?: string;
  /** Cluster that the incident is about, as in the journal; default: it is about none, or only one cluster exists. */
  readonly cluster?: string;
  readonly summary: string;
  /** Clock reading (ms) at which the cause began; default: the time of the first evidence row. */
  readonly startedAt?: number;
  readonly evidence: readonly EvidenceRow[];
  /** Client that the problem harms. */
  readonly client?: string;
  /** Client that causes the problem. */
  readonly culprit?: string;
  /** True if the summary replaces that of the active incident; default: the first summary stays. */
  readonly replacesSummary?: boolean;
};

/** Returns a finding with one row of evidence, whose text is the summary. `more`: further fields, or another summary. */
export function findingOf(
  kind: IncidentKind,
  subject: string,
  row: EvidenceRow,
  more: Partial<Finding> = {},
): Finding {
  return { kind, subject, summary: row.text, evidence: [row], ...more };
}

/** A counter of incidents. Kind and backend can be metric labels, because the number of counters is limited. */
export type IncidentCount = {
  readonly kind: IncidentKind;
  readonly backend: string;
  readonly cluster: string;
  count: number;
};

export type StoreListener = {
  readonly opened: (incident: Incident) => void;
  readonly ended: (incident: Incident) => void;
};

export class IncidentStore {
  readonly #listener: StoreListener;
  readonly #active = new Map<string, Incident>();
  /** Ended incidents, oldest first. */
  #ended: Incident[] = [];
  #lastId = 0;
  readonly #counts = new Map<string, IncidentCount>();
  /** Number of findings that were dropped because too many incidents were active. */
  dropped = 0;

  constructor(listener: StoreListener) {
    this.#listener = listener;
  }

  get active(): readonly Incident[] {
    return [...this.#active.values()];
  }

  /** All incidents, newest first. */
  get all(): readonly Incident[] {
    return [...this.#ended, ...this.#active.values()].toSorted((a, b) => b.id - a.id);
  }

  get counts(): readonly IncidentCount[] {
    return [...this.#counts.values()];
  }

  find(kind: IncidentKind, subject: string): Incident | undefined {
    return this.#active.get(keyOf(kind, subject));
  }

  byId(id: number): Incident | undefined {
    return this.all.find((incident) => incident.id === id);
  }

  /**
   * Opens an incident, or adds evidence to the active one of the same kind and subject. `at`: clock reading in ms.
   * Returns this incident, or undefined if it cannot be opened because too many are active.
   */
  found(finding: Finding, at: number): Incident | undefined {
    const known = this.find(finding.kind, finding.subject);
    const incident = known ?? this.#open(finding, at);
    if (known !== undefined) {
      for (const row of finding.evidence) addEvidence(known, row);
      known.lastSeenAt = at;
      if (finding.replacesSummary === true) known.summary = clippedText(finding.summary);
    }
    if (incident !== undefined) nameClients(incident, finding);
    return incident;
  }

  #open(finding: Finding, at: number): Incident | undefined {
    const { kind, subject, backend = "", cluster = "", summary, evidence } = finding;
    if (this.#active.size >= incidentLimits.incidentsActive) {
      this.dropped += 1;
      return undefined;
    }
    this.#lastId += 1;
    const incident: Incident = {
      id: this.#lastId,
      kind,
      subject: subject.slice(0, incidentLimits.textChars),
      backend,
      cluster,
      summary: clippedText(summary),
      startedAt: Math.min(at, finding.startedAt ?? evidence[0]?.at ?? at),
      detectedAt: at,
      evidence: [],
      omitted: 0,
      impact: noImpact(),
      affected: noClients(),
      causedBy: noClients(),
      lastSeenAt: at,
      endedAt: -1,
      ending: "",
    };
    for (const row of evidence) addEvidence(incident, row);
    this.#active.set(keyOf(kind, subject), incident);
    this.#count(kind, backend, cluster);
    this.#listener.opened(incident);
    return incident;
  }

  end(kind: IncidentKind, subject: string, ending: string, at: number): void {
    const key = keyOf(kind, subject);
    const incident = this.#active.get(key);
    if (incident === undefined) return;
    this.#active.delete(key);
    incident.endedAt = at;
    incident.ending = ending.slice(0, incidentLimits.textChars);
    this.#ended.push(incident);
    if (this.#ended.length > incidentLimits.incidentsKept)
      this.#ended = this.#ended.slice(-incidentLimits.incidentsKept);
    this.#listener.ended(incident);
  }

  calm(at: number): void {
    for (const { kind, subject, lastSeenAt } of this.active) {
      const { calmMs } = incidentKinds[kind];
      // Computes the same sum as `Fold.dueAt`. At that time, `at - lastSeenAt` may be rounded to less than `calmMs`.
      if (calmMs > 0 && at >= lastSeenAt + calmMs)
        this.end(kind, subject, `Not seen again for ${Math.round(calmMs / 1000)} s`, at);
    }
  }

  #count(kind: IncidentKind, backend: string, cluster: string): void {
    const full = `${kind} ${cluster} ${backend}`;
    const isNamed = this.#counts.has(full) || this.#counts.size < incidentLimits.incidentCounts;
    const key = isNamed ? full : kind;
    const names = isNamed ? { backend, cluster } : { backend: "", cluster: "" };
    const count = this.#counts.get(key) ?? { kind, ...names, count: 0 };
    count.count += 1;
    this.#counts.set(key, count);
  }
}

function nameClients({ affected, causedBy }: Incident, { client = "", culprit = "" }: Finding): void {
  if (client !== "") addClient(affected, client);
  if (culprit !== "") addClient(causedBy, culprit);
}

function clippedText(text: string): string {
  return text.slice(0, incidentLimits.textChars);
}

function keyOf(kind: IncidentKind, subject: string): string {
  return `${kind} ${subject.slice(0, incidentLimits.textChars)}`;
}
