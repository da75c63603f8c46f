/**
 * Declares all metrics except the histograms (histogram-declarations.ts). A metric whose name ends in `_total` is a
 * counter. Metrics that kube-apiserver has as well get its names and labels, so that queries can join both.
 */
import { limits } from "../../base/limits.ts";
import { incidentKinds } from "../../incidents/kinds.ts";
import { verbLabel } from "../../kube/verb-label.ts";
import type { Sample } from "./exposition.ts";
import { backendIn, codeOf } from "./labels.ts";
import { limitMetrics } from "./limit-metrics.ts";
import { loadMetrics } from "./load-metrics.ts";
import type { BackendStatus, ClusterView, Metric } from "./metric.ts";

/** Enough for as many backends as a configuration may have, a fallback and "other". */
const backendCap = limits.discoveredBackends + 2;

const states = ["unknown", "ready", "suspect", "dead", "draining"];

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
  {
    name: "build_info",
    help: "Always 1; the labels have the versions of watchkeeper and Node.js",
    labels: ["version", "node"],
    process: ({ version }) => [[[version, process.versions.node], 1]],
  },
  {
    name: "config_last_reload_successful",
    help: "1 if the configuration that was read last is valid and in use, 0 if it was rejected",
    process: ({ config }) => (config().isGood ? 1 : 0),
  },
  {
    name: "config_last_reload_success_timestamp_seconds",
    help: "Time of the last successful load of the configuration",
    process: ({ config }) => config().loadedAtMs / 1000,
  },
  {
    name: "config_restart_required",
    help: "1 for each part of the configuration file that has changed and takes effect only after a restart",
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
    help: "Bytes of requests and responses buffered in this process, including headers beyond 16 KiB",
    process: ({ queuedBytes }) => queuedBytes(),
  },
  {
    name: "certificate_expiry_timestamp_seconds",
    help: "Expiry time of each certificate",
    labels: ["purpose", "name"],
    process: ({ certificates }) =>
      certificates().map(({ purpose, name, notAfterMs }) => [[purpose, name], notAfterMs / 1000]),
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
    help: "Internal errors of watchkeeper, by scope: what the error ended (a stream, a session, a timer callback, a reader of the journal or the process)",
    labels: ["scope"],
    counted: { "internal.error": ({ scope }) => [scope] },
  },
  {
    name: "log_lines_dropped_total",
    help: "Log lines dropped because stdout did not take them",
    process: ({ droppedLogLines }) => droppedLogLines(),
  },
  {
    name: "trace_spans_total",
    help: "Spans of traced requests, by result: exported, failed (the collector did not take them) or dropped (too many were waiting)",
    labels: ["result"],
    process: ({ traceSpans }) => Object.entries(traceSpans()),
  },
  {
    name: "discovery_last_success_timestamp_seconds",
    help: "Time of the last successful discovery of backends; 0 before the first",
    labels: ["cluster"],
    cluster: perDiscovery(({ lastSuccessAtMs }) => lastSuccessAtMs / 1000),
  },
  {
    name: "discovery_failures_total",
    help: "Failed attempts to discover backends; the backends found before stay in use",
    labels: ["cluster"],
    cluster: perDiscovery(({ failures }) => failures),
  },
  {
    name: "discovery_backends",
    help: "Backends found by the last successful discovery",
    labels: ["cluster"],
    cluster: perDiscovery(({ found }) => found),
  },
  {
    name: "backend_ready",
    help: "1 if the backend accepts new requests",
    labels: ["backend"],
    cap: backendCap,
    cluster: perBackend(({ state }) => (state === "ready" ? 1 : 0)),
  },
  {
    name: "backend_state",
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
    counted: { "backend.changed": ({ backend, from, to }) => [backend, from, to] },
  },
  {
    name: "backend_suspect_seconds_total",
    help: "Time that the backend has spent in state suspect",
    labels: ["backend"],
    cap: backendCap,
    cluster: perBackend(({ suspectMs }) => suspectMs / 1000),
  },
  {
    name: "backend_ping_rtt_seconds",
    help: "Round-trip time that 99 % of the recent PINGs on upstream connections did not exceed, rounded up by at most a quarter",
    labels: ["backend", "quantile"],
    cluster: ({ backendStatuses }) =>
      backendStatuses.map(({ name, pingP99Ms }) => [[name, "0.99"], pingP99Ms / 1000]),
  },
  {
    name: "backend_probes_total",
    help: "Health probes that watchkeeper sent on new connections, by result",
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
    help: "Duration of the last answered probe, from the SYN to the response",
    labels: ["backend"],
    cap: backendCap,
    cluster: perBackend(({ probes }) => probes.lastMs / 1000),
  },
  ...loadMetrics,
  {
    name: "upstream_connections",
    help: "Open HTTP/2 connections to the backend, by the trust class and the kind of requests that they carry",
    labels: ["backend", "class", "kind"],
    cluster: perConnectionClass(({ open }) => open),
  },
  {
    name: "upstream_streams",
    help: "Open streams on the HTTP/2 connections to the backend, by trust class and kind of requests",
    labels: ["backend", "class", "kind"],
    cluster: perConnectionClass(({ streams }) => streams),
  },
  {
    name: "upstream_connections_closed_total",
    help: "Closed HTTP/2 connections to the backend",
    labels: ["backend"],
    cap: backendCap,
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
    help: "Client connections that were refused, or ended for breaking a rule, by reason",
    labels: ["reason"],
    counted: { "downstream_connection.refused": ({ reason }) => [reason] },
  },
  {
    name: "downstream_source_connections_ratio",
    help: "Open connections of the client address that has the most, as a share of its listener's maxConnectionsPerSource; at 1, watchkeeper refuses more connections of the address",
    process: ({ fullestSourceShare }) => fullestSourceShare(),
  },
  {
    name: "downstream_tls_handshake_errors_total",
    help: "Failed TLS handshakes with clients",
    process: ({ handshakeErrors }) => handshakeErrors(),
  },
  {
    name: "requests_refused_total",
    help: "Requests that the proxy refused before it could forward them, mostly because they break a rule of HTTP, by reason",
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
    help: "Requests in the pending queue: no backend is available, or too many requests with unproven credentials are in progress",
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
    help: "Requests sent a second time, to another backend or on another connection, by the backend that had not answered the first attempt",
    labels: ["backend"],
    cluster: ({ label, path: { hedges } }) =>
      Array.from(hedges.counts, ([backend, count]) => [[backendIn(label, backend)], count]),
  },
  {
    name: "request_hedge_wins_total",
    help: "Requests that were sent twice, by the attempt that was answered first: first or hedge",
    labels: ["attempt"],
    cluster: ({ path: { hedges } }) => Object.entries(hedges.wins),
  },
  {
    name: "request_ends_total",
    help: "Ended requests, by how they ended: complete, client_gone, backend_gone or refused",
    labels: ["reason"],
    cluster: ({ path: { exchanges } }) => Object.entries(exchanges.ends),
  },
  {
    name: "clients",
    help: "Number of known clients; a client is a combination of identity, program and address",
    cluster: ({ path: { ledgerTap } }) => ledgerTap.ledger.size,
  },
  {
    name: "client_requests_total",
    help: "Requests by the product in the User-Agent, and by verb; the first 50 products have series of their own",
    labels: ["client", "verb"],
    cap: limits.programSeries,
    cluster: ({ path: { ledgerTap } }) =>
      Array.from(ledgerTap.ledger.programs).flatMap(([client, { counts }]) =>
        counts.map(([verb, count]): Sample => [[client, verbLabel(verb)], count]),
      ),
  },
  {
    name: "api_failures_total",
    help: "Reads of aggregated APIs that failed at the backend, because the backend could not reach the server of the API group (refused), or because another backend answered a copy first (unanswered)",
    labels: ["backend", "group", "failure"],
    cluster: ({ path }) =>
      Array.from(path.avoidedApis.failures.counts.values(), ({ labels, count }): Sample => [labels, count]),
  },
  {
    name: "api_unreachable",
    help: "1 for each aggregated API group whose server the backend cannot reach, although another backend can",
    labels: ["backend", "group"],
    cluster: ({ backendStatuses }) =>
      backendStatuses.flatMap(({ name, unreachableApis }) =>
        unreachableApis.map((group): Sample => [[name, group], 1]),
      ),
  },
  {
    name: "watches",
    help: "Open watches by state; only live watches can be moved to another backend",
    labels: ["state"],
    cluster: ({ path }) => path.exchanges.watched.states,
  },
  {
    name: "watches_parked",
    help: "Watches that lost their backend and wait for another one",
    cluster: ({ path }) => path.migrations.waiting,
  },
  {
    name: "watch_events_total",
    help: "Watch events forwarded to clients",
    cluster: ({ path }) => path.exchanges.watched.events,
  },
  {
    name: "watch_event_bytes_total",
    help: "Bytes of the forwarded watch events",
    cluster: ({ path }) => path.exchanges.watched.bytes,
  },
  {
    name: "watch_moves_total",
    help: "Watches that watchkeeper moved to another backend without the client noticing, by reason of the move",
    labels: ["reason"],
    cluster: ({ path }) => path.migrations.moves,
  },
  {
    name: "watch_ends_total",
    help: "Watches that watchkeeper ended between two events, by reason; the client opens the watch again",
    labels: ["reason"],
    cluster: ({ path }) => path.migrations.ends,
  },
  {
    name: "watch_hedges_total",
    help: "Second upstream streams opened for watches whose backend was silent",
    cluster: ({ path }) => path.migrations.hedges,
  },
  {
    name: "watch_bookmark_refreshes_total",
    help: "Short second upstream streams of watches, opened to get a bookmark from the watch's own backend after another backend has restarted",
    cluster: ({ path }) => path.migrations.refreshes,
  },
  {
    name: "watch_sentinels",
    help: "Resources with a sentinel: a watch that two backends serve at the same time, so that watchkeeper can compare their caches",
    cluster: ({ path }) => path.sentinels.count,
  },
  {
    name: "watch_sentinel_streams_total",
    help: "Second upstream streams opened for sentinels, which are watches that two backends serve at the same time",
    cluster: ({ path }) => path.migrations.sentinels,
  },
  {
    name: "watch_progress_requests_total",
    help: "Lists of one object, with the watch's own credentials, that make an apiserver ask etcd for its progress, by result: answered, refused (for example by RBAC) or unanswered",
    labels: ["result"],
    cluster: ({ path }) => Object.entries(path.refresher.progressRequests),
  },
  {
    name: "backend_watches",
    help: "Streams of watches at the backend, by resource; without watches whose events watchkeeper cannot read",
    labels: ["backend", "resource"],
    cap: limits.watchSeries,
    cluster: ({ label, path: { caches } }) =>
      caches.watched.map(({ backend, resource, watches }) => [
        [backendIn(label, backend), resource],
        watches,
      ]),
  },
  {
    name: "watch_lag_seconds",
    help: "Time for which watches of the backend have not delivered the oldest write that they lack; 0 if they lack none. No value for a backend without a watch of a whole resource",
    labels: ["backend"],
    cap: backendCap,
    cluster: ({ backendStatuses }) =>
      backendStatuses.flatMap(({ name, watchLagMs }): Sample[] =>
        watchLagMs === undefined ? [] : [[[name], watchLagMs / 1000]],
      ),
  },
  {
    name: "watch_version_regressions_total",
    help: "Watch events with a lower version than an earlier event of the same watch; watchkeeper never moves such a watch",
    cluster: ({ path }) => path.exchanges.watched.versionRegressions,
  },
  {
    name: "watch_replay_loops_total",
    help: "Findings of a client that opens the same watch from the same version again and again; each client counts at most once a minute",
    labels: ["resource"],
    counted: { "watch.replay_loop": ({ resource }) => [resource] },
  },
  {
    name: "watched_apis",
    help: "Watched API groups and versions that are not built in, by kind: custom (watchkeeper resumes and compares their watches), aggregated or unknown (it does neither)",
    labels: ["kind"],
    cluster: ({ path }) => Object.entries(path.origins.counts),
  },
  {
    name: "stalled_caches",
    help: "Watch caches of backends that are stalled now; a backend has one watch cache for each resource",
    cluster: ({ path }) => path.migrations.stalls,
  },
  {
    name: "cache_stalls_total",
    help: "How often watchkeeper found a watch cache of the backend stalled, by detector",
    labels: ["backend", "detector"],
    counted: { "cache.stalled": ({ backend, detector }) => [backend, detector] },
  },
  {
    name: "stale_responses_total",
    help: "Responses to lists and new watches with a state older than the client had already seen",
    cluster: ({ path }) => path.staleReadGuard.counts.outdated,
  },
  {
    name: "stale_read_guard_requests_total",
    help: "Reads with resourceVersion=0 rewritten to a minimum version, by result",
    labels: ["result"],
    cluster: ({ path: { staleReadGuard } }) => [
      ["rewritten", staleReadGuard.counts.demanded],
      ["refused", staleReadGuard.counts.refused],
    ],
  },
  {
    name: "incidents_total",
    help: "Incidents that have begun, by kind and backend",
    labels: ["kind", "backend"],
    process: ({ incidents }) => incidents.counts.map(({ kind, backend, count }) => [[kind, backend], count]),
  },
  {
    name: "incident_active",
    help: "1 for each active incident, by kind and backend",
    labels: ["kind", "backend"],
    // A series for each kind of incident, and eight for each kind that names a backend.
    cap: 90,
    // A kind without an active incident has the value 0, so that its alert resolves.
    process: ({ incidents }) => [
      ...Object.keys(incidentKinds).map((kind): Sample => [[kind, ""], 0]),
      ...incidents.active.map(({ kind, backend }): Sample => [[kind, backend], 1]),
    ],
  },
  {
    name: "lease_holder_info",
    help: "1 for each leader lease, with its holder and the address of the last renewal; node leases are excluded",
    labels: ["namespace", "name", "holder", "source"],
    cap: 40,
    cluster: ({ leases }) =>
      leases.map(({ namespace, name, holder, source }) => [[namespace, name, holder, source], 1]),
  },
  {
    name: "lease_last_renew_timestamp_seconds",
    help: "Time of the last renewal of a leader lease",
    labels: ["namespace", "name"],
    cap: 40,
    cluster: ({ leases }) =>
      leases.map(({ namespace, name, renewedAtMs }) => [[namespace, name], renewedAtMs / 1000]),
  },
  {
    name: "lease_suspect",
    help: "1 for each leader lease with suspicious renewals, by verdict: contested, ghost or unknown",
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
    counted: { "passthrough.ended": ({ backend, reason }) => [backend, reason] },
  },
  {
    name: "passthrough_connections_refused_total",
    help: "Passthrough connections that never reached a backend, by error code and by the side that caused the failure",
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
