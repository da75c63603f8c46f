import { existsSync, globSync, readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Alert, alerts, runbookOf, runbookPath } from "../../../src/admin/monitoring/alerts.ts";
import { incidentKinds } from "../../../src/incidents/kinds.ts";
import { idleScrape } from "../../support/metrics.ts";

const test = suite("admin/monitoring/alerts");

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

/** Every upgrade has this incident for some minutes, and requests are answered. */
const expected = new Set(["backend-api-missing"]);

test("every kind of incident but those of an upgrade has its alert, of the same severity or a worse one", () => {
  for (const [kind, { severity }] of Object.entries(incidentKinds)) {
    if (expected.has(kind)) continue;
    const alert = alerts.find(({ kinds }) => kinds.some((one) => one === kind));
    if (alert === undefined) throw new Error(`No alert tells of ${kind}`);
    if (severity === "critical") assert.is(alert.severity, "critical", kind);
    assert.is(runbookOf(kind), `docs/runbooks/${alert.name}.md`);
  }
  assert.is(runbookOf("no-such-kind"), undefined);
});

test("every alert has a page that says what it means, what it costs, how to look and what to do", () => {
  for (const alert of alerts) {
    const path = runbookPath(alert);
    assert.ok(existsSync(path), path);
    const page = readFileSync(path, "utf8");
    assert.match(page, `# ${alert.name}\n`);
    for (const heading of ["## Meaning", "## Impact", "## Diagnosis", "## Mitigation"])
      assert.match(page, heading, path);
  }
  const pages = globSync("docs/runbooks/Watchkeeper*.md").toSorted();
  assert.equal(pages, alerts.map((alert) => runbookPath(alert)).toSorted(), "and no page without an alert");
});

test("names are unique, and what waits says for how long", () => {
  assert.is(new Set(alerts.map(({ name }) => name)).size, alerts.length);
  for (const { name, holds } of alerts) assert.match(holds, /^\d+[sm]$/, name);
});

test.run();
