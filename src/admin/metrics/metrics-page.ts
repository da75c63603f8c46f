/** Generates docs/metrics.md from the declared metrics; a test checks that the file is current. */
import { limits } from "../../base/limits.ts";
import { metrics, requestDuration } from "./metric-declarations.ts";

export function metricsPage(): string {
  const rows = [...metrics, requestDuration].map(
    ({ name, type, labels = [], cap = limits.familySeries, help }) =>
      row(name, [type, labels.join(", "), labels.length === 0 ? 1 : cap, help]),
  );
  return `${head}${rows.toSorted().join("")}${tail}`;
}

function row(name: string, cells: readonly (string | number)[]): string {
  return `| \`watchkeeper_${name}\` | ${cells.join(" | ")} |\n`;
}

const head = `# Metrics

\`/metrics\` on \`admin.metricsAddress\` (default \`:7481\`), in Prometheus' text format. Names and labels follow kube-apiserver where it has the like. This page is
made from the code: \`node test/admin/metrics/metrics-page.test.ts --write\`.

No label holds a path, a user, a raw User-Agent or a namespace that a client may invent at will. *At most* is how many sets of labels a family may have: the first
come are kept, the rest is summed under \`other\`. A process has fewer than 2,000 series whatever clients send.

| metric | type | labels | at most | what it says |
| ------ | ---- | ------ | ------- | ------------ |
`;

const tail = `
Besides them prom-client's own of the process: \`process_*\` and \`nodejs_*\`, without \`nodejs_active_*\`, for which every open socket would be visited.

\`incident_active\` and \`incidents_total\` have the kinds of [the JSON API](admin-api.md#incidents); what proves an incident is shown there only. \`lease_*\` are
leader locks whose renewals pass through this proxy, nodes' own leases left out.
`;
