/**
 * Lists all alerts. The Prometheus rules (config/monitoring) are generated from this list. An alert is about a cluster,
 * an apiserver, a certificate or a lease, and never about a single watchkeeper instance, because all instances report
 * the same dead apiserver. `critical`: clients get no service; `warning`: they still do.
 */
import type { IncidentKind } from "../../incidents/kinds.ts";
import { docsPage } from "../../program/docs.ts";

export type Alert = {
  /** Name of the alert, and of its runbook docs/runbooks/NAME.md. */
  readonly name: string;
  readonly severity: "critical" | "warning";
  readonly expr: string;
  /** How long the expression must hold before the alert fires. */
  readonly holds: string;
  readonly kinds: readonly IncidentKind[];
  readonly summary: string;
  /** Which clients are affected, and how. This text and `summary` may be Prometheus templates. */
  readonly affected: string;
  readonly first: string;
  /** The lines of the alert's text that show what the watchkeeper instances report. */
  readonly facts: readonly Fact[];
  /** Labels that distinguish firing alerts of this rule. */
  readonly by: readonly string[];
};

/** A line that an alert's text repeats for each result of a query. */
type Fact = {
  /**
   * PromQL, with `%q` for the value of each label in `of`. A query that may have thousands of results uses `topk` to
   * keep the text short.
   */
  readonly query: string;
  readonly of?: readonly string[];
  /** Label by whose values the lines of the alert's text are sorted; default: instance. */
  readonly sort?: string;
  readonly line: string;
};

const day = 86_400;

/**
 * The kinds of incident in which an apiserver is unusable. watchkeeper instances may report different kinds for the
 * same cause.
 */
const downKinds = [
  "backend-dead",
  "backend-blackholed",
  "backend-frozen",
  "backend-packets-lost",
  "backend-unready",
  "backend-untrusted",
  "backend-flapping",
] as const satisfies readonly IncidentKind[];

/**
 * The kinds of incident in which an apiserver answers requests, but serves old data, sends no events on some watches,
 * or cannot reach an aggregated API or a webhook.
 */
const staleKinds = [
  "backend-stale",
  "watch-hung",
  "watch-delayed",
  "cache-progress-delayed",
  "backend-api-unreachable",
  "backend-webhook-failing",
] as const satisfies readonly IncidentKind[];

/** The kinds of incident in which a client gets old events again. */
const replayKinds = ["watch-replay-loop", "version-regression"] as const satisfies readonly IncidentKind[];

/**
 * Selects the series of the alert's cluster (`%s`), and series without the label `cluster`. An instance that serves
 * several clusters sets this label, except on series about the whole process.
 */
export const ofCluster = 'cluster=~"%s|"';

/** Names an instance in an alert's text, with its pod if Prometheus knows the pod. */
const instance = "instance {{ .Labels.instance }}{{ with .Labels.pod }} (pod {{ . }}){{ end }}";

export function active(kinds: readonly IncidentKind[], more = ""): string {
  const kind = kinds.length === 1 ? `kind="${kinds[0]}"` : `kind=~"${kinds.join("|")}"`;
  return `watchkeeper_incident_active{${kind}${more}}`;
}

/** Returns an expression that counts the instances with an active incident of these kinds, by the labels `by`. */
function instancesWith(kinds: readonly IncidentKind[], by: string): string {
  return `count by (${by}) (max by (${by}, instance) (${active(kinds)} > 0))`;
}

/** Returns the expression with a label "reason" that says why the alert fires. */
function because(expr: string, reason: string): string {
  return `label_replace(${expr}, "reason", "${reason}", "", "")`;
}

/** Number of ready backends of each cluster at each instance. */
const readyBackends = "sum by (cluster, instance) (watchkeeper_backend_ready)";

const loopbackExpiry =
  'min by (cluster, backend) (label_replace(watchkeeper_certificate_expiry_timestamp_seconds{purpose="backend-loopback"}, "backend", "$1", "name", "(.*)")) - time()';

