/**
 * Every metric of ours: its name, what it says, and where its numbers come from. Names and labels follow
 * kube-apiserver where it has the like, so that queries can join the two.
 */
import { limits } from "../../base/limits.ts";
import type { Family } from "./family.ts";
import { incidentFamilies } from "./incident-families.ts";
import { passthroughFamilies } from "./passthrough-families.ts";
import type { Row } from "./series.ts";
import { watchFamilies } from "./watch-families.ts";

const states = ["unknown", "ready", "suspect", "dead", "draining"];

/** The apiserver's names of verbs in metrics; a client may send any method, so others are one (A54). */
const verbs = new Map([
  ["get", "GET"],
  ["head", "GET"],
  ["list", "LIST"],
  ["watch", "WATCH"],
  ["create", "POST"],
  ["post", "POST"],
  ["update", "PUT"],
  ["put", "PUT"],
  ["patch", "PATCH"],
  ["delete", "DELETE"],
  ["deletecollection", "DELETECOLLECTION"],
  ["connect", "CONNECT"],
  ["proxy", "CONNECT"],
]);

export function verbOf(word: string): string {
  return verbs.get(word.toLowerCase()) ?? "other";
}

/** A backend may answer any three digits, and a fault of ours none. */
function codeOf(code: number): string {
  return code >= 100 && code <= 599 ? String(code) : "other";
}

