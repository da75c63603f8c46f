/**
 * Lists all alerts. The Prometheus rules (config/monitoring) are generated from this list. Most alerts fire for an
 * active incident, and fire at once, because an incident is proven when it becomes active.
 */
import type { IncidentKind } from "../../incidents/kinds.ts";

export type Alert = {
  /** Name of the alert, and of its runbook docs/runbooks/NAME.md. */
  readonly name: string;
  readonly severity: "critical" | "warning";
  readonly expr: string;
  /** Time for which the expression must hold before the alert fires; "0s" if it is about an active incident. */
  readonly holds: string;
  readonly kinds: readonly IncidentKind[];
  readonly summary: string;
  readonly description: string;
};

type IncidentAlert = Pick<Alert, "name" | "severity" | "kinds" | "summary"> & {
  readonly description?: string;
};

function ofIncident({ name, severity, kinds, summary, description }: IncidentAlert): Alert {
  const of = kinds.length === 1 ? `kind="${kinds[0]}"` : `kind=~"${kinds.join("|")}"`;
  return {
    name,
    severity,
    kinds,
    summary,
    expr: `watchkeeper_incident_active{${of}} > 0`,
    holds: "0s",
    description:
      description ??
      "`watchkeeper explain` on {{ $labels.instance }} shows the subject, the evidence and the impact.",
  };
}

/**
 * Returns an alert that fires for a leader lease with this verdict. `topk` takes one series for each lease, because the
 * join fails if a Lease and a ConfigMap have the same name.
 */
function ofLease(verdict: string, alert: Omit<IncidentAlert, "description">): Alert {
  return {
    ...ofIncident(alert),
    expr: `watchkeeper_lease_suspect{verdict="${verdict}"} * on (job, instance, namespace, name) group_left (holder, source) topk by (job, instance, namespace, name) (1, watchkeeper_lease_holder_info) > 0`,
    description:
      "Its holder is {{ $labels.holder }}; the last renewal came from {{ $labels.source }}. For details: `watchkeeper get leases -o wide` on {{ $labels.instance }}.",
  };
}

const day = 86_400;