const otherExpiry =
  'min by (cluster, purpose, name) (watchkeeper_certificate_expiry_timestamp_seconds{purpose!="backend-loopback"}) - time()';

/** Number of requests and connections per second that watchkeeper itself refuses. */
const refusals =
  "sum by (cluster) (rate(watchkeeper_requests_refused_total[5m]) or rate(watchkeeper_requests_limited_total[5m]) or rate(watchkeeper_downstream_connections_refused_total[5m]))";

const fullestSource = "max by (cluster) (watchkeeper_downstream_source_connections_ratio)";

/** Lines such as "instance 10.0.0.11:7481: watch-hung cp-2". */
function kindsByInstance(kinds: readonly IncidentKind[]): Fact {
  return {
    query: `topk(5, max by (instance, pod, kind, backend) (${active(kinds, `,${ofCluster}`)} > 0))`,
    of: ["cluster"],
    line: `${instance}: {{ .Labels.kind }}{{ with .Labels.backend }} {{ . }}{{ end }}`,
  };
}

/** Returns an expression for the number of whole days until `expiry`. The number is negative after the expiry. */
function daysLeft(expiry: string): string {
  return `floor((${expiry}) / ${day})`;
}

/** Template for text such as "in 3 days". Prometheus sets `$value` to the result of `daysLeft`. */
const inDays =
  "in {{ if lt $value 1.0 }}less than a day{{ else if lt $value 2.0 }}1 day{{ else }}{{ $value }} days{{ end }}";

/** Lists the states of each apiserver, with the number of instances that see each state. Instances may disagree. */
const backendStates: Fact = {
  // The query joins both labels into one, because sortByLabel sorts by one label only, and the order of results with
  // equal labels changes between evaluations.
  query: `label_join(count by (backend, state) (watchkeeper_backend_state{${ofCluster}} > 0), "text", " is ", "backend", "state")`,
  of: ["cluster"],
  sort: "text",
  line: "apiserver {{ .Labels.text }} (instances: {{ .Value }})",
};

/** Template for the kind of incident that belongs to the label `verdict`. */
const leaseKind =
  'lease-{{ .Labels.verdict }}{{ if eq .Labels.verdict "ghost" }}-holder{{ else if eq .Labels.verdict "unknown" }}-client{{ end }}';

