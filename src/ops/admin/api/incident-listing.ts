import type { ClientNames, EvidenceRow, Impact, Incident } from "../../incidents/incident.ts";
import { incidentKinds } from "../../incidents/kinds.ts";
import type { Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import {
  count,
  type Fields,
  list,
  listingOf,
  maybeTime,
  number,
  oneOf,
  record,
  text,
  time,
  words,
} from "./fields.ts";

const impactFields = {
  watchesMoved: count("Watches that continued on another backend without an interruption.", "watchesMoved"),
  slowestMoveMs: number("The slowest of those moves, in ms.", "slowestMoveMs"),
  watchesEnded: count("Watches that ended instead.", "watchesEnded"),
  tunnelsEnded: count("exec, attach and port-forward that ended.", "tunnelsEnded"),
  requestsFailed: count("Requests that got an error.", "requestsFailed"),
} satisfies Fields<Impact>;

const clientFields = {
  count: count("Number of clients.", (clients) => clients.count),
  names: words("The first of these clients.", "names"),
} satisfies Fields<ClientNames>;

const evidenceFields = {
  at: time("When the detector measured it.", "at"),
  detector: text("What detected it.", "detector"),
  value: number("The measured value.", "value"),
  threshold: number("The limit.", "threshold"),
  unit: oneOf(
    "Unit of `value` and `threshold`; empty if neither was measured.",
    ["ms", "times", "backends", ""],
    "unit",
  ),
  text: text("The finding, in a sentence.", (row) => row.text),
  auditId: text(
    'Audit ID of the request that the finding is about; "" if it is about none.',
    ({ auditId = "" }) => auditId,
  ),
  repeats: count("Earlier rows with the same finding that this row replaces.", ({ repeats = 0 }) => repeats),
} satisfies Fields<EvidenceRow>;

const isActive = ({ endedAt }: Incident): boolean => endedAt < 0;

export const incidentFields = {
  id: count("Number of the incident: 1 for the first since the process began.", "id"),
  kind: oneOf(
    `Kind. ${Object.entries(incidentKinds)
      .map(([kind, { about }]) => `${kind}: ${about}.`)
      .join(" ")}`,
    Object.keys(incidentKinds),
    "kind",
  ),
  severity: oneOf("Severity.", ["critical", "warning"], ({ kind }) => incidentKinds[kind].severity),
  state: oneOf("Whether the incident is over.", ["active", "ended"], (one) =>
    isActive(one) ? "active" : "ended",
  ),
  subject: text("The cause: a backend, a client or a part of the proxy.", "subject"),
  backend: text('The affected backend; "" if none.', "backend"),
  summary: text("A one-sentence summary.", "summary"),
  startedAt: time("When the cause began, as far as it was measured.", "startedAt"),
  detectedAt: time("When the cause was detected.", "detectedAt"),
  detectionMs: count("From startedAt to detectedAt, in ms.", ({ startedAt, detectedAt }) =>
    Math.round(detectedAt - startedAt),
  ),
  lastSeenAt: time("When the latest evidence was observed.", "lastSeenAt"),
  endedAt: maybeTime("When the incident ended; null while it is active.", "endedAt"),
  durationMs: count("Time from startedAt to endedAt, or to now, in ms.", (one, { now }) =>
    Math.round((isActive(one) ? now() : one.endedAt) - one.startedAt),
  ),
  resolution: text('Why the incident ended; "" while it is active.', "ending"),
  impact: record(impactFields, "impact"),
  affected: record(clientFields, "affected"),
  causedBy: record(clientFields, "causedBy"),
  evidence: list("The evidence, oldest first.", evidenceFields, "evidence"),
  evidenceOmitted: count(
    "Number of rows dropped between the oldest and the newest that are shown.",
    "omitted",
  ),
} satisfies Fields<Incident>;

export function incidentListing(all: () => readonly Incident[], times: Times): Listing<Incident> {
  return listingOf(
    {
      kind: "IncidentList",
      rows: all,
      sort: "-id",
      fields: incidentFields,
      by: "id kind severity state subject backend summary startedAt lastSeenAt",
    },
    times,
  );
}
