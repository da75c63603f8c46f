import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, globSync, lstatSync, readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse } from "yaml";
import { alertOf, incidentKinds } from "../../../../src/ops/incidents/kinds.ts";
import {
  type Alert,
  alerts,
  rules,
  rulesFile,
  rulesPath,
  runbookBase,
} from "../../../support/alert-rules.ts";
import { idleScrape } from "../../../support/metrics.ts";
import { labelsOn } from "../../admin/metrics/metrics-page.ts";

const test = suite("ops/cli/deploy/alert-rules");

function metricsIn({ expr }: Pick<Alert, "expr">): readonly string[] {
  return [...expr.matchAll(/\b(?:watchkeeper|nodejs|process)_\w+/g)].map(([name]) => name);
}

test("every metric that a rule asks for is in docs/metrics.md, or one of Node's that are really there", async () => {
  const page = readFileSync("docs/metrics.md", "utf8");
  const scraped = await idleScrape();
  for (const alert of alerts) {
    for (const name of metricsIn(alert)) {
      const isThere = name.startsWith("watchkeeper_")
        ? labelsOn(page, name) !== undefined
        : scraped.includes(`\n${name} `);
      assert.ok(isThere, `${alert.name} asks for ${name}`);
    }
  }
});

test("every label that a rule filters by is one of its metric's", () => {
  const page = readFileSync("docs/metrics.md", "utf8");
  for (const { name, expr } of alerts) {
    for (const [, metric = "", filter = ""] of expr.matchAll(/\b(watchkeeper_\w+)\{([^}]*)\}/g)) {
      const labels = labelsOn(page, metric) ?? [];
      for (const [, label = ""] of filter.matchAll(/(\w+)(?:=~|!~|!=|=)"/g))
        assert.ok(labels.includes(label), `${name}: ${metric} has no label ${label}, but ${labels.join()}`);
    }
  }
});

/** Incidents that every upgrade causes for some minutes while requests are still answered. */
const expected = new Set(["backend-api-missing"]);

test("every kind of incident but those of an upgrade names an alert of the rules", () => {
  for (const kind of Object.keys(incidentKinds)) {
    const name = alertOf(kind);
    if (expected.has(kind)) assert.is(name, undefined, kind);
    else
      assert.ok(
        alerts.some((alert) => alert.name === name),
        `${kind}: ${name}`,
      );
  }
  assert.is(alertOf("no-such-kind"), undefined);
  assert.is(alertOf("constructor"), undefined);
});

test("every kind of incident that a rule asks for is there", () => {
  for (const { name, expr } of alerts)
    for (const [, asked = ""] of expr.matchAll(/watchkeeper_incident_active\{kind=~?"([^"]*)"/g))
      for (const kind of asked.split("|")) assert.ok(Object.hasOwn(incidentKinds, kind), `${name}: ${kind}`);
});

for (const name of ["rules.yaml", "dashboard.json"]) {
  const [source, copy] = [`deploy/monitoring/${name}`, `deploy/helm/watchkeeper/files/${name}`];
  if (process.argv.includes("--write")) copyFileSync(source, copy);

  test(`the chart's ${name}, which Helm reads only from the chart's folder, is a copy: --write makes it so`, () => {
    assert.is(readFileSync(copy, "utf8"), readFileSync(source, "utf8"));
    assert.ok(lstatSync(copy).isFile(), "npm omits links from its packages");
  });
}

test("prometheusrule.sed makes the rules an object of the Prometheus Operator", () => {
  const text = execFileSync("sed", ["-f", "deploy/monitoring/prometheusrule.sed", rulesPath], {
    encoding: "utf8",
  });
  const { kind, spec } = parse(text);
  assert.equal([kind, spec], ["PrometheusRule", parse(rulesFile())]);
});

test("there are at most 16 alerts, and only a loss of service is critical", () => {
  assert.ok(alerts.length <= 16, `${alerts.length} alerts`);
  const critical = alerts.filter(({ severity }) => severity === "critical").map(({ name }) => name);
  assert.equal(critical, [
    "WatchkeeperDown",
    "WatchkeeperNoReadyBackends",
    "WatchkeeperIdentityRefused",
    "WatchkeeperCertificateExpired",
  ]);
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
  for (const { alert, annotations } of rules) {
    const { description = "", runbook = "" } = annotations;
    assert.match(description, /^Affected: .+\nSince: .+\nFirst: .+\nCommands .+\nReported by:/, alert);
    assert.match(description, `ALERTS_FOR_STATE{alertname=\\"${alert}\\"`);
    const areFew = /topk\(5, |(count|min) by \((backend|name)\b/.test(description);
    assert.ok(areFew, `${alert} names at most five of 5,000 instances`);
    assert.is(runbook, `${runbookBase}/${alert}`);
  }
});

test("no text of an alert leaves the kind of `watchkeeper explain` to the reader", () => {
  assert.not.match(rulesFile(), "explain KIND");
});

test("every alert that an inhibit rule names is there", () => {
  const file = readFileSync("deploy/monitoring/alertmanager.yaml", "utf8");
  const named = new Set(Array.from(file.matchAll(/Watchkeeper[A-Z]\w+/g), ([name]) => name));
  assert.ok(named.size >= 6);
  for (const name of named)
    assert.ok(
      alerts.some((alert) => alert.name === name),
      name,
    );
});

const headings = ["## Meaning", "## Impact", "## Diagnosis", "## Mitigation"];

test("every alert has a page from its meaning to its end, with a first command", () => {
  for (const alert of alerts) {
    const path = `docs/runbooks/${alert.name}.md`;
    assert.ok(existsSync(path), path);
    const page = readFileSync(path, "utf8");
    assert.match(page, `# ${alert.name}\n`);
    for (const heading of headings) assert.match(page, `\n${heading}\n`, path);
    assert.match(page, "\n```sh\n", path);
    assert.match(page, /(^|\. )Over when /m, path);
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
