import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { incidents, isIncidentNumber } from "../../../demo/incidents/incidents.ts";
import { incidentKinds } from "../../../src/ops/incidents/kinds.ts";
import { alerts } from "../../support/alert-rules.ts";

const test = suite("demo/incidents/incidents");

for (const [number, { title, kind }] of Object.entries(incidents)) {
  test(`incident ${number} has a page that names what it is called here, its alert and where it was public`, () => {
    const page = readFileSync(`docs/incidents/${number}.md`, "utf8");
    const alert = alerts.find(({ kinds }) => kinds.some((one) => one === kind));
    assert.match(page.split("\n")[0] ?? "", `# Incident ${number}: ${title}`);
    assert.ok(Object.hasOwn(incidentKinds, kind));
    for (const word of [`\`${kind}\``, `runbooks/${alert?.name}.md`, `npm run incident ${number}`])
      assert.match(page, word);
    assert.match(page, /https:\/\/github\.com\/[\w-]+\/[\w.-]+\/(issues|pull)\/\d+/);
  });
}

test("nothing else is one", () => {
  assert.ok(isIncidentNumber("004"));
  for (const text of ["4", "005", "toString", ""]) assert.not.ok(isIncidentNumber(text));
});

test.run();