export const families: readonly Family[] = [
  {
    type: "gauge",
    name: "build_info",
    help: "1, labelled by what runs",
    labels: ["version", "node"],
    rows: ({ version }) => [[[version, process.versions.node], 1]],
  },
  {
    type: "gauge",
    name: "config_last_reload_successful",
    help: "Whether the configuration was taken when it was read last",
    labels: [],
    rows: ({ config }) => [[[], config.isGood ? 1 : 0]],
  },
  {
    type: "gauge",
    name: "config_last_reload_success_timestamp_seconds",
    help: "When a configuration was taken last",
    labels: [],
    rows: ({ config }) => [[[], config.loadedAtMs / 1000]],
  },
  {
    type: "counter",
    name: "config_reloads_total",
    help: "Configurations read again, by result",
    labels: ["result"],
    rows: (_, { configReloads }) => configReloads.rows,
  },
  {
    type: "gauge",
    name: "discovery_last_success_timestamp_seconds",
    help: "When backends were found last; 0 before the first time",
    labels: ["cluster"],
    rows: ({ discovery }) =>
      discovery.map(({ cluster, lastSuccessAtMs }) => [[cluster], lastSuccessAtMs / 1000]),
  },
  {
    type: "counter",
    name: "discovery_failures_total",
    help: "Looks for backends that found none; those found before stay",
    labels: ["cluster"],
    rows: ({ discovery }) => discovery.map(({ cluster, failures }) => [[cluster], failures]),
  },
  {
    type: "gauge",
    name: "discovery_backends",
    help: "Backends that were found last",
    labels: ["cluster"],
    rows: ({ discovery }) => discovery.map(({ cluster, found }) => [[cluster], found]),
  },
  {
    type: "gauge",
    name: "backend_ready",
    help: "Whether new requests may go to the backend",
    labels: ["backend"],
    rows: ({ backends }) => backends.map(({ name, state }) => [[name], state === "ready" ? 1 : 0]),
  },
  {
    type: "gauge",
    name: "backend_state",
    help: "1 for the state that the backend is in, 0 for the others",
    labels: ["backend", "state"],
    rows: ({ backends }) =>
      backends.flatMap(({ name, state }) =>
        states.map((other): Row => [[name, other], state === other ? 1 : 0]),
      ),
  },
  {
    type: "counter",
    name: "backend_state_transitions_total",
    help: "Changes of a backend's state",
    labels: ["backend", "from", "to"],
    rows: (_, { transitions }) => transitions.rows,
  },
  {
    type: "counter",
    name: "backend_suspect_seconds_total",
    help: "Time for which the backend was suspect",
    labels: ["backend"],
    rows: ({ backends }) => backends.map(({ name, suspectMs }) => [[name], suspectMs / 1000]),
  },
  {
    type: "gauge",
    name: "backend_ping_rtt_seconds",
    help: "Time within which this share of the PINGs on its lanes was answered lately, rounded up by a quarter at most",
    labels: ["backend", "quantile"],
    rows: ({ backends }) => backends.map(({ name, pingP99Ms }) => [[name, "0.99"], pingP99Ms / 1000]),
  },
  {
    type: "counter",
    name: "backend_probes_total",
    help: "Probes on fresh sockets, by whether they found the backend well",
    labels: ["backend", "result"],
    rows: ({ backends }) =>
      backends.flatMap(({ name, probes }): Row[] => [
        [[name, "ok"], probes.answers],
        [[name, "failed"], probes.failures],
      ]),
  },
  {
    type: "gauge",
    name: "backend_last_probe_duration_seconds",
    help: "Time that the last answered probe took, from the SYN to the answer",
    labels: ["backend"],
    rows: ({ backends }) => backends.map(({ name, probes }) => [[name], probes.lastMs / 1000]),
  },
  {
    type: "gauge",
    name: "upstream_connections",
    help: "Upstream sessions, by the trust class and the kind of requests they carry",
    labels: ["backend", "class", "kind"],
    rows: ({ backends }) =>
      backends.flatMap(({ name, lanes }) =>
        lanes.map((lane): Row => [[name, lane.trust, lane.kind], lane.open]),
      ),
  },
  {
    type: "gauge",
    name: "upstream_streams",
    help: "Open streams on those sessions",
    labels: ["backend", "class", "kind"],
    rows: ({ backends }) =>
      backends.flatMap(({ name, lanes }) =>
        lanes.map((lane): Row => [[name, lane.trust, lane.kind], lane.streams]),
      ),
  },
  {
    type: "counter",
    name: "upstream_connections_closed_total",
    help: "Upstream sessions that ended",
    labels: ["backend"],
    rows: (_, { laneCloses }) => laneCloses.rows,
  },
  {
    type: "gauge",
    name: "downstream_connections",
    help: "Clients' open sessions, by protocol",
    labels: ["alpn"],
    rows: ({ sessions }) => sessions.map(({ alpn, open }) => [[alpn], open]),
  },
  {
    type: "counter",
    name: "downstream_connections_refused_total",
    help: "Clients' sessions that were refused or ended for what they did",
    labels: ["reason"],
    rows: ({ refusedSessions }) => refusedSessions.map(({ reason, count }) => [[reason], count]),
  },
  {
    type: "counter",
    name: "downstream_tls_handshake_errors_total",
    help: "Sockets of clients whose TLS handshake failed",
    labels: [],
    rows: ({ handshakeErrors }) => [[[], handshakeErrors]],
  },
  {
    type: "gauge",
    name: "requests_active",
    help: "Requests that are being answered, by kind",
    labels: ["kind"],
    rows: ({ exchanges }) => exchanges.map(({ kind, active }) => [[kind], active]),
  },
  {
    type: "counter",
    name: "requests_total",
    cap: limits.requestSeries,
    help: "Requests that were answered, by verb, status code and backend",
    labels: ["verb", "code", "backend"],
    rows: ({ requests }) =>
      requests.map(({ verb, code, backend, count }) => [[verbOf(verb), codeOf(code), backend], count]),
  },
  {
    type: "counter",
    name: "request_failures_total",
    help: "Requests that ended early, by reason and by who caused it",
    labels: ["code", "origin"],
    rows: (_, { exchangeFailures }) => exchangeFailures.rows,
  },
  {
    type: "counter",
    name: "stream_resets_total",
    help: "Streams that were reset, by reason",
    labels: ["reason"],
    rows: ({ resets }) => resets.map(({ reason, count }) => [[reason], count]),
  },
  ...watchFamilies,
  ...incidentFamilies,
  ...passthroughFamilies,
  {
    type: "gauge",
    name: "buffered_bytes",
    help: "Bytes of requests and answers that wait in this process, heads beyond 16 KiB included",
    labels: [],
    rows: ({ bufferedBytes }) => [[[], bufferedBytes]],
  },
  {
    type: "gauge",
    name: "certificate_expiry_timestamp_seconds",
    help: "When a certificate expires",
    labels: ["purpose", "name"],
    rows: ({ certificates }) =>
      certificates.map(({ purpose, name, notAfterMs }) => [[purpose, name], notAfterMs / 1000]),
  },
  {
    type: "counter",
    name: "certificate_reloads_total",
    help: "Certificates read, by result",
    labels: ["name", "result"],
    rows: (_, { certificateLoads }) => certificateLoads.rows,
  },
  {
    type: "counter",
    name: "internal_errors_total",
    help: "Faults of this process, by what they cost: a stream, a session, what a timer was to do, or the process",
    labels: ["scope"],
    rows: (_, { faults }) => faults.rows,
  },
  {
    type: "counter",
    name: "request_hedges_total",
    help: "Requests that were asked of a second backend or lane, since the first did not answer",
    labels: [],
    rows: ({ hedges }) => [[[], hedges]],
  },
  {
    type: "gauge",
    name: "requests_pending",
    help: "Requests that wait: no backend can be asked, or too many are under way whose credentials no backend has accepted",
    labels: [],
    rows: ({ heldRequests }) => [[[], heldRequests]],
  },
  {
    type: "counter",
    name: "log_lines_dropped_total",
    help: "Log lines that were not written: too many, or nobody took them",
    labels: [],
    rows: ({ droppedLogLines }) => [[[], droppedLogLines]],
  },
];
