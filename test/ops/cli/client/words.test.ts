import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  age,
  amount,
  counted,
  left,
  marked,
  milliseconds,
  rate,
} from "../../../../src/ops/cli/client/words.ts";

const test = suite("ops/cli/client/words");

test("ages have one unit, and what is over says so", () => {
  const ages = [0, 230, 41_000, 300_000, 10_800_000, 73_100_000_000];
  assert.equal(
    ages.map((ms) => age(ms)),
    ["0.0s", "0.2s", "41s", "5m", "3h", "846d"],
  );
  assert.is(age(undefined), "-");
  assert.equal([left(-1), left(0), left(90_000), left(undefined)], ["over", "over", "90s", "-"]);
});

test("amounts are short, milliseconds as exact as they are small", () => {
  assert.equal(
    [0, 812, 999, 1100, 23e6].map((count) => amount(count)),
    ["0", "812", "999", "1.1k", "23M"],
  );
  assert.equal(
    [0, 0.81, 9.9, 612.3].map((ms) => milliseconds(ms)),
    ["-", "0.8ms", "9.9ms", "612ms"],
  );
});

test("a small rate is no 0", () => {
  const rates = [0, 0.017, 0.05, 0.5, 9.94, 9.96, 20, 1100];
  assert.equal(
    rates.map((one) => rate(one)),
    ["0", "<0.1", "0.1", "0.5", "9.9", "10", "20", "1.1k"],
  );
});

test("one is called otherwise than many, and none is many", () => {
  const said = [0, 1, 2, 1_000].map((count) => counted(count, "watch", "watches"));
  assert.equal(said, ["0 watches", "1 watch", "2 watches", "1.0k watches"]);
  assert.is(counted(undefined, "lease"), "- leases");
});

test("a state has a sign and its word", () => {
  assert.equal(
    ["ready", "dead", "suspect", "live", "free", ""].map((state) => marked(state)),
    ["✓ ready", "✗ dead", "? suspect", "✓ live", "· free", "-"],
  );
});

test.run();
