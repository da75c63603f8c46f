import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse } from "yaml";
import { alerts } from "../../../src/admin/monitoring/alerts.ts";
import { prometheusRule, rulesFile, runbookBase } from "../../../src/admin/monitoring/rules.ts";

const test = suite("admin/monitoring/rules");
const files = [
  ["config/monitoring/rules.yaml", rulesFile],
  ["config/monitoring/prometheusrule.yaml", prometheusRule],
  ["deploy/helm/watchkeeper/files/rules.yaml", rulesFile],
] as const;
if (process.argv.includes("--write")) {
  for (const [file, make] of files) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, make());
  }
}

for (const [file, make] of files) {
  test(`${file} is current: --write makes it so`, () => {
    assert.is(readFileSync(file, "utf8"), make());
  });
}

type Rule = {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
};
type Group = { readonly rules: readonly Rule[] };

test("both hold the same rules, as YAML reads them", () => {
  const plain: { readonly groups: readonly Group[] } = parse(rulesFile());
  const manifest: { readonly kind: string; readonly spec: { readonly groups: readonly Group[] } } = parse(
    prometheusRule(),
  );
  assert.equal(manifest.spec.groups, plain.groups);
  assert.is(manifest.kind, "PrometheusRule");
  const rules = plain.groups.flatMap((group) => group.rules);
  assert.equal(
    rules.map(({ alert, expr }) => [alert, expr]),
    alerts.map(({ name, expr }) => [name, expr]),
  );
  assert.is(rules[0]?.annotations["runbook_url"], `${runbookBase}/WatchkeeperDown.md`);
});

test.run();
