import { suite } from "uvu";
import * as assert from "uvu/assert";
import { brokenOf, tableOf, whenReported } from "../../../demo/incidents/outcome.ts";

const test = suite("demo/incidents/outcome");

test("the table has both sides under their names", () => {
  const rows = [{ what: "GETs that failed", without: "64 of 338", with: "0 of 337" }];
  assert.equal(tableOf({ rows, broken: [] }), [
    "                     without (naive proxy)   with watchkeeper",
    "  GETs that failed   64 of 338               0 of 337",
  ]);
});

test("what does not hold is named, and what holds is not", () => {
  assert.equal(brokenOf({ "a GET failed": true, "a watch ended": false }), ["a watch ended"]);
  assert.is(whenReported(undefined), "never");
  assert.is(whenReported({ afterMs: 1_234 }), "after 1.23 s");
});

test.run();