export const alerts: readonly Alert[] = [
  {
    name: "WatchkeeperDown",
    severity: "critical",
    expr: 'sum by (cluster) (up{job="watchkeeper"}) == 0 or absent(up{job="watchkeeper"})',
    holds: "2m",
    kinds: [],
    by: ["cluster"],
    summary: "No instance of watchkeeper answers Prometheus",
    affected: "every client of the cluster, if the instances are down and not only their metrics",
    first:
      "`kubectl --server=https://APISERVER:6443 --request-timeout=5s get --raw /readyz` past watchkeeper, then `curl -k -m 5 https://LISTENER/readyz` through it",
    facts: [{ query: 'topk(5, up{job="watchkeeper"} == 0)', line: `${instance}: not scraped` }],
  },
  {
    name: "WatchkeeperInstanceUnhealthy",
    severity: "warning",
    expr: `count by (cluster, reason) (${[
      because('(up{job="watchkeeper"} == 0 and on (cluster) up{job="watchkeeper"} == 1)', "not-scraped"),
      because(`${readyBackends} == 0`, "no-ready-backend"),
      `label_replace(${active(["listener-lost", "internal-error"])} > 0, "reason", "$1", "kind", "(.*)")`,
    ].join(" or ")})`,
    // The alert must not fire during a rolling update of the watchkeeper instances, or a reboot of one node.
    holds: "5m",
    kinds: ["listener-lost", "internal-error"],
    by: ["cluster", "reason"],
    summary:
      "Some instances of watchkeeper do not serve as they should: {{ $labels.reason }} (instances: {{ $value }})",
    affected: "clients of these instances only; the other instances serve",
    first:
      '{{ if match "^(listener-lost|internal-error)$" $labels.reason }}`watchkeeper explain {{ $labels.reason }}`{{ else }}`watchkeeper status`{{ end }} on an instance below',
    facts: [
      { query: 'topk(5, up{job="watchkeeper"} == 0)', line: `${instance}: not-scraped` },
      {
        query: `topk(5, ${readyBackends} == 0)`,
        line: `${instance}: no-ready-backend`,
      },
      kindsByInstance(["listener-lost", "internal-error"]),
    ],
  },
  {
    name: "WatchkeeperNoReadyBackends",
    severity: "critical",
    expr: `count by (cluster) (${readyBackends} == 0) / count by (cluster) (${readyBackends}) >= 0.5`,
    // The alert must not fire while a watchkeeper instance starts, because it has no ready backend until its first
    // probes are answered.
    holds: "30s",
    kinds: ["all-backends-down"],
    by: ["cluster"],
    summary: "No apiserver is available",
    affected:
      "every request through {{ $value | humanizePercentage }} of the instances: it waits, and then gets 503",
    first: "`watchkeeper get backends -o wide`: column REASON says how each apiserver fails",
    facts: [{ ...backendStates, query: "count by (backend, state) (watchkeeper_backend_state > 0)", of: [] }],
  },
  {
    name: "WatchkeeperBackendDown",
    severity: "warning",
    expr: `${instancesWith(downKinds, "cluster, backend")} unless on (cluster, backend) ${loopbackExpiry} < 0`,
    // The alert must not fire during the upgrade or restart of an apiserver, which takes about a minute and a half.
    holds: "2m",
    kinds: downKinds,
    by: ["cluster", "backend"],
    summary: `Apiserver {{ $labels.backend }} cannot be used:${activeKinds({ kinds: downKinds, by: ["backend"] })} (instances: {{ $value }})`,
    affected:
      "exec, attach, port-forward and `logs -f` through it ended, if there were any; reads and watches have moved to the other apiservers, which carry its load",
    first: `on an instance below, run${explainActive({ kinds: downKinds, by: ["backend"] })}: EVIDENCE says what failed. The runbook has the action for each kind`,
    facts: [
      {
        query: `topk(5, max by (instance, pod, kind) (${active(downKinds, `,${ofCluster},backend=%q`)} > 0))`,
        of: ["cluster", "backend"],
        line: `${instance}: {{ .Labels.kind }}`,
      },
      backendStates,
    ],
  },
  {
    name: "WatchkeeperBackendStale",
    severity: "warning",
    expr: `${instancesWith(staleKinds, "cluster, backend")} unless on (cluster, backend) (${active(downKinds)} > 0)`,
    holds: "1m",
    kinds: staleKinds,
    by: ["cluster", "backend"],
    summary: `Apiserver {{ $labels.backend }} answers, but its watches stand still or fall behind, or it cannot reach other servers:${activeKinds({ kinds: staleKinds, by: ["backend"] })} (instances: {{ $value }})`,
    affected:
      "clients that read from it past watchkeeper get old data; its watches through watchkeeper have moved; writes that call a webhook may fail",
    first: `on an instance below, run${explainActive({ kinds: staleKinds, by: ["backend"] })}: the resource and how far it is behind, or the API or webhook`,
    facts: [kindsByInstance(staleKinds)],
  },
  {
    name: "WatchkeeperWatchReplayLoop",
    severity: "warning",
    expr: instancesWith(replayKinds, "cluster"),
    holds: "30s",
    kinds: replayKinds,
    by: ["cluster"],
    summary: `History is replayed:${activeKinds({ kinds: replayKinds, by: [] })} (instances: {{ $value }})`,
    affected:
      "one client restarts a watch from the same old version (watch-replay-loop), or an apiserver sent an older version than before (version-regression): the client acts on old objects and can undo the work of others",
    first: `on an instance below, run${explainActive({ kinds: replayKinds, by: [] })}: CAUSED BY is the client with its address and program, or EVIDENCE names the apiserver. NEXT begins the search for the client's process`,
    facts: [kindsByInstance(replayKinds)],
  },
  {
    name: "WatchkeeperWatchesEnded",
    severity: "warning",
    expr: `sum by (cluster, reason) (rate(watchkeeper_watch_ends_total{reason!~"drained|slow_client|not_found"}[5m])) > 0.1 or ${because(
      `max by (cluster) (max_over_time(${active(["relist-storm"])}[10m])) > 0`,
      "relist-storm",
    )}`,
    holds: "5m",
    kinds: ["relist-storm"],
    by: ["cluster", "reason"],
    summary:
      "Watches end instead of moving to another apiserver, or many clients list again: {{ $labels.reason }}",
    affected: "the clients of these watches: they open the watches again, and may have to list first",
    first:
      '{{ if eq $labels.reason "relist-storm" }}`watchkeeper explain relist-storm`{{ else }}`watchkeeper get incidents`{{ end }} on an instance below',
    facts: [
      {
        query:
          'topk(5, sum by (instance, reason) (rate(watchkeeper_watch_ends_total{reason!~"drained|slow_client|not_found"}[5m])) > 0)',
        line: `${instance}: {{ .Value | humanize }} watches a second ({{ .Labels.reason }})`,
      },
      kindsByInstance(["relist-storm"]),
    ],
  },
  {
    name: "WatchkeeperLeaseSuspect",
    severity: "warning",
    expr: "max by (cluster, namespace, name) (watchkeeper_lease_suspect) > 0",
    holds: "15s",
    kinds: ["lease-ghost-holder", "lease-contested", "lease-unknown-client"],
    by: ["cluster", "namespace", "name"],
    summary: `Leader lease {{ $labels.namespace }}/{{ $labels.name }} is renewed by the wrong client:${leaseVerdicts(" {{ .Labels.verdict }}")}`,
    affected:
      "the program of this lease. Verdict ghost: a process that should be gone, or that uses another pod's token, renews it; contested: two clients lead; unknown: a client leads that never did before",
    first: `on an instance below, run${leaseVerdicts(` \`watchkeeper explain ${leaseKind}\``)}, also after the incident has ended: EVIDENCE and CAUSED BY name the process to stop, and NEXT has the commands that find it`,
    facts: [
      {
        query: `topk(5, watchkeeper_lease_holder_info{${ofCluster},namespace=%q,name=%q})`,
        of: ["cluster", "namespace", "name"],
        line: `${instance}: holder {{ .Labels.holder }}, renewed last from {{ .Labels.source }}`,
      },
    ],
  },
  {
    name: "WatchkeeperCertificateRefused",
    severity: "warning",
    expr: instancesWith(["certificate-refused"], "cluster"),
    // While a certificate and its key are being replaced, the two files do not match until both are written. The alert
    // must not fire in that time.
    holds: "1m",
    kinds: ["certificate-refused"],
    by: ["cluster"],
    summary:
      "A new certificate or key is bad: the last good one stays in use until it expires (instances: {{ $value }})",
    affected: "no client yet: the last good certificate stays in use, and nothing else is affected",
    first:
      "do not restart watchkeeper and roll out no new version: only the memory of the process has the last good one. `watchkeeper explain certificate-refused` on an instance below names the files, what is wrong, and which of two files has changed",
    facts: [
      {
        query: `topk(5, watchkeeper_certificate_reloads_total{result="rejected",${ofCluster}} > 0 and on (cluster, instance) ${active(["certificate-refused"])} > 0)`,
        of: ["cluster"],
        line: `${instance}: {{ .Labels.name }} (column NAME of \`watchkeeper get certificates\`): new files rejected ({{ .Value }} since the start of the instance)`,
      },
    ],
  },
  {
    name: "WatchkeeperCertificateExpiring",
    severity: "warning",
    expr: `${daysLeft(otherExpiry)} >= 0 < 7`,
    holds: "5m",
    kinds: ["certificate-expiring"],
    by: ["cluster", "purpose", "name"],
    summary: `The {{ $labels.purpose }} certificate of {{ $labels.name }} expires ${inDays}`,
    affected: "no client yet; from then on, TLS between clients, watchkeeper and apiservers fails",
    first: "`watchkeeper get certificates -o wide` on an instance below: the file, and who signed it",
    facts: [expiryByInstance()],
  },
  {
    name: "WatchkeeperCertificateExpired",
    severity: "critical",
    expr: `${daysLeft(otherExpiry)} < 0`,
    holds: "1m",
    kinds: ["certificate-expired"],
    by: ["cluster", "purpose", "name"],
    summary: "The {{ $labels.purpose }} certificate of {{ $labels.name }} has expired",
    affected: "all new TLS connections with this certificate fail",
    first: "`watchkeeper get certificates -o wide` on an instance below: the file, and who signed it",
    facts: [expiryByInstance()],
  },
  {
    name: "WatchkeeperLoopbackCertificateExpiring",
    severity: "warning",
    expr: `${daysLeft(loopbackExpiry)} < 30`,
    holds: "5m",
    kinds: ["loopback-certificate-expiring"],
    by: ["cluster", "backend"],
    summary: `The loopback certificate of apiserver {{ $labels.backend }} {{ if lt $value 0.0 }}has expired{{ else }}expires ${inDays}{{ end }}: only a restart of the apiserver renews it`,
    affected:
      "{{ if lt $value 0.0 }}admission, aggregation and the own controllers of this apiserver fail now{{ else }}no client yet; from then on, admission, aggregation and the own controllers of this apiserver fail{{ end }}",
    first:
      "`watchkeeper get certificates purpose=backend-loopback -o wide` on an instance below shows all apiservers with such a certificate. It is in no file: drain {{ $labels.backend }}, restart its kube-apiserver, and end the drain, as the runbook says",
    facts: [
      {
        query: `topk(5, watchkeeper_certificate_expiry_timestamp_seconds{purpose="backend-loopback",${ofCluster},name=%q})`,
        of: ["cluster", "backend"],
        line: `${instance}: {{ .Labels.name }} expires at {{ .Value | humanizeTimestamp }}`,
      },
    ],
  },
  {
    name: "WatchkeeperConfigNotApplied",
    severity: "warning",
    expr: `count by (cluster, reason) (${[
      because("watchkeeper_config_last_reload_successful == 0", "rejected"),
      because("max by (cluster, instance) (watchkeeper_config_restart_required) > 0", "restart-required"),
      because(`${active(["discovery-failed"])} > 0`, "discovery-failed"),
    ].join(" or ")})`,
    // The alert must not fire while an operator still edits the file, or restarts the proxy after a change that needs a
    // restart.
    holds: "10m",
    kinds: ["config-refused", "discovery-failed"],
    by: ["cluster", "reason"],
    summary: "The present configuration is not in use: {{ $labels.reason }} (instances: {{ $value }})",
    affected: "no client yet: these instances keep the configuration and the backends that they had",
    first: "`watchkeeper check --config FILE` on an instance below",
    facts: [
      {
        query: "topk(5, watchkeeper_config_last_reload_successful == 0)",
        line: `${instance}: rejected`,
      },
      {
        query: "topk(5, watchkeeper_config_restart_required > 0)",
        line: `${instance}: {{ .Labels.part }} waits for a restart`,
      },
      kindsByInstance(["discovery-failed"]),
    ],
  },
  {
    name: "WatchkeeperClientsRefused",
    severity: "warning",
    expr: `${refusals} > 0.1 or ${fullestSource} > 0.8`,
    holds: "5m",
    kinds: ["requests-limited", "operator-limit"],
    by: ["cluster"],
    summary: "watchkeeper refuses clients, or is about to refuse those of one address",
    affected: "the clients that are refused: they get an error from watchkeeper, and no apiserver sees them",
    first:
      "the log of an instance below: lines with `downstream_connection.refused`, `request.refused` and `limit.refused` have the client's address",
    facts: [
      {
        query:
          "topk(5, sum by (instance, reason) (rate(watchkeeper_requests_refused_total[5m]) or rate(watchkeeper_downstream_connections_refused_total[5m])) > 0)",
        line: `${instance}: {{ .Value | humanize }} a second: {{ .Labels.reason }}`,
      },
      {
        query: "topk(5, sum by (instance, limit) (rate(watchkeeper_requests_limited_total[5m])) > 0)",
        line: `${instance}: {{ .Value | humanize }} a second: limit {{ .Labels.limit }}`,
      },
      {
        query: "topk(5, watchkeeper_downstream_source_connections_ratio > 0.8)",
        line: `${instance}: one address has {{ .Value | humanizePercentage }} of maxConnectionsPerSource (a load balancer: add it to proxyProtocol.trustedCIDRs)`,
      },
    ],
  },
  {
    name: "WatchkeeperOverload",
    severity: "warning",
    expr: `count by (cluster, reason) (${because(`${active(["overload"])} > 0`, "overload")} or ${because(
      'nodejs_eventloop_lag_p99_seconds{job="watchkeeper"} > 0.25',
      "event-loop-delay",
    )})`,
    holds: "2m",
    kinds: ["overload"],
    by: ["cluster", "reason"],
    summary: "watchkeeper is at its limit: {{ $labels.reason }} (instances: {{ $value }})",
    affected: "clients of these instances: every request is late, and some are refused or aborted",
    first: "`watchkeeper top` on an instance below: the clients with most requests",
    facts: [
      kindsByInstance(["overload"]),
      {
        query: 'topk(5, nodejs_eventloop_lag_p99_seconds{job="watchkeeper"} > 0.25)',
        line: `${instance}: requests are late by {{ .Value | humanizeDuration }}`,
      },
    ],
  },
];

