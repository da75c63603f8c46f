/**
 * What an operator is woken for: one list, of which the rules for Prometheus are made (config/monitoring), and by which
 * `watchkeeper explain` finds the page that says what to do (docs/runbooks). Nearly all of them are incidents: what was
 * found is proven by then, so no rule waits for longer than it takes to scrape.
 */
import type { IncidentKind } from "../../incidents/kinds.ts";

export type Alert = {
  /** Its page is docs/runbooks/NAME.md. */
  readonly name: string;
  readonly severity: "critical" | "warning";
  readonly expr: string;
  /** How long it must hold: "0s" for what is proven already. */
  readonly holds: string;
  /** The incidents that it tells of. */
  readonly kinds: readonly IncidentKind[];
  readonly summary: string;
  readonly description: string;
};

type IncidentAlert = Pick<Alert, "name" | "severity" | "kinds" | "summary"> & {
  readonly description?: string;
};

/** An active incident of one of these kinds; the metric has its backend, if it is about one. */
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
      "`watchkeeper explain` on {{ $labels.instance }} tells who it is, what proves it, and what it costs.",
  };
}

/**
 * A lock that is not as it should be, with who renews it from which address. One row is taken of each: a Lease and a
 * ConfigMap of one name have two, and with both the rule would fail.
 */
