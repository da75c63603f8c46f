/**
 * Lists all metrics except the histograms (histogram-declarations.ts). The metrics of watches, load and limits are
 * declared in watch-metrics.ts, load-metrics.ts and limit-metrics.ts, all others here. A metric whose name ends in
 * `_total` is a counter. If kube-apiserver has the same metric, its name and labels are the same here, so that queries
 * can join both.
 */
import { limits } from "../../../base/limits.ts";
import { verbLabel } from "../../../kube/verb-label.ts";
import { relayEnds } from "../../../proxy/tunnel/tcp-relay.ts";
import { incidentKinds } from "../../incidents/kinds.ts";
import { labelled, type Sample } from "./exposition.ts";
import { backendCap, backendIn, codeOf } from "./labels.ts";
import { limitMetrics } from "./limit-metrics.ts";
import { loadMetrics } from "./load-metrics.ts";
import type { BackendStatus, ClusterView, Metric } from "./metric.ts";
import { watchMetrics } from "./watch-metrics.ts";

const states = ["unknown", "ready", "suspect", "dead", "draining"];

/**
 * Maximum number of series by backend, trust class and connection kind: a backend has connections of at most five
 * classes and two kinds.
 */
const connectionCap = 5 * 2 * backendCap;

type Connections = BackendStatus["connections"][number];
type Discovery = NonNullable<ClusterView["backends"]["record"]>;
type ByCluster = (cluster: ClusterView) => readonly Sample[];

function perBackend(value: (backend: BackendStatus) => number): ByCluster {
  return ({ backendStatuses }) => backendStatuses.map((backend) => [[backend.name], value(backend)]);
}

function perConnectionClass(value: (row: Connections) => number): ByCluster {
  return ({ backendStatuses }) =>
    backendStatuses.flatMap(({ name, connections }) =>
      connections.map((row): Sample => [[name, row.trust, row.kind], value(row)]),
    );
}

function perDiscovery(value: (record: Discovery) => number): ByCluster {
  return ({ label, backends: { record } }) => (record === undefined ? [] : [[[label], value(record)]]);
}

