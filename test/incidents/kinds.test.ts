import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { incidentKinds } from "../../src/incidents/kinds.ts";

const test = suite("incidents/kinds");

test("docs/admin-api.md lists each kind, with its severity, its text and the time after which it ends", () => {
  const page = readFileSync("docs/admin-api.md", "utf8").replaceAll(/\n {2}/g, " ");
  const [, section = ""] = page.split("\n### incidents\n");
  const listed = [...(section.split("\n### ")[0] ?? "").matchAll(/^- `.+$/gm)].map(([line]) => line);
  const expected = Object.entries(incidentKinds).map(([kind, { severity, about, calmMs }]) => {
    const marks = [
      ...(severity === "critical" ? [severity] : []),
      ...(calmMs > 0 ? [`${calmMs / 1000} s`] : []),
    ];
    return `- \`${kind}\`${marks.length > 0 ? ` (${marks.join(", ")})` : ""}: ${about}`;
  });
  assert.equal(listed.toSorted(), expected.toSorted());
});

test.run();