export const alerts: readonly Alert[] = [
  {
    name: "WatchkeeperDown",
    severity: "critical",
    expr: 'up{job="watchkeeper"} == 0 or absent(up{job="watchkeeper"})',
    holds: "1m",
    kinds: [],
    summary: "watchkeeper cannot be scraped",
    description:
      "{{ with $labels.instance }}{{ . }}{{ else }}No instance{{ end }} answered Prometheus in the last minute.",
  },
  ofIncident({
    name: "WatchkeeperNoReadyBackends",
    severity: "critical",
    kinds: ["all-backends-down"],
    summary: "No apiserver is available",
  }),
  ofIncident({
    name: "WatchkeeperBackendBlackholed",
    severity: "critical",
    kinds: ["backend-blackholed", "backend-frozen", "backend-packets-lost"],
    summary: "Apiserver {{ $labels.backend }} accepts packets or connections but does not respond",
  }),
  ofIncident({
    name: "WatchkeeperBackendDead",
    severity: "critical",
    kinds: ["backend-dead"],
    summary: "Apiserver {{ $labels.backend }} refuses connections, or its etcd has another history",
  }),
  ofIncident({
    name: "WatchkeeperBackendUnready",
    severity: "warning",
    kinds: ["backend-unready"],
    summary: "Apiserver {{ $labels.backend }} reports not ready",
  }),
  ofIncident({
    name: "WatchkeeperBackendUntrusted",
    severity: "critical",
    kinds: ["backend-untrusted"],
    summary: "TLS verification of apiserver {{ $labels.backend }} failed",
  }),
  ofIncident({
    name: "WatchkeeperBackendStale",
    severity: "critical",
    kinds: ["backend-stale"],
    summary: "Apiserver {{ $labels.backend }} serves from a stalled watch cache",
  }),
  ofIncident({
    name: "WatchkeeperCacheProgressDelayed",
    severity: "warning",
    kinds: ["cache-progress-delayed"],
    summary:
      "etcd sends progress notifications to apiserver {{ $labels.backend }} too rarely: quiet watches do not survive two restarts",
  }),
  ofIncident({
    name: "WatchkeeperBackendFlapping",
    severity: "warning",
    kinds: ["backend-flapping"],
    summary: "Apiserver {{ $labels.backend }} is flapping",
  }),
  ofIncident({
    name: "WatchkeeperWatchHung",
    severity: "warning",
    kinds: ["watch-hung"],
    summary: "Watches on {{ $labels.backend }} stopped receiving bookmarks",
  }),
  {
    name: "WatchkeeperWatchMovesFailing",
    severity: "warning",
    expr: 'sum by (job, instance, reason) (rate(watchkeeper_watch_ends_total{reason!~"drained|slow_client|not_found"}[5m])) > 0.1',
    holds: "5m",
    kinds: [],
    summary: "Watches end because they cannot be moved to another apiserver: {{ $labels.reason }}",
    description:
      "{{ $value | humanize }} a second on {{ $labels.instance }}. Their clients start new watches, and may have to list first.",
  },
  ofIncident({
    name: "WatchkeeperWatchReplayLoop",
    severity: "warning",
    kinds: ["watch-replay-loop"],
    summary: "A client restarts a watch from the same version again and again",
  }),
  ofIncident({
    name: "WatchkeeperVersionRegression",
    severity: "warning",
    kinds: ["version-regression"],
    summary: "{{ $labels.backend }} sent an older version than before",
  }),
  ofIncident({
    name: "WatchkeeperRelistStorm",
    severity: "warning",
    kinds: ["relist-storm"],
    summary: "Many clients list again at the same time",
  }),
  ofLease("ghost", {
    name: "WatchkeeperLeaseGhostHolder",
    severity: "critical",
    kinds: ["lease-ghost-holder"],
    summary: "Lease {{ $labels.namespace }}/{{ $labels.name }} is renewed by a client that is not its holder",
  }),
  ofLease("contested", {
    name: "WatchkeeperLeaseContested",
    severity: "critical",
    kinds: ["lease-contested"],
    summary: "Two clients renew lease {{ $labels.namespace }}/{{ $labels.name }}",
  }),
  ofLease("unknown", {
    name: "WatchkeeperLeaseUnknownClient",
    severity: "warning",
    kinds: ["lease-unknown-client"],
    summary: "Lease {{ $labels.namespace }}/{{ $labels.name }} was acquired by an unknown client",
  }),
  ofIncident({
    name: "WatchkeeperCertificateRefused",
    severity: "critical",
    kinds: ["certificate-refused"],
    summary: "A new certificate or key was rejected: the last good one stays in use until it expires",
  }),
  {
    name: "WatchkeeperCertificateExpiringSoon",
    severity: "warning",
    expr: `watchkeeper_certificate_expiry_timestamp_seconds{purpose!="backend-loopback"} - time() < ${7 * day}`,
    holds: "0s",
    kinds: ["certificate-expiring"],
    summary:
      "{{ $labels.purpose }} certificate {{ $labels.name }} expires in {{ $value | humanizeDuration }}",
    description: "Reported by {{ $labels.instance }}. The certificate has not been renewed.",
  },
  {
    name: "WatchkeeperCertificateExpiringNow",
    severity: "critical",
    expr: `watchkeeper_certificate_expiry_timestamp_seconds{purpose!="backend-loopback"} - time() < ${day}`,
    holds: "0s",
    kinds: [],
    summary:
      "{{ $labels.purpose }} certificate {{ $labels.name }} expires in {{ $value | humanizeDuration }}",
    description:
      "Reported by {{ $labels.instance }}. TLS between clients, watchkeeper and apiservers fails from then on.",
  },
  {
    name: "WatchkeeperLoopbackCertificateExpiring",
    severity: "critical",
    expr: `watchkeeper_certificate_expiry_timestamp_seconds{purpose="backend-loopback"} - time() < ${30 * day}`,
    holds: "0s",
    kinds: ["loopback-certificate-expiring"],
    summary:
      "Loopback certificate of apiserver {{ $labels.name }} expires in {{ $value | humanizeDuration }}",
    description: "The apiserver uses it for requests to itself. Only a restart of the apiserver renews it.",
  },
  {
    name: "WatchkeeperConfigReloadFailed",
    severity: "warning",
    expr: "watchkeeper_config_last_reload_successful == 0",
    holds: "0s",
    kinds: ["config-refused"],
    summary: "A changed configuration was rejected",
    description: "{{ $labels.instance }} keeps the last good one. Its log lists each problem with its line.",
  },
  ofIncident({
    name: "WatchkeeperDiscoveryFailed",
    severity: "warning",
    kinds: ["discovery-failed"],
    summary: "Discovery of backends fails: the last backends found stay in use",
  }),
  ofIncident({
    name: "WatchkeeperListenerLost",
    severity: "critical",
    kinds: ["listener-lost"],
    summary: "A listener does not accept new connections",
  }),
  ofIncident({
    name: "WatchkeeperOverload",
    severity: "critical",
    kinds: ["overload"],
    summary: "Overload: requests are refused or aborted",
  }),
  {
    name: "WatchkeeperEventLoopLagHigh",
    severity: "warning",
    expr: 'nodejs_eventloop_lag_p99_seconds{job="watchkeeper"} > 0.25',
    holds: "2m",
    kinds: [],
    summary: "The event loop of {{ $labels.instance }} is delayed by {{ $value | humanizeDuration }}",
    description: "Failure detection and every request are delayed by the same time.",
  },
  ofIncident({
    name: "WatchkeeperInternalError",
    severity: "warning",
    kinds: ["internal-error"],
    summary: "An internal error of watchkeeper ended a stream or a session",
  }),
];

export function runbookOf(kind: string): string | undefined {
  const alert = alerts.find(({ kinds }) => kinds.some((one) => one === kind));
  return alert === undefined ? undefined : runbookPath(alert);
}

export function runbookPath({ name }: Pick<Alert, "name">): string {
  return `docs/runbooks/${name}.md`;
}