/** Returns a Prometheus template that prints `line` for each of the alert's kinds of incident that is active. */
export function activeKinds(
  { kinds, by }: Pick<Alert, "kinds" | "by">,
  line = " {{ .Labels.kind }}",
): string {
  const isByBackend = by.includes("backend");
  const matchers = `,${ofCluster}${isByBackend ? ",backend=%q" : ""}`;
  const query = `count by (kind) (${active(kinds, matchers)} > 0)`;
  return listOf({ query, of: isByBackend ? ["cluster", "backend"] : ["cluster"], sort: "kind", line });
}

/** Returns a Prometheus template with the commands that explain the active incidents of the alert. */
function explainActive(alert: Pick<Alert, "kinds" | "by">): string {
  return activeKinds(alert, " `watchkeeper explain {{ .Labels.kind }}`");
}

/** Returns a Prometheus template that prints `line` for each verdict about the alert's lease. */
function leaseVerdicts(line: string): string {
  const query = `count by (verdict) (watchkeeper_lease_suspect{${ofCluster},namespace=%q,name=%q} > 0)`;
  return listOf({ query, of: ["cluster", "namespace", "name"], sort: "verdict", line });
}

function expiryByInstance(): Fact {
  return {
    query: `topk(5, watchkeeper_certificate_expiry_timestamp_seconds{${ofCluster},purpose=%q,name=%q})`,
    of: ["cluster", "purpose", "name"],
    line: `${instance}: until {{ .Value | humanizeTimestamp }}`,
  };
}

/** Returns a Prometheus template that prints `line` for each result of `query`. */
export function listOf({ query, of = [], sort = "instance", line }: Fact): string {
  const labels = of.map((label) => ` $labels.${label}`).join("");
  const text = of.length === 0 ? JSON.stringify(query) : `(printf ${JSON.stringify(query)}${labels})`;
  return `{{ range query ${text} | sortByLabel "${sort}" }}${line}{{ end }}`;
}

/** Returns the alert about a kind of incident; undefined: there is none. */
export function alertOf(kind: string): Alert | undefined {
  return alerts.find(({ kinds }) => kinds.some((one) => one === kind));
}

export function runbookOf(kind: string): string | undefined {
  const alert = alertOf(kind);
  return alert === undefined ? undefined : runbookUrl(alert);
}

export function runbookUrl({ name }: Pick<Alert, "name">): string {
  return docsPage(`runbooks/${name}.md`);
}
