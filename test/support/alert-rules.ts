/** The alerts of deploy/monitoring/rules.yaml. */
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import {
  type IncidentKind,
  incidentKinds,
  type KindRow,
  type Severity,
} from "../../src/ops/incidents/kinds.ts";
import { docsPage } from "../../src/ops/program/docs.ts";

export const rulesPath = "deploy/monitoring/rules.yaml";

/** Beginning of every annotation `runbook`. */
export const runbookBase = docsPage("runbooks");

export function rulesFile(): string {
  return readFileSync(rulesPath, "utf8");
}

export type Rule = {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: Severity };
  readonly annotations: Readonly<Record<string, string>>;
};
type Rules = { readonly groups: readonly { readonly rules: readonly Rule[] }[] };

const written: Rules = parse(rulesFile());

export const rules: readonly Rule[] = written.groups.flatMap((group) => group.rules);

export type Alert = {
  readonly name: string;
  readonly severity: Severity;
  readonly expr: string;
  /** How long the expression must hold before the alert fires. */
  readonly holds: string;
  /** The kinds of incident that the alert is about. */
  readonly kinds: readonly IncidentKind[];
  /** Labels that distinguish firing alerts of this rule. */
  readonly by: readonly string[];
};

export const alerts: readonly Alert[] = rules.map((rule) => {
  const kinds = Object.entries<KindRow>(incidentKinds)
    .filter(([, { alert }]) => alert === rule.alert)
    .map(([kind]) => kind as IncidentKind);
  const [, matchers = ""] = /ALERTS_FOR_STATE\{([^}]*)\}/.exec(rule.annotations["description"] ?? "") ?? [];
  const by = Array.from(matchers.matchAll(/(\w+)=%q/g), ([, label = ""]) => label);
  return {
    name: rule.alert,
    severity: rule.labels.severity,
    expr: rule.expr,
    holds: rule.for,
    kinds,
    by,
  };
});