function ofLock(verdict: string, alert: Omit<IncidentAlert, "description">): Alert {
  return {
    ...ofIncident(alert),
    expr: `watchkeeper_lease_suspect{verdict="${verdict}"} * on (job, instance, namespace, name) group_left (holder, source) topk by (job, instance, namespace, name) (1, watchkeeper_lease_holder_info) > 0`,
    description:
      "It names {{ $labels.holder }}, and was renewed last from {{ $labels.source }}. `watchkeeper get locks -o wide` on {{ $labels.instance }} tells more.",
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
    summary: "No apiserver can be asked",
  }),
  ofIncident({
    name: "WatchkeeperBackendBlackholed",
    severity: "critical",
    kinds: ["backend-blackholed", "backend-frozen", "backend-packets-lost"],
    summary: "Apiserver {{ $labels.backend }} takes what is sent and says nothing",
  }),
  ofIncident({
    name: "WatchkeeperBackendDead",
    severity: "critical",
    kinds: ["backend-dead"],
    summary: "Apiserver {{ $labels.backend }} refuses sockets",
  }),
  ofIncident({
    name: "WatchkeeperBackendUnready",
    severity: "warning",
    kinds: ["backend-unready"],
    summary: "Apiserver {{ $labels.backend }} says that it is not ready",
  }),
  ofIncident({
    name: "WatchkeeperBackendUntrusted",
    severity: "critical",
    kinds: ["backend-untrusted"],
    summary: "Who answers as apiserver {{ $labels.backend }} cannot be trusted",
  }),
  ofIncident({
    name: "WatchkeeperBackendStale",
    severity: "critical",
    kinds: ["backend-stale"],
    summary: "Apiserver {{ $labels.backend }} answers from a cache that stands still",
  }),
  ofIncident({
    name: "WatchkeeperCacheProgressDelayed",
    severity: "warning",
    kinds: ["cache-progress-delayed"],
    summary:
      "etcd notifies apiserver {{ $labels.backend }} of progress rarely: quiet watches cannot follow two restarts",
  }),
  ofIncident({
    name: "WatchkeeperBackendFlapping",
    severity: "warning",
    kinds: ["backend-flapping"],
    summary: "Apiserver {{ $labels.backend }} comes and goes",
  }),
  ofIncident({
    name: "WatchkeeperWatchHung",
    severity: "warning",
    kinds: ["watch-hung"],
    summary: "Watches at {{ $labels.backend }} have missed their bookmarks",
  }),
  {
    name: "WatchkeeperWatchMovesFailing",
    severity: "warning",
    expr: 'sum by (job, instance, reason) (rate(watchkeeper_watch_ends_total{reason!~"drained|slow_client|not_found"}[5m])) > 0.1',
    holds: "5m",
    kinds: [],
    summary: "Watches end that could not go on elsewhere: {{ $labels.reason }}",
    description:
      "{{ $value | humanize }} a second on {{ $labels.instance }}. Their clients watch again, and may list again.",
  },
  ofIncident({
    name: "WatchkeeperWatchReplayLoop",
    severity: "warning",
    kinds: ["watch-replay-loop"],
    summary: "A client watches from one version again and again",
  }),
  ofIncident({
    name: "WatchkeeperVersionRegression",
    severity: "warning",
    kinds: ["version-regression"],
    summary: "{{ $labels.backend }} showed something older than what was shown before",
  }),
  ofIncident({
    name: "WatchkeeperRelistStorm",
    severity: "warning",
    kinds: ["relist-storm"],
    summary: "Many clients list everything again at once",
  }),
  ofLock("ghost", {
    name: "WatchkeeperLeaseGhostHolder",
    severity: "critical",
    kinds: ["lock-ghost-holder"],
    summary:
      "Lock {{ $labels.namespace }}/{{ $labels.name }} is renewed by somebody who is not the pod that it names",
  }),
  ofLock("contested", {
    name: "WatchkeeperLeaseContested",
    severity: "critical",
    kinds: ["lock-contested"],
    summary: "Two clients hold lock {{ $labels.namespace }}/{{ $labels.name }}",
  }),
  ofLock("unknown", {
    name: "WatchkeeperLeaseUnknownClient",
    severity: "warning",
    kinds: ["unknown-lock-client"],
    summary: "Lock {{ $labels.namespace }}/{{ $labels.name }} was taken by somebody new",
  }),
  ofIncident({
    name: "WatchkeeperCertificateRefused",
    severity: "critical",
    kinds: ["certificate-refused"],
    summary: "A new certificate or key was refused: the last good one serves until it ends",
  }),
  {
    name: "WatchkeeperCertificateExpiringSoon",
    severity: "warning",
    expr: `watchkeeper_certificate_expiry_timestamp_seconds{purpose!="backend-loopback"} - time() < ${7 * day}`,
    holds: "0s",
    kinds: ["certificate-expiring"],
    summary: "{{ $labels.purpose }} certificate {{ $labels.name }} ends in {{ $value | humanizeDuration }}",
    description: "Seen by {{ $labels.instance }}. What renews it has not done so.",
  },
  {
    name: "WatchkeeperCertificateExpiringNow",
    severity: "critical",
    expr: `watchkeeper_certificate_expiry_timestamp_seconds{purpose!="backend-loopback"} - time() < ${day}`,
    holds: "0s",
    kinds: [],
    summary: "{{ $labels.purpose }} certificate {{ $labels.name }} ends in {{ $value | humanizeDuration }}",
    description: "Seen by {{ $labels.instance }}. Clients or backends will refuse each other then.",
  },
  {
    name: "WatchkeeperLoopbackCertificateExpiring",
    severity: "critical",
    expr: `watchkeeper_certificate_expiry_timestamp_seconds{purpose="backend-loopback"} - time() < ${30 * day}`,
    holds: "0s",
    kinds: ["loopback-certificate-expiring"],
    summary: "Apiserver {{ $labels.name }} cannot talk to itself in {{ $value | humanizeDuration }}",
    description: "Only a restart of that apiserver renews the certificate with which it talks to itself.",
  },
  {
    name: "WatchkeeperConfigReloadFailed",
    severity: "warning",
    expr: "watchkeeper_config_last_reload_successful == 0",
    holds: "0s",
    kinds: ["config-refused"],
    summary: "A changed configuration was not taken",
    description:
      "{{ $labels.instance }} serves with the last good one. Its log names every problem with its line.",
  },
  ofIncident({
    name: "WatchkeeperDiscoveryFailed",
    severity: "warning",
    kinds: ["discovery-failed"],
    summary: "Backends cannot be looked for: those found last stay",
  }),
  ofIncident({
    name: "WatchkeeperListenerLost",
    severity: "critical",
    kinds: ["listener-lost"],
    summary: "A listener takes no new clients",
  }),
  ofIncident({
    name: "WatchkeeperOverload",
    severity: "critical",
    kinds: ["overload"],
    summary: "Too much waits in one process: requests are refused, or cut",
  }),
  {
    name: "WatchkeeperEventLoopLagHigh",
    severity: "warning",
    expr: 'nodejs_eventloop_lag_p99_seconds{job="watchkeeper"} > 0.25',
    holds: "2m",
    kinds: [],
    summary:
      "The thread that serves clients of {{ $labels.instance }} is late: {{ $value | humanizeDuration }}",
    description: "Detection is late by as much, and so is every request.",
  },
  ofIncident({
    name: "WatchkeeperInternalError",
    severity: "warning",
    kinds: ["internal-error"],
    summary: "A fault of watchkeeper itself cost a stream or a session",
  }),
];

/** The page that says what to do about incidents of this kind, in this repository. */
export function runbookOf(kind: string): string | undefined {
  const alert = alerts.find(({ kinds }) => kinds.some((one) => one === kind));
  return alert === undefined ? undefined : runbookPath(alert);
}

export function runbookPath({ name }: Pick<Alert, "name">): string {
  return `docs/runbooks/${name}.md`;
}
