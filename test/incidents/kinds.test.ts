import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { incidentKinds } from "../../src/incidents/kinds.ts";

const test = suite("incidents/kinds");

test("docs/admin-api.md tells each kind, with how bad it is and when it is over", () => {
  const page = readFileSync("docs/admin-api.md", "utf8");
  for (const [kind, { severity, about, calmMs }] of Object.entries(incidentKinds)) {
    const over =
      calmMs > 0
        ? `when watchkeeper has found nothing new of the incident for ${calmMs / 1000} s`
        : "when the cause is gone";
    assert.ok(page.includes(`| \`${kind}\` | ${severity} | ${about} | ${over} |`), kind);
  }
});

test.run();
