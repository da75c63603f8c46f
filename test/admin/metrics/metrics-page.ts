/** Generates docs/metrics.md from the declared metrics; a test checks that the file is current. */

import { isCounter } from "../../../src/admin/metrics/exposition.ts";
import { metrics, requestDuration } from "../../../src/admin/metrics/metric-declarations.ts";
import { limits } from "../../../src/base/limits.ts";

export function metricsPage(): string {
  const rows = [...metrics, requestDuration].map(({ name, labels = [], cap = limits.familySeries, help }) =>
    row(name, [typeOf(name), labels.join(", "), labels.length === 0 ? 1 : cap, help]),
  );
  return `${head}${rows.toSorted().join("")}${tail}`;
}

function typeOf(name: string): string {
  if (name === requestDuration.name) return "histogram";
  return isCounter({ name }) ? "counter" : "gauge";
}

function row(name: string, cells: readonly (string | number)[]): string {
  return `| \`watchkeeper_${name}\` | ${cells.join(" | ")} |\n`;
}

const head = `# Metrics

\`/metrics\` on \`admin.metricsAddress\` (default \`:7481\`), in the Prometheus text format. Names and labels follow kube-apiserver's where it has the same metric. This page is
generated from the code by \`node test/admin/metrics/metrics-page.test.ts --write\`.

No label contains a path, a user, a raw User-Agent or a namespace that a client can choose freely. *At most* is the maximum number of label sets of a metric: the first
ones are kept, the rest is summed under \`other\`. A process has fewer than 2,000 series whatever clients send.

| metric | type | labels | at most | meaning |
| ------ | ---- | ------ | ------- | ------- |
`;

const tail = `
In addition there are prom-client's metrics of the process: \`process_*\` and \`nodejs_*\`, without \`nodejs_active_*\`, which would visit every open socket.

\`incident_active\` and \`incidents_total\` have the kinds of [the JSON API](admin-api.md#incidents); only the API has their evidence. \`lease_*\` are
leader leases whose renewals pass through this proxy, without the nodes' own leases.
`;
