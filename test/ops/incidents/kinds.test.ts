import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { incidentKinds } from "../../../src/ops/incidents/kinds.ts";
import { unwrapped } from "../../support/markdown.ts";

const test = suite("ops/incidents/kinds");

test("docs/admin-api.md lists each kind once, by its severity or the time after which it ends", () => {
  const page = unwrapped(readFileSync("docs/admin-api.md", "utf8"));
  const [, section = ""] = page.split("\n### incidents\n");
  const items = (section.split("\n### ")[0] ?? "").matchAll(/^- ([^:`]+): (`.+`)$/gm);
  const listed = [...items].flatMap(([, group = "", kinds = ""]) =>
    kinds.split(", ").map((kind) => `${kind.replaceAll("`", "")}: ${group}`),
  );
  const expected = Object.entries(incidentKinds).map(([kind, { severity, calmMs }]) => {
    const end = calmMs > 0 ? `${calmMs / 1000} s` : "while the cause lasts";
    return `${kind}: ${severity === "critical" ? severity : end}`;
  });
  assert.equal(listed.toSorted(), expected.toSorted());
});

test.run();
