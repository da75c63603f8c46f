/**
 * Checks that each planted fault still finds its place in the sources. `npm run test:seeds` checks that each is
 * detected.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { loadMutated } from "./mutated.ts";
import { entryOf, watchDefects } from "./watch-defects.ts";

const test = suite("simulation/mutated");

test("what is replaced must be there, and once", async () => {
  const missing = { file: "kube/resource-version.ts", find: "no such text", replace: "" };
  let message = "";
  try {
    await loadMutated("merge.ts", [missing]);
  } catch (error) {
    message = String(error);
  }
  assert.match(message, "0 times");
});

for (const defect of watchDefects) {
  test(`there is a place for the fault that ${defect.name}`, async () => {
    await loadMutated(entryOf(defect), defect.mutations);
  });
}

test.run();
