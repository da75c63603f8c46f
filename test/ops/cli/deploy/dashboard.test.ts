import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { idleScrape } from "../../../support/metrics.ts";
import { labelsOn } from "../../admin/metrics/metrics-page.ts";

const test = suite("ops/cli/deploy/dashboard");
const file = "deploy/monitoring/dashboard.json";

type Place = { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
type Panel = {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: Place;
  /** The queries; undefined: the panel is the head of a row. */
  readonly targets?: readonly { readonly expr: string; readonly refId: string }[];
};
type Variable = { readonly name: string; readonly query: unknown; readonly allValue?: string };
type Dashboard = {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
};

const shown: Dashboard = JSON.parse(readFileSync(file, "utf8"));
const queries = shown.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
);

test("every metric that a panel draws is in docs/metrics.md, or one of Node's that are really there", async () => {
  const page = readFileSync("docs/metrics.md", "utf8");
  const scraped = await idleScrape();
  for (const { title, expr } of queries) {
    for (const [name] of expr.matchAll(/\b(?:watchkeeper|nodejs|process)_\w+/g)) {
      const family = name.replace(/_bucket$/, "");
      const isThere = labelsOn(page, family) !== undefined || scraped.includes(`\n${family} `);
      assert.ok(isThere, `${title}: ${name}`);
    }
  }
});

test("every label that a panel sums by or filters by is one of its metric's", () => {
  const page = readFileSync("docs/metrics.md", "utf8");
  const shared = ["cluster", "job", "instance", "le"];
  for (const { title, expr } of queries) {
    const metrics = [...expr.matchAll(/\b(watchkeeper_\w+)/g)].map(([name]) => name.replace(/_bucket$/, ""));
    const labels = metrics.flatMap((name) => labelsOn(page, name) ?? []);
    const sums = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(", "));
    const strange = sums.filter((label) => !shared.includes(label) && !labels.includes(label));
    assert.equal(strange, [], title);
  }
});

test("every metric is selected by the variables, and without a chosen cluster the label may be missing", () => {
  const variables = ["cluster", "job", "instance"];
  for (const { title, expr } of queries) {
    const metrics = expr.match(/\b(?:watchkeeper|nodejs|process)_\w+/g) ?? [];
    const selectors = expr.match(/\w\{[^}]*\}/g) ?? [];
    assert.is(selectors.length, metrics.length, title);
    for (const selector of selectors)
      for (const text of ['cluster=~"$cluster|"', 'job=~"$job"', 'instance=~"$instance"'])
        assert.ok(selector.includes(text), `${title}: ${text}`);
  }
  const { list } = shown.templating;
  assert.equal(
    list.map(({ name }) => name),
    ["datasource", ...variables],
  );
  assert.is(list.find(({ name }) => name === "cluster")?.allValue, ".*");
  assert.is(
    list.find(({ name }) => name === "job")?.allValue,
    undefined,
    "process_* of other jobs would be shown",
  );
});

test("no two panels lie on each other, and each has a query or is the head of a row", () => {
  const all = shown.panels;
  assert.is(new Set(all.map(({ id }) => id)).size, all.length);
  for (const { title, type, gridPos: a, targets, id } of all) {
    assert.ok(type === "row" ? targets === undefined : (targets?.length ?? 0) > 0, title);
    assert.ok(a.x + a.w <= 24, title);
    for (const other of all) {
      const b = other.gridPos;
      const isApart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
      assert.ok(other.id === id || isApart, `${title} and ${other.title}`);
    }
  }
});

test.run();
