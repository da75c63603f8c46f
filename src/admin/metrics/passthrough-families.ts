/** Metrics of connections whose TLS is left to the backend. */
import type { Family } from "./family.ts";

export const passthroughFamilies: readonly Family[] = [
  {
    type: "gauge",
    name: "passthrough_connections",
    help: "Sockets of passthrough connections to the backend, those that are opening included",
    labels: ["backend"],
    rows: ({ passthrough }) => Array.from(passthrough.counts, ([backend, count]) => [[backend], count]),
  },
  {
    type: "counter",
    name: "passthrough_connections_ended_total",
    help: "Passthrough connections that are over, by how they ended",
    labels: ["backend", "reason"],
    rows: (_, { passthroughEnds }) => passthroughEnds.rows,
  },
  {
    type: "counter",
    name: "passthrough_connections_refused_total",
    help: "Passthrough connections that never reached a backend, by reason and by who caused it",
    labels: ["code", "origin"],
    rows: (_, { passthroughRefusals }) => passthroughRefusals.rows,
  },
  {
    type: "counter",
    name: "passthrough_bytes_total",
    help: "Bytes that clients of passthrough listeners were sent, and that they sent",
    labels: ["direction"],
    rows: ({ passthrough }) => [
      [["sent"], passthrough.bytes.sent],
      [["received"], passthrough.bytes.received],
    ],
  },
];
