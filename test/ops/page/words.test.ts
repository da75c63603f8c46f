import { suite } from "uvu";
import * as assert from "uvu/assert";
import { age, amount, clockTime, markOf, whoIs } from "../../../src/ops/page/words.js";
import { noIdentity } from "../../support/page.ts";

const test = suite("ops/page/words");

test("an age has one unit, and tenths while tenths matter", () => {
  const minute = 60_000;
  const ages = [0, 240, 9_940, 41_000, 119_000, 4 * minute, 180 * minute, 846 * 1_440 * minute];
  assert.equal(
    ages.map((ms) => age(ms)),
    ["0.0 s", "0.2 s", "9.9 s", "41 s", "119 s", "4 m", "3 h", "846 d"],
  );
  assert.is(age(null), "–", "an age that there is not");
  assert.is(age(-5), "0.0 s", "two clocks may differ");
});

test("large amounts are short", () => {
  const counts = [0, 999, 1_000, 1_149, 12_499, 999_600, 23_000_000];
  assert.equal(
    counts.map((count) => amount(count)),
    ["0", "999", "1.0 k", "1.1 k", "12 k", "1.0 M", "23 M"],
  );
});

test("a time of day is read with its tenths, and no time is a dash", () => {
  assert.match(clockTime("2026-11-22T00:00:07.180Z"), /^\d\d:\d\d:07\.1$/);
  assert.is(clockTime(""), "–");
});

test("every colour has a sign of its own beside it", () => {
  assert.equal(markOf("dead"), { sign: "✗", tone: "bad" });
  assert.equal(markOf("ready"), { sign: "✓", tone: "good" });
  assert.equal(markOf("opening").tone, "calm", "an unknown state is no alarm");
});

test("a client is shown by the best name that there is", () => {
  assert.is(whoIs({ ...noIdentity, subject: "system:node:n1", agent: "kubelet" }), "system:node:n1");
  assert.is(whoIs({ ...noIdentity, agent: "kubelet", client: "10.0.0.7" }), "kubelet");
  assert.is(whoIs(noIdentity), "unknown");
});

test.run();