export const metrics: readonly Metric[] = [
  ...limitMetrics,
  ...watchMetrics,
  {
    name: "build_info",
    help: "Always 1; the labels have the versions of watchkeeper and Node.js",
    labels: ["version", "node"],
    process: ({ version }) => [[[version, process.versions.node], 1]],
  },
  {
    name: "config_last_reload_successful",
    help: "1 if the configuration read last is in use, 0 if it was rejected",
    process: ({ config }) => (config().isGood ? 1 : 0),
  },
  {
    name: "config_last_reload_success_timestamp_seconds",
    help: "Time of the last successful load of the configuration",
    process: ({ config }) => config().loadedAtMs / 1000,
  },
  {
    name: "config_restart_required",
    help: "1 for each changed key that takes effect only after a restart",
    labels: ["part"],
    process: ({ config }) => config().waiting.map((part) => [part, 1]),
  },
  {
    name: "config_reloads_total",
    help: "Reloads of the configuration, by result",
    labels: ["result"],
    counted: { "config.reloaded": () => ["ok"], "config.refused": () => ["rejected"] },
  },
  {
    name: "buffered_bytes",
    across: "sum",
    help: "Buffered bytes of requests and responses, including headers beyond 16 KiB",
    process: ({ queuedBytes }) => queuedBytes(),
  },
  {
    name: "certificate_expiry_timestamp_seconds",
    help: "Expiry time of each certificate",
    labels: ["purpose", "name"],
    process: ({ certificates }) =>
      certificates().map(({ purpose, name, notAfterMs, cluster }) =>
        labelled([purpose, name], notAfterMs / 1000, cluster),
      ),
  },
  {
    name: "certificate_reloads_total",
    help: "Attempts to load a certificate or key, by result",
    labels: ["name", "result"],
    counted: {
      "certificate.loaded": ({ name }) => [name, "ok"],
      "certificate.refused": ({ name }) => [name, "rejected"],
    },
  },
  {
    name: "internal_errors_total",
    help: "Internal errors, by what they ended (a stream, session, timer callback, promise, reader of the journal, or the process), or by the part of the control side",
    labels: ["scope"],
    counted: { "internal.error": ({ scope }) => [scope] },
  },
  {
    name: "log_lines_dropped_total",
    across: "sum",
    help: "Log lines dropped because stdout did not take them",
    process: ({ droppedLogLines }) => droppedLogLines(),
  },
  {
    name: "trace_spans_total",
    across: "sum",
    help: "Spans: exported, failed (not taken by the collector) or dropped (too many were waiting)",
    labels: ["result"],
    process: ({ traceSpans }) => Object.entries(traceSpans()),
  },
  {
    name: "workers",
    help: "Workers of this process by state: starting, serving, draining or dead; no values without workers",
    labels: ["state"],
    process: ({ workerStates = () => [] }) => workerStates().map((state) => [state, 1]),
  },
  {
    name: "worker_losses_total",
    help: "Workers that ended while they should have served, with their clients' connections",
    counted: { "worker.lost": () => [] },
  },
  {
    name: "replicas",
    help: "Processes of admin.replicas, this one included: live, silent (no answer for 15 s) or unknown (not yet asked for 15 s)",
    labels: ["state"],
    process: ({ replicas }) =>
      ["live", "silent", "unknown"].map((state) => [
        state,
        replicas.rows.filter((row) => row.state === state).length,
      ]),
  },
  {
    name: "discovery_last_success_timestamp_seconds",
    across: "own",
    help: "Time of the last successful discovery of backends; 0 before the first",
    labels: ["cluster"],
    cluster: perDiscovery(({ lastSuccessAtMs }) => lastSuccessAtMs / 1000),
  },
  {
    name: "discovery_failures_total",
    across: "own",
    help: "Failed discoveries; the backends found before stay",
    labels: ["cluster"],
    cluster: perDiscovery(({ failures }) => failures),
  },
  {
    name: "discovery_backends",
    across: "own",
    help: "Backends found by the last successful discovery",
    labels: ["cluster"],
    cluster: perDiscovery(({ found }) => found),
  },
  {
    name: "backend_ready",
    across: "own",
    help: "1 if the backend accepts new requests",
    labels: ["backend"],
    cluster: perBackend(({ state }) => (state === "ready" ? 1 : 0)),
  },
  {
    name: "backend_state",
    across: "own",
    help: "1 for the current state of the backend, 0 for the others",
    labels: ["backend", "state"],
    cap: states.length * backendCap,
    cluster: ({ backendStatuses }) =>
      backendStatuses.flatMap(({ name, state }) =>
        states.map((one): Sample => [[name, one], state === one ? 1 : 0]),
      ),
  },
  {
    name: "backend_info",
    across: "own",
    help: "1 for the version that the backend reports at /version",
    labels: ["backend", "version"],
    cap: backendCap,
    cluster: ({ backendStatuses }) =>
      backendStatuses.flatMap(({ name, version }): Sample[] =>
        version === "" ? [] : [[[name, version], 1]],
      ),
  },
  {
    name: "backend_state_transitions_total",
    help: "State changes of a backend",
    labels: ["backend", "from", "to"],
    cap: states.length * (states.length - 1) * backendCap,
    counted: { "backend.changed": ({ backend, from, to }) => [backend, from, to] },
  },
  {
    name: "backend_suspect_seconds_total",
    across: "own",
    help: "Time that the backend has spent in state suspect",
    labels: ["backend"],
    cluster: perBackend(({ suspectMs }) => suspectMs / 1000),
  },
  {
    name: "backend_ping_rtt_seconds",
    across: "max",
    help: "Round-trip time that 99 % of the recent PINGs did not exceed, rounded up by at most a quarter",
    labels: ["backend", "quantile"],
    cap: backendCap,
    cluster: ({ backendStatuses }) =>
      backendStatuses.map(({ name, pingP99Ms }) => [[name, "0.99"], pingP99Ms / 1000]),
  },
  {
    name: "backend_probes_total",
    across: "own",
    help: "Health probes on new connections, by result",
    labels: ["backend", "result"],
    cap: 2 * backendCap,
    cluster: ({ backendStatuses }) =>
      backendStatuses.flatMap(({ name, probes }): Sample[] => [
        [[name, "ok"], probes.answers],
        [[name, "failed"], probes.failures],
      ]),
  },
  {
    name: "backend_last_probe_duration_seconds",
    across: "own",
    help: "Duration of the last answered probe, from the SYN to the response",
    labels: ["backend"],
    cluster: perBackend(({ probes }) => probes.lastMs / 1000),
  },
  ...loadMetrics,
  {
    name: "upstream_connections",
    help: "Open HTTP/2 connections to the backend, by trust class and kind of requests",
    labels: ["backend", "class", "kind"],
    cap: connectionCap,
    cluster: perConnectionClass(({ open }) => open),
  },
  {
    name: "upstream_streams",
    help: "Open streams on the HTTP/2 connections to the backend, by trust class and kind of requests",
    labels: ["backend", "class", "kind"],
    cap: connectionCap,
    cluster: perConnectionClass(({ streams }) => streams),
  },
  {
    name: "upstream_connections_closed_total",
    help: "Closed HTTP/2 connections to the backend",
    labels: ["backend"],
    counted: { "upstream_connection.closed": ({ backend }) => [backend] },
  },
  {
    name: "downstream_connections",
    help: "Open client connections, by protocol",
    labels: ["alpn"],
    process: ({ sessions }) => [
      ["h2", sessions().h2],
      ["http/1.1", sessions().h1],
    ],
  },
  {
    name: "downstream_connections_refused_total",
    help: "Client connections refused, or ended for breaking a rule",
    labels: ["reason"],
    counted: { "downstream_connection.refused": ({ reason }) => [reason] },
  },
  {
    name: "downstream_source_connections_ratio",
    across: "max",
    help: "Connections of the client address with the most, as a share of maxConnectionsPerSource; at 1 more are refused",
    process: ({ fullestSourceShare }) => fullestSourceShare(),
  },
  {
    name: "downstream_tls_handshake_errors_total",
    across: "sum",
    help: "Failed TLS handshakes with clients",
    process: ({ handshakeErrors }) => handshakeErrors(),
  },
  {
    name: "requests_refused_total",
    help: "Requests refused before they could be forwarded, mostly because they break a rule of HTTP",
    labels: ["reason"],
    counted: { "request.refused": ({ reason }) => [reason] },
  },
  {
    name: "requests_active",
    help: "Requests in progress, by kind",
    labels: ["kind"],
    cluster: ({ path: { exchanges }, upgrades }) => [
      ["plain", exchanges.active("plain")],
      ["watch", exchanges.active("watch")],
      ["long-running", exchanges.active("long-running")],
      ["upgrade", upgrades.openCount],
    ],
  },
  {
    name: "requests_pending",
    help: "Requests that wait: no backend is available, or too many with unproven credentials are in progress",
    cluster: ({ path: { pending, admission } }) => pending.size + admission.waiting,
  },
  {
    name: "requests_total",
    cap: limits.requestSeries,
    help: "Completed requests, by verb, status code and backend",
    labels: ["verb", "code", "backend"],
    cluster: ({ label, path: { exchanges } }) =>
      exchanges.counts.map(({ verb, code, backend, count }) => [
        [verbLabel(verb), codeOf(code), backendIn(label, backend)],
        count,
      ]),
  },
  {
    name: "request_failures_total",
    help: "Failed requests, by error code and by the side that caused the failure",
    labels: ["code", "origin"],
    counted: { "request.failed": ({ code, origin }) => [code, origin] },
  },
  {
    name: "request_hedges_total",
    help: "Requests sent a second time, by the backend that had not answered the first attempt",
    labels: ["backend"],
    cluster: ({ label, path: { hedges } }) =>
      hedges.counts.all.map(({ backend, count }) => [[backendIn(label, backend)], count]),
  },
  {
    name: "request_hedge_wins_total",
    help: "Requests sent twice, by the attempt that was answered first: first or hedge",
    labels: ["attempt"],
    cluster: ({ path: { hedges } }) => Object.entries(hedges.wins),
  },
  {
    name: "request_ends_total",
    help: "Ended requests: complete, client_gone, backend_gone or refused",
    labels: ["reason"],
    cluster: ({ path: { exchanges } }) => Object.entries(exchanges.ends),
  },
  {
    name: "clients",
    help: "Known clients: combinations of identity, program and address",
    cluster: ({ path: { ledgerTap } }) => ledgerTap.ledger.size,
  },
  {
    name: "client_requests_total",
    help: "Requests by the product in the User-Agent (the first 50) and verb",
    labels: ["client", "verb"],
    cap: limits.programSeries,
    cluster: ({ path: { ledgerTap } }) =>
      Array.from(ledgerTap.ledger.programs).flatMap(([client, { counts }]) =>
        counts.map(([verb, count]): Sample => [[client, verbLabel(verb)], count]),
      ),
  },
  {
    name: "api_failures_total",
    help: "Reads of aggregated APIs that failed because the backend could not reach their server (refused), or another backend answered a copy first (unanswered)",
    labels: ["backend", "group", "failure"],
    cluster: ({ path }) =>
      Array.from(path.avoidedApis.counts.values(), ({ labels, count }): Sample => [labels, count]),
  },
  {
    name: "api_unreachable",
    across: "max",
    help: "1 for each aggregated API group whose server only other backends reach",
    labels: ["backend", "group"],
    cluster: ({ backendStatuses }) =>
      backendStatuses.flatMap(({ name, unreachableApis }) =>
        unreachableApis.map((group): Sample => [[name, group], 1]),
      ),
  },
  {
    name: "incidents_total",
    help: "Incidents that have begun, by kind and backend",
    labels: ["kind", "backend"],
    process: ({ incidents }) =>
      incidents.counts.map(({ kind, backend, cluster, count }) => labelled([kind, backend], count, cluster)),
  },
  {
    name: "incident_active",
    help: "1 for each active incident, by kind and backend",
    labels: ["kind", "backend"],
    // Enough for one series of each kind of incident, plus eight series of each kind that names a backend.
    cap: 90,
    // A kind without an active incident has the value 0, so that its alert resolves.
    process: ({ incidents }) => [
      ...Object.keys(incidentKinds).map((kind): Sample => [[kind, ""], 0]),
      ...incidents.active.map(({ kind, backend, cluster }) => labelled([kind, backend], 1, cluster)),
    ],
  },
  {
    name: "lease_holder_info",
    across: "own",
    help: "1 for each leader lease, with its holder and the address of the last renewal",
    labels: ["namespace", "name", "holder", "source"],
    cap: 40,
    cluster: ({ leases }) =>
      leases.map(({ namespace, name, holder, source }) => [[namespace, name, holder, source], 1]),
  },
  {
    name: "lease_last_renew_timestamp_seconds",
    across: "own",
    help: "Time of the last renewal of a leader lease",
    labels: ["namespace", "name"],
    cap: 40,
    cluster: ({ leases }) =>
      leases.map(({ namespace, name, renewedAtMs }) => [[namespace, name], renewedAtMs / 1000]),
  },
  {
    name: "lease_suspect",
    across: "own",
    help: "1 for each leader lease that is contested, ghost or unknown",
    labels: ["namespace", "name", "verdict"],
    cap: 40,
    cluster: ({ leases }) =>
      leases
        .filter(({ verdict }) => verdict !== "ok")
        .map(({ namespace, name, verdict }) => [[namespace, name, verdict], 1]),
  },
  {
    name: "passthrough_connections",
    help: "Passthrough connections to the backend, including those being opened",
    labels: ["backend"],
    cluster: ({ passthrough }) => passthrough.counts,
  },
  {
    name: "passthrough_connections_ended_total",
    help: "Ended passthrough connections, by reason",
    labels: ["backend", "reason"],
    cap: relayEnds.length * backendCap,
    counted: { "passthrough.ended": ({ backend, reason }) => [backend, reason] },
  },
  {
    name: "passthrough_connections_refused_total",
    help: "Passthrough connections that reached no backend, by error code and the side that caused it",
    labels: ["code", "origin"],
    counted: { "passthrough.refused": ({ code, origin }) => [code, origin] },
  },
  {
    name: "passthrough_bytes_total",
    help: "Bytes sent to and received from clients of passthrough listeners",
    labels: ["direction"],
    cluster: ({ passthrough: { bytes } }) => [
      ["sent", bytes.sent],
      ["received", bytes.received],
    ],
  },
];
