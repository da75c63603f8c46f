/** Generates the alert rules as a Prometheus rules file, and as a PrometheusRule object for the Prometheus operator. */
import { type Alert, alerts, runbookPath } from "./alerts.ts";

const head = `# Made of src/admin/monitoring/alerts.ts: node test/admin/monitoring/rules.test.ts --write
# Prometheus' job for watchkeeper is called "watchkeeper" here; say so in its scrape configuration, or change it in these rules.
`;

/** Returns a file for Prometheus' setting `rule_files`. */
export function rulesFile(): string {
  return `${head}${groups("")}`;
}

/** Returns a PrometheusRule. Operators may have to add labels, because a Prometheus object selects its rules by label. */
export function prometheusRule(): string {
  return `${head}apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: watchkeeper
  labels:
    app.kubernetes.io/name: watchkeeper
spec:
${groups("  ")}`;
}

function groups(indent: string): string {
  const lines = ["groups:", "  - name: watchkeeper", "    rules:", ...alerts.flatMap(linesOf)];
  return lines.map((line) => `${indent}${line}\n`).join("");
}

/** Returns the lines of one alert. Texts are quoted as JSON, which is valid YAML. */
function linesOf({ name, expr, holds, severity, summary, description, kinds }: Alert): readonly string[] {
  return [
    `      - alert: ${name}`,
    `        expr: ${JSON.stringify(expr)}`,
    ...(holds === "0s" ? [] : [`        for: ${holds}`]),
    "        labels:",
    `          severity: ${severity}`,
    "        annotations:",
    `          summary: ${JSON.stringify(summary)}`,
    `          description: ${JSON.stringify(description)}`,
    `          runbook: ${runbookPath({ name })}`,
    ...(kinds.length === 0 ? [] : [`          incidents: ${JSON.stringify(kinds.join(", "))}`]),
  ];
}
