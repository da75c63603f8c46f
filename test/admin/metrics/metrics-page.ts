/** Generates docs/metrics.md from the declared metrics; a test checks that the file is current. */

import { isCounter } from "../../../src/admin/metrics/exposition.ts";
import { histograms } from "../../../src/admin/metrics/histogram-declarations.ts";
import { metrics } from "../../../src/admin/metrics/metric-declarations.ts";
import { limits } from "../../../src/base/limits.ts";

export function metricsPage(): string {
  const rows = [...metrics, ...histograms].map(({ name, labels = [], cap = limits.familySeries, help }) =>
    row(name, [typeOf(name), labels.join(", "), labels.length === 0 ? 1 : cap, help]),
  );
  return `${head}${rows.toSorted().join("")}${tail}`;
}

function typeOf(name: string): string {
  if (histograms.some((one) => one.name === name)) return "histogram";
  return isCounter({ name }) ? "counter" : "gauge";
}

function row(name: string, cells: readonly (string | number)[]): string {
  return `| \`watchkeeper_${name}\` | ${cells.join(" | ")} |\n`;
}

const head = `# Metrics

watchkeeper serves these metrics at \`/metrics\` on \`admin.metricsAddress\` (default: \`:7481\`), in the Prometheus text format 0.0.4, or in OpenMetrics 1.0 if
the client asks for it, as Prometheus does. If kube-apiserver has the same metric, watchkeeper uses kube-apiserver's name and labels for the metric. This page is
generated from the code by \`node test/admin/metrics/metrics-page.test.ts --write\`.

If the process serves several clusters, each series that is about one cluster also has the label \`cluster\` with the cluster's name ([clusters.md](clusters.md#names-in-logs-and-metrics)). Series about the whole process, such as
\`watchkeeper_build_info\`, do not have it. The column *labels* omits \`cluster\`, except for the metrics of discovery.

No label contains a path, a user name or a raw User-Agent. A label contains a namespace only in the metrics of leader leases. The column *at most* shows the maximum number of label sets of a metric for each cluster:
the metric keeps the first label sets and sums all others under \`other\`. A watchkeeper process with one cluster and a few backends has fewer than 2,200 series, whatever clients send; with 64 backends, fewer than 5,600. A metric by backend has a series for each of 64 backends, except
histograms and metrics with another label whose values are not a closed list, such as \`watchkeeper_requests_total\`.
\`watchkeeper_watch_events_total\` has no label \`resource\`: clients may watch any number of custom resources, and each of them would need a series for each backend. \`watchkeeper_backend_watches\` shows
at which backend the watches of a resource are.
If reloads have added more than 16 clusters over time, the events of further clusters are counted with \`cluster="other"\`.

The buckets of \`watchkeeper_request_duration_seconds\`, \`watchkeeper_request_overhead_seconds\` and \`watchkeeper_watch_move_duration_seconds\` have exemplars in OpenMetrics: the label \`audit_id\` contains the Audit-ID of the latest
request in the bucket. The access log and the audit log of kube-apiserver contain the same Audit-ID. Prometheus keeps exemplars with \`--enable-feature=exemplar-storage\`. In OpenMetrics, the bound of a bucket is
written as a floating-point number (\`le="1.0"\` instead of \`le="1"\`).

The time in \`watchkeeper_request_overhead_seconds\` ends when watchkeeper has written the header fields to the socket. This time does not include the time for which a request waits in the kernel because the process is busy;
\`nodejs_eventloop_lag_seconds\` shows such waits.

| metric | type | labels | at most | meaning |
| ------ | ---- | ------ | ------- | ------- |
`;

const tail = `
\`/metrics\` also contains prom-client's metrics of the process: \`process_*\` and \`nodejs_*\`. prom-client's \`nodejs_active_*\` are disabled, because with them each scrape would visit every open socket.

The label \`kind\` of \`watchkeeper_incident_active\` and \`watchkeeper_incidents_total\` has the kinds of incident that [the JSON API](admin-api.md#incidents) lists; the evidence of an incident is in the JSON API only. The
metrics \`watchkeeper_lease_*\` are about the leader leases whose renewals pass through this watchkeeper process, but not the heartbeat leases of nodes.
`;
