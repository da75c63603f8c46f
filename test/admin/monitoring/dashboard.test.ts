import { readFileSync, writeFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { dashboard } from "../../../src/admin/monitoring/dashboard.ts";
import { idleScrape } from "../../support/metrics.ts";

const test = suite("admin/monitoring/dashboard");
const file = "config/monitoring/dashboard.json";
if (process.argv.includes("--write")) writeFileSync(file, dashboard());

type Place = { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
type Panel = {
  readonly id: number;
  readonly title: string;
  readonly gridPos: Place;
  readonly targets: readonly { readonly expr: string; readonly refId: string }[];
};

function panels(): readonly Panel[] {
  const { panels: all }: { readonly panels: readonly Panel[] } = JSON.parse(dashboard());
  return all;
}

test(`${file} is current: --write makes it so`, () => {
  assert.is(readFileSync(file, "utf8"), dashboard());
});

test("every metric that a panel draws is in docs/metrics.md, or one of Node's that are really there", async () => {
  const page = readFileSync("docs/metrics.md", "utf8");
  const scraped = await idleScrape();
  for (const { title, targets } of panels()) {
    for (const { expr } of targets) {
      for (const [name] of expr.matchAll(/\b(?:watchkeeper|nodejs|process)_\w+/g)) {
        const family = name.replace(/_bucket$/, "");
        const isThere = page.includes(`| \`${family}\` |`) || scraped.includes(`\n${family} `);
        assert.ok(isThere, `${title}: ${name}`);
      }
    }
  }
});

test("every label that a panel sums by or filters by is one of its metric's", () => {
  const page = readFileSync("docs/metrics.md", "utf8");
  const shared = ["job", "instance", "le"];
  const asked = panels().flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr })));
  for (const { title, expr } of asked) {
    const metrics = [...expr.matchAll(/\b(watchkeeper_\w+)/g)].map(([name]) => name.replace(/_bucket$/, ""));
    const labels = metrics.flatMap((name) => {
      const [, cell = ""] = new RegExp(`\\| \`${name}\` \\| \\w+ \\| ([^|]*) \\|`).exec(page) ?? [];
      return cell.split(", ");
    });
    const sums = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(", "));
    const strange = sums.filter((label) => !shared.includes(label) && !labels.includes(label));
    assert.equal(strange, [], title);
  }
});

test("no two panels lie on each other, and none is without a question", () => {
  const all = panels();
  assert.is(new Set(all.map(({ id }) => id)).size, all.length);
  for (const { title, gridPos: a, targets, id } of all) {
    assert.ok(targets.length > 0 && a.x + a.w <= 24, title);
    for (const other of all) {
      const b = other.gridPos;
      const isApart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
      assert.ok(other.id === id || isApart, `${title} and ${other.title}`);
    }
  }
});

test.run();
