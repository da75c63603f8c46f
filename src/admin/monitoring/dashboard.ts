/** Generates the Grafana dashboard (config/monitoring/dashboard.json) from a list of panels. */

type Query = { readonly expr: string; readonly legend: string };

type Panel = {
  readonly title: string;
  readonly about: string;
  readonly unit: "short" | "s" | "bytes" | "percentunit" | "reqps" | "dateTimeFromNow";
  readonly kind: "timeseries" | "stat" | "table" | "state-timeline";
  /** Width in columns of Grafana's grid, which has 24. */
  readonly width: 6 | 8 | 12 | 24;
  readonly queries: readonly Query[];
};

type Row = { readonly title?: string; readonly panels: readonly Panel[] };

/**
 * Selects the series of the chosen cluster, and series without the label `cluster`: an instance that serves several
 * clusters does not set this label on series about the whole process.
 */
const selected = 'cluster=~"$cluster|", job=~"$job", instance=~"$instance"';
const of = `{${selected}}`;

function where(more: string): string {
  return `{${selected}, ${more}}`;
}

function rate(metric: string, by: string, more = ""): string {
  return `sum by (${by}) (rate(${metric}${more === "" ? of : where(more)}[$__rate_interval]))`;
}

const overview: readonly Panel[] = [
  {
    title: "Active incidents",
    about: "Active incidents. `watchkeeper explain` shows the evidence; each alert has a runbook.",
    unit: "short",
    kind: "table",
    width: 12,
    queries: [
      {
        expr: `sum by (cluster, instance, kind, backend) (watchkeeper_incident_active${of}) > 0`,
        legend: "{{kind}} {{backend}}",
      },
    ],
  },
  {
    title: "Ready backends",
    about: "Apiservers that accept new requests.",
    unit: "short",
    kind: "stat",
    width: 6,
    queries: [{ expr: `min(sum by (cluster, instance) (watchkeeper_backend_ready${of}))`, legend: "ready" }],
  },
  {
    title: "Open watches",
    about: "By state; only live watches can be moved to another apiserver.",
    unit: "short",
    kind: "stat",
    width: 6,
    queries: [{ expr: `sum by (state) (watchkeeper_watches${of})`, legend: "{{state}}" }],
  },
  {
    title: "State of the backends",
    about: "1 for the current state of each backend.",
    unit: "short",
    kind: "state-timeline",
    width: 24,
    queries: [
      {
        expr: `max by (backend, state) (watchkeeper_backend_state${of}) > 0`,
        legend: "{{backend}} {{state}}",
      },
    ],
  },
  {
    title: "Requests by code",
    about: "Code other: no response, or no valid code.",
    unit: "reqps",
    kind: "timeseries",
    width: 12,
    queries: [{ expr: rate("watchkeeper_requests_total", "code"), legend: "{{code}}" }],
  },
  {
    title: "Request failures by origin",
    about: "Only failures with origin backend count against a backend.",
    unit: "short",
    kind: "timeseries",
    width: 12,
    queries: [
      { expr: rate("watchkeeper_request_failures_total", "origin, code"), legend: "{{origin}}: {{code}}" },
    ],
  },
];

const delays: readonly Panel[] = [
  {
    title: "Request duration, 99th percentile",
    about:
      "From the head of a request to the end of its response; watches and other long-running requests are excluded.",
    unit: "s",
    kind: "timeseries",
    width: 12,
    queries: [
      {
        expr: `histogram_quantile(0.99, ${rate("watchkeeper_request_duration_seconds_bucket", "le, verb")})`,
        legend: "{{verb}}",
      },
    ],
  },
  {
    title: "Time added by watchkeeper, 99th percentile",
    about:
      "Until the head was written to an apiserver (request), the same with a wait for a connection or apiserver (queued), and from an apiserver's response until it was written to the client (response).",
    unit: "s",
    kind: "timeseries",
    width: 12,
    queries: [
      {
        expr: `histogram_quantile(0.99, ${rate("watchkeeper_request_overhead_seconds_bucket", "le, phase")})`,
        legend: "{{phase}}",
      },
    ],
  },
  {
    title: "Watch delay, 99th percentile, and watch lag",
    about:
      "Delay: from the response to a write until a watch delivered the write. Lag: age of the oldest write that the apiserver's watches have not delivered.",
    unit: "s",
    kind: "timeseries",
    width: 12,
    queries: [
      {
        expr: `histogram_quantile(0.99, ${rate("watchkeeper_watch_delay_seconds_bucket", "le, backend")})`,
        legend: "delay {{backend}}",
      },
      { expr: `max by (backend) (watchkeeper_watch_lag_seconds${of})`, legend: "lag {{backend}}" },
    ],
  },
  {
    title: "PING round-trip time, 99th percentile",
    about: "The time after which a silent backend is suspect depends on it.",
    unit: "s",
    kind: "timeseries",
    width: 12,
    queries: [
      {
        expr: `histogram_quantile(0.99, ${rate("watchkeeper_backend_ping_duration_seconds_bucket", "le, backend")})`,
        legend: "{{backend}}",
      },
    ],
  },
  {
    title: "Detection and move time, 99th percentile",
    about: "Until a failed apiserver was found, and until a watch continued at another one.",
    unit: "s",
    kind: "timeseries",
    width: 12,
    queries: [
      {
        expr: `histogram_quantile(0.99, ${rate("watchkeeper_backend_detection_seconds_bucket", "le, state")})`,
        legend: "found {{state}}",
      },
      {
        expr: `histogram_quantile(0.99, ${rate("watchkeeper_watch_move_duration_seconds_bucket", "le, reason")})`,
        legend: "moved: {{reason}}",
      },
    ],
  },
];

