/** Generates docs/metrics.md from the declared metrics; a test checks that the file is current. */

import { isCounter } from "../../../src/admin/metrics/exposition.ts";
import { histograms, metrics } from "../../../src/admin/metrics/metric-declarations.ts";
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

watchkeeper serves these metrics at \`/metrics\` on \`admin.metricsAddress\` (default: \`:7481\`), in the Prometheus text format. If kube-apiserver has the same metric, watchkeeper uses kube-apiserver's name and labels for the metric. This page is
generated from the code by \`node test/admin/metrics/metrics-page.test.ts --write\`.

No label contains a path, a user, a raw User-Agent or a namespace that a client can choose freely. The column *at most* is the maximum number of label sets of a metric: the metric keeps the first
label sets and sums all others under \`other\`. A watchkeeper process with a few backends has fewer than 2,000 series, whatever clients send; with 64 backends, fewer than 2,500.

| metric | type | labels | at most | meaning |
| ------ | ---- | ------ | ------- | ------- |
`;

const tail = `
\`/metrics\` also contains prom-client's metrics of the process: \`process_*\` and \`nodejs_*\`. prom-client's \`nodejs_active_*\` are disabled, because each scrape would visit every open socket.

The label \`kind\` of \`watchkeeper_incident_active\` and \`watchkeeper_incidents_total\` has the kinds of incident that [the JSON API](admin-api.md#incidents) lists; the evidence of an incident is in the JSON API only. The metrics \`watchkeeper_lease_*\` contain the
leader leases whose renewals pass through this watchkeeper process, but not the heartbeat leases of nodes.
`;
