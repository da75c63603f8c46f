import { readFileSync, writeFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { unwrapped } from "../../support/markdown.ts";
import { configPage, configTypes } from "./reference-page.ts";

const test = suite("config-page");
const file = "docs/configuration.md";
const typesFile = "config/schema/written.ts";
const schema = readFileSync("config/schema/watchkeeper.v1alpha2.json", "utf8");
const page = configPage(schema);
const types = configTypes(schema);
if (process.argv.includes("--write")) {
  writeFileSync(file, page);
  writeFileSync(typesFile, types);
}

test("docs/configuration.md is current: --write makes it so", () => {
  assert.is(readFileSync(file, "utf8"), page);
});

test("config/schema/written.ts is current: --write makes it so", () => {
  assert.is(readFileSync(typesFile, "utf8"), types);
});

test("keys at every depth are on it, with what they may be and what holds without them", () => {
  for (const line of [
    /^- `health\.ping\.interval` \(`250ms`\): .* 50ms–1m\.$/m,
    /^- `listeners\[\]\.name` \(required\): /m,
    /^## clusters\[\]\.backends$/m,
    /^- `clusters\[\]\.backends\[\]\.url`: as `clusters\[\]\.discovery\.fallback\.url`$/m,
    /^- `watches\.staleReadGuard` \(`Observe`\): .* Disabled = do nothing\.$/m,
    /^- `clusters\[\]\.connectionPool\.maxStreamsPerConnection` \(`80`\): .* 1–250\.$/m,
  ])
    assert.match(unwrapped(page), line);
});

test.run();
