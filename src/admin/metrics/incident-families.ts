/** Metrics of what is wrong, of who talks, and of who holds the leader locks. */
import { incidentKinds } from "../../incidents/kinds.ts";
import type { Family } from "./family.ts";
import type { Row } from "./series.ts";

export const incidentFamilies: readonly Family[] = [
  {
    type: "counter",
    name: "incidents_total",
    help: "Incidents that were found, by kind and backend",
    labels: ["kind", "backend"],
    rows: ({ incidents }) =>
      incidents.counts.map(({ kind, backend, count }): Row => [[kind, backend], count]),
  },
  {
    type: "gauge",
    name: "incident_active",
    help: "Incidents that last, by kind and backend",
    labels: ["kind", "backend"],
    // Each kind once without a backend, and eight times as many with one as are likely.
    cap: 90,
    // A kind of which there is none is 0, so that an alert ends.
    rows: ({ incidents }) => [
      ...Object.keys(incidentKinds).map((kind): Row => [[kind, ""], 0]),
      ...incidents.active.map(({ kind, backend }): Row => [[kind, backend], 1]),
    ],
  },
  {
    type: "gauge",
    name: "clients",
    help: "Callers that are remembered: an identity, a program and an address each",
    labels: [],
    rows: ({ clients }) => [[[], clients.count]],
  },
  {
    type: "counter",
    name: "client_requests_total",
    help: "Requests by the product of their User-Agent, of the first 50",
    labels: ["client"],
    rows: ({ clients }) => Array.from(clients.requests, ([agent, count]): Row => [[agent], count]),
  },
  {
    type: "gauge",
    name: "lease_holder_info",
    help: "1 for each leader lock, with who holds it and from which address it was renewed last; without the nodes' own",
    labels: ["namespace", "name", "holder", "source"],
    cap: 40,
    rows: ({ locks }) =>
      locks.map(({ namespace, name, holder, source }): Row => [[namespace, name, holder, source], 1]),
  },
  {
    type: "gauge",
    name: "lease_last_renew_timestamp_seconds",
    help: "When a leader lock was renewed last",
    labels: ["namespace", "name"],
    cap: 40,
    rows: ({ locks }) =>
      locks.map(({ namespace, name, renewedAtMs }): Row => [[namespace, name], renewedAtMs / 1000]),
  },
  {
    type: "gauge",
    name: "lease_suspect",
    help: "1 for each leader lock whose renewals are not as they should be, by verdict: contested, ghost, unknown",
    labels: ["namespace", "name", "verdict"],
    cap: 40,
    rows: ({ locks }) =>
      locks
        .filter(({ verdict }) => verdict !== "ok")
        .map(({ namespace, name, verdict }): Row => [[namespace, name, verdict], 1]),
  },
];