const balance: readonly Panel[] = [
  {
    title: "Load of the backends",
    about:
      "The load by which watchkeeper compares apiservers, in open streams, over all instances. Very different lines show skew.",
    unit: "short",
    kind: "timeseries",
    width: 8,
    queries: [{ expr: `sum by (backend) (watchkeeper_backend_load_streams${of})`, legend: "{{backend}}" }],
  },
  {
    title: "Requests by apiserver",
    about: "Very different lines show skew. Clients stay with their apiserver until watchkeeper moves them.",
    unit: "reqps",
    kind: "timeseries",
    width: 8,
    queries: [{ expr: rate("watchkeeper_requests_total", "backend", 'backend!=""'), legend: "{{backend}}" }],
  },
  {
    title: "Watches and other long-running requests by apiserver",
    about: "Open streams. Very different lines show skew.",
    unit: "short",
    kind: "timeseries",
    width: 8,
    queries: [
      {
        expr: `sum by (backend) (watchkeeper_upstream_streams${where('kind="long"')})`,
        legend: "{{backend}}",
      },
    ],
  },
  {
    title: "Shield of weak apiservers",
    about:
      "Lists that wait for their turn at an apiserver that has just started or is overloaded, lists per second that got 429, and the maximum number of concurrent lists there.",
    unit: "short",
    kind: "timeseries",
    width: 8,
    queries: [
      { expr: `sum(watchkeeper_shield_waiting${of})`, legend: "waiting" },
      { expr: `sum(rate(watchkeeper_shield_refused_total${of}[$__rate_interval]))`, legend: "refused /s" },
      { expr: `sum by (backend) (watchkeeper_backend_shield_cap${of} > 0)`, legend: "maximum {{backend}}" },
    ],
  },
  {
    title: "Requests refused by limits",
    about:
      "By name of the limit; operator: limits that operators have set. `watchkeeper limits` lists all limits.",
    unit: "reqps",
    kind: "timeseries",
    width: 8,
    queries: [{ expr: rate("watchkeeper_requests_limited_total", "limit"), legend: "{{limit}}" }],
  },
  {
    title: "Unreachable APIs",
    about: "Aggregated APIs whose server one apiserver cannot reach, although another apiserver can.",
    unit: "short",
    kind: "state-timeline",
    width: 8,
    queries: [
      {
        expr: `max by (backend, group) (watchkeeper_api_unreachable${of}) > 0`,
        legend: "{{backend}} {{group}}",
      },
    ],
  },
];

const clients: readonly Panel[] = [
  {
    title: "Watches moved and ended",
    about: "Moved: the client does not notice. Ended: the client starts a new watch.",
    unit: "short",
    kind: "timeseries",
    width: 12,
    queries: [
      { expr: rate("watchkeeper_watch_moves_total", "reason"), legend: "moved: {{reason}}" },
      { expr: rate("watchkeeper_watch_ends_total", "reason"), legend: "ended: {{reason}}" },
    ],
  },
  {
    title: "Watch events",
    about:
      "Forwarded to clients, by the apiserver that delivered them first. Very different lines show skew.",
    unit: "short",
    kind: "timeseries",
    width: 12,
    queries: [{ expr: rate("watchkeeper_watch_events_total", "backend"), legend: "{{backend}}" }],
  },
  {
    title: "Client connections",
    about: "By protocol.",
    unit: "short",
    kind: "timeseries",
    width: 8,
    queries: [{ expr: `sum by (alpn) (watchkeeper_downstream_connections${of})`, legend: "{{alpn}}" }],
  },
  {
    title: "Requests by program",
    about: "The product of their User-Agent.",
    unit: "reqps",
    kind: "timeseries",
    width: 8,
    queries: [
      { expr: `topk(10, ${rate("watchkeeper_client_requests_total", "client")})`, legend: "{{client}}" },
    ],
  },
  {
    title: "Suspect leader leases",
    about: "With the holder and the address of the last renewal.",
    unit: "short",
    kind: "table",
    width: 8,
    queries: [
      {
        expr: `watchkeeper_lease_suspect${of} * on (cluster, job, instance, namespace, name) group_left (holder, source) topk by (cluster, job, instance, namespace, name) (1, watchkeeper_lease_holder_info${of})`,
        legend: "{{namespace}}/{{name}}",
      },
    ],
  },
];

