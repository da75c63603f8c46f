/** Generates the alert rules as a Prometheus rules file, which is also in the Helm chart, and as a PrometheusRule. */
import { docsPage } from "../../program/docs.ts";
import { type Alert, activeKinds, alerts, listOf, runbookUrl } from "./alerts.ts";

/** Base of every `runbook_url`. The Helm chart replaces it with its value `prometheusRule.runbookBaseURL`. */
export const runbookBase = docsPage("runbooks");

const head = `# Made of src/admin/monitoring/alerts.ts: node test/admin/monitoring/rules.test.ts --write
# Prometheus' job for watchkeeper is called "watchkeeper" here; say so in its scrape configuration, or change it in these rules.
# If you keep the runbooks in another place, replace ${runbookBase} here.
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
function linesOf(alert: Alert): readonly string[] {
  const { name, expr, holds, severity, summary, kinds } = alert;
  return [
    `      - alert: ${name}`,
    `        expr: ${JSON.stringify(expr)}`,
    `        for: ${holds}`,
    "        labels:",
    `          severity: ${severity}`,
    "        annotations:",
    `          summary: ${JSON.stringify(summary)}`,
    `          description: ${JSON.stringify(descriptionOf(alert))}`,
    `          runbook_url: ${runbookUrl(alert)}`,
    ...(kinds.length === 0 ? [] : [`          incidents: ${JSON.stringify(`active:${activeKinds(alert)}`)}`]),
  ];
}

function descriptionOf({ name, by, affected, first, facts }: Alert): string {
  const matchers = [`alertname="${name}"`, ...by.map((label) => `${label}=%q`)].join(",");
  // Prometheus' own series ALERTS_FOR_STATE contains the time at which the alert's expression began to hold.
  const since = {
    query: `min(ALERTS_FOR_STATE{${matchers}})`,
    of: by,
    line: "{{ .Value | humanizeTimestamp }}",
  };
  return [
    `Affected: ${affected}.`,
    `Since: ${listOf(since)}.`,
    `First: ${first}.`,
    `Commands run on the host of an instance, or through \`kubectl port-forward POD 7480\`: ${runbookBase}/README.md#commands-on-an-instance`,
    `Reported by:${facts.map(({ line, ...fact }) => listOf({ ...fact, line: `\n- ${line}` })).join("")}`,
  ].join("\n");
}
