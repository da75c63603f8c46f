import { existsSync, globSync, readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse } from "yaml";
import { type Alert, alerts, runbookOf } from "../../../src/admin/monitoring/alerts.ts";
import { rulesFile, runbookBase } from "../../../src/admin/monitoring/rules.ts";
import { incidentKinds } from "../../../src/incidents/kinds.ts";
import { idleScrape } from "../../support/metrics.ts";

const test = suite("admin/monitoring/alerts");

type Rule = { readonly alert: string; readonly annotations: Readonly<Record<string, string>> };

function metricsIn({ expr }: Pick<Alert, "expr">): readonly string[] {
  return [...expr.matchAll(/\b(?:watchkeeper|nodejs|process)_\w+/g)].map(([name]) => name);
}

test("every metric that a rule asks for is in docs/metrics.md, or one of Node's that are really there", async () => {
  const page = readFileSync("docs/metrics.md", "utf8");
  const scraped = await idleScrape();
  for (const alert of alerts) {
    for (const name of metricsIn(alert)) {
      const isThere = name.startsWith("watchkeeper_")
        ? page.includes(`| \`${name}\` |`)
        : scraped.includes(`\n${name} `);
      assert.ok(isThere, `${alert.name} asks for ${name}`);
    }
  }
});

test("every label that a rule filters by is one of its metric's", () => {
  const page = readFileSync("docs/metrics.md", "utf8");
  for (const { name, expr } of alerts) {
    for (const [, metric = "", filter = ""] of expr.matchAll(/\b(watchkeeper_\w+)\{([^}]*)\}/g)) {
      const [, labels = ""] = new RegExp(`\\| \`${metric}\` \\| \\w+ \\| ([^|]*) \\|`).exec(page) ?? [];
      for (const [, label = ""] of filter.matchAll(/(\w+)(?:=~|!~|!=|=)"/g))
        assert.ok(
          labels.split(", ").includes(label),
          `${name}: ${metric} has no label ${label}, but ${labels}`,
        );
    }
  }
});

/** Incidents that every upgrade causes for some minutes while requests are still answered. */
const expected = new Set(["backend-api-missing"]);

test("every kind of incident but those of an upgrade has its alert", () => {
  for (const kind of Object.keys(incidentKinds)) {
    if (expected.has(kind)) continue;
    const alert = alerts.find(({ kinds }) => kinds.some((one) => one === kind));
    if (alert === undefined) throw new Error(`No alert is about ${kind}`);
    assert.is(runbookOf(kind), `${runbookBase}/${alert.name}.md`);
  }
  assert.is(runbookOf("no-such-kind"), undefined);
});

test("there are at most 15 alerts, and only a loss of service is critical", () => {
  assert.ok(alerts.length <= 15, `${alerts.length} alerts`);
  const critical = alerts.filter(({ severity }) => severity === "critical").map(({ name }) => name);
  assert.equal(critical, ["WatchkeeperDown", "WatchkeeperNoReadyBackends", "WatchkeeperCertificateExpired"]);
});

test("an incident has the severity of its alert", () => {
  for (const { name, severity, kinds } of alerts)
    for (const kind of kinds) assert.is(incidentKinds[kind].severity, severity, `${name}: ${kind}`);
});

/** `absent` returns no labels, because it is about all instances. */
test("no alert is about one instance, and each waits before it fires", () => {
  for (const { name, expr, holds, by } of alerts) {
    assert.match(expr, /\b(sum|count|min|max) by \(cluster/, name);
    assert.not.ok(by.includes("instance"), name);
    assert.match(holds, /^\d+[sm]$/, name);
  }
});

test("the text of an alert says what is affected, since when, what to do first, and what instances report", () => {
  const rules: { readonly groups: readonly { readonly rules: readonly Rule[] }[] } = parse(rulesFile());
  for (const { alert, annotations } of rules.groups.flatMap((group) => group.rules)) {
    const { description = "", runbook_url = "" } = annotations;
    assert.match(description, /^Affected: .+\nSince: .+\nFirst: .+\nCommands .+\nReported by:/, alert);
    assert.match(description, `ALERTS_FOR_STATE{alertname=\\"${alert}\\"`);
    const areFew = /topk\(5, |(count|min) by \((backend|name)\b/.test(description);
    assert.ok(areFew, `${alert} names at most five of 5,000 instances`);
    assert.is(runbook_url, `${runbookBase}/${alert}.md`);
  }
});

test("no text of an alert leaves the kind of `watchkeeper explain` to the reader", () => {
  assert.not.match(rulesFile(), "explain KIND");
});

test("every alert that an inhibit rule names is there", () => {
  const file = readFileSync("config/monitoring/alertmanager.yaml", "utf8");
  const named = new Set(Array.from(file.matchAll(/Watchkeeper[A-Z]\w+/g), ([name]) => name));
  assert.ok(named.size >= 6);
  for (const name of named)
    assert.ok(
      alerts.some((alert) => alert.name === name),
      name,
    );
});

const headings = [
  "## Meaning",
  "## Impact",
  "## Diagnosis",
  "## Similar alerts",
  "## Mitigation",
  "## Recovery",
];

test("every alert has a page from its meaning to its end, with a first command", () => {
  for (const alert of alerts) {
    const path = `docs/runbooks/${alert.name}.md`;
    assert.ok(existsSync(path), path);
    const page = readFileSync(path, "utf8");
    assert.match(page, `# ${alert.name}\n`);
    for (const heading of headings) assert.match(page, `\n${heading}\n`, path);
    assert.match(page, "\n```sh\n", path);
  }
  const pages = globSync("docs/runbooks/Watchkeeper*.md").toSorted();
  assert.equal(
    pages,
    alerts.map(({ name }) => `docs/runbooks/${name}.md`).toSorted(),
    "and no page without an alert",
  );
});

test("names are unique", () => {
  assert.is(new Set(alerts.map(({ name }) => name)).size, alerts.length);
});

test.run();
