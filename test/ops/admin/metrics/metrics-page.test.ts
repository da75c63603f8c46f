import { readFileSync, writeFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { metricsPage } from "./metrics-page.ts";

const test = suite("ops/admin/metrics/metrics-page");
const file = "docs/metrics.md";
if (process.argv.includes("--write")) writeFileSync(file, metricsPage());

test("docs/metrics.md is current: --write makes it so", () => {
  assert.is(readFileSync(file, "utf8"), metricsPage());
});

test.run();
