/**
 * A part of Kubernetes' own conformance suite runs through the proxy while apiservers fail in turn (load/faults.ts).
 * `npm run test:conformance` runs the whole suite, and also runs it directly at an apiserver.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { conformanceNeeds } from "./conformance/needs.ts";
import { play } from "./conformance/play.ts";
import { shortForm } from "./conformance/short-form.ts";
import { defects, table } from "./conformance/table.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";

const test = suite("real/conformance");
const real = testWith(test, [...clusterNeeds, ...conformanceNeeds]);

real("Kubernetes' own specs pass while one apiserver after the other fails", async () => {
  const plan = { only: shortForm, processes: 4, timeoutMinutes: 6, faultEveryMs: 20_000 };
  const played = await play("through with faults", plan);
  for (const line of table([played]).split("\n")) figure(line);
  figure(played.faults.join(", "));
  assert.equal([...defects([played]), ...played.wrong], []);
  const isRun = (part: string): boolean => played.results.some(({ title }) => title.includes(part));
  assert.equal(
    shortForm.filter((part) => !isRun(part)),
    [],
    "each part of the short form names specs that are run",
  );
  assert.ok(played.faults.length >= 5, `${played.faults.length} faults were played`);
});

test.run();