const processes: readonly Panel[] = [
  {
    title: "CPU and event-loop delay",
    about: "A process uses at most one core.",
    unit: "s",
    kind: "timeseries",
    width: 8,
    queries: [
      { expr: rate("process_cpu_seconds_total", "instance"), legend: "{{instance}} CPU" },
      { expr: `nodejs_eventloop_lag_p99_seconds${of}`, legend: "{{instance}} event-loop delay" },
    ],
  },
  {
    title: "Memory",
    about: "Buffered data for slow clients is bounded.",
    unit: "bytes",
    kind: "timeseries",
    width: 8,
    queries: [
      { expr: `process_resident_memory_bytes${of}`, legend: "{{instance}} resident" },
      { expr: `watchkeeper_buffered_bytes${of}`, legend: "{{instance}} buffered" },
    ],
  },
  {
    title: "Certificates by expiry",
    about: "Only a restart renews the loopback certificate of an apiserver.",
    unit: "dateTimeFromNow",
    kind: "table",
    width: 8,
    queries: [
      {
        expr: `sort(min by (purpose, name) (watchkeeper_certificate_expiry_timestamp_seconds${of}) * 1000)`,
        legend: "{{purpose}} {{name}}",
      },
    ],
  },
];

/** The rows of the dashboard. The first row has no title, so that it cannot be collapsed. */
const rows: readonly Row[] = [
  { panels: overview },
  { title: "Delays", panels: delays },
  { title: "Protection and balance", panels: balance },
  { title: "Watches and clients", panels: clients },
  { title: "Processes and certificates", panels: processes },
];

const source = { type: "prometheus", uid: "$datasource" };

const panelHeight = 8;

/** Returns the dashboard as JSON, for Grafana 11 and later. */
export function dashboard(): string {
  const placed: object[] = [];
  let y = 0;
  for (const { title, panels } of rows) {
    if (title !== undefined) {
      placed.push(headOf(title, placed.length + 1, y));
      y += 1;
    }
    let x = 0;
    for (const panel of panels) {
      if (x + panel.width > 24) {
        x = 0;
        y += panelHeight;
      }
      placed.push(panelOf(panel, placed.length + 1, { h: panelHeight, w: panel.width, x, y }));
      x += panel.width;
    }
    y += panelHeight;
  }
  return `${JSON.stringify({ ...frame, panels: placed }, undefined, 2)}\n`;
}

function headOf(title: string, id: number, y: number): object {
  return { id, type: "row", title, collapsed: false, gridPos: { h: 1, w: 24, x: 0, y }, panels: [] };
}

function panelOf({ title, about, unit, kind, queries }: Panel, id: number, gridPos: object): object {
  return {
    id,
    type: kind,
    title,
    description: about,
    datasource: source,
    gridPos,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: source,
      expr,
      legendFormat: legend,
      ...(kind === "table" ? { instant: true, format: "table" } : {}),
    })),
  };
}

function variable(name: string, query: string, more: object = {}): object {
  return {
    name,
    type: "query",
    datasource: source,
    query: { query, refId: name },
    refresh: 2,
    includeAll: true,
    multi: true,
    current: { text: "All", value: "$__all" },
    ...more,
  };
}

const frame = {
  uid: "watchkeeper",
  title: "watchkeeper",
  description: "Apiservers as their clients see them. Generated from src/admin/monitoring/dashboard.ts.",
  tags: ["kubernetes", "watchkeeper"],
  schemaVersion: 39,
  editable: true,
  refresh: "10s",
  time: { from: "now-1h", to: "now" },
  templating: {
    list: [
      { name: "datasource", type: "datasource", query: "prometheus", current: {} },
      // Series need not have the label `cluster` (config/monitoring/README.md): ".*" selects those without it as well.
      variable("cluster", "label_values(watchkeeper_backend_ready, cluster)", { allValue: ".*" }),
      variable("job", 'label_values(watchkeeper_backend_ready{cluster=~"$cluster"}, job)'),
      variable(
        "instance",
        'label_values(watchkeeper_backend_ready{cluster=~"$cluster", job=~"$job"}, instance)',
      ),
    ],
  },
};
