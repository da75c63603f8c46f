import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import { Recent } from "../../../../src/ops/admin/authorization/recent.ts";
import { manualClock } from "../../../support/clock.ts";

const test = suite("ops/admin/authorization/recent");

function scene(most = 10) {
  const clock = manualClock();
  let asks = 0;
  const recent = new Recent<string>({ clock, most, keepMs: (value) => (value === "short" ? 10 : 100) });
  const find = (key: string, value: string | Failure = "long"): Promise<string | Failure> =>
    recent.find(key, () => {
      asks += 1;
      return Promise.resolve(value);
    });
  return { clock, recent, find, asks: () => asks };
}

test("an answer counts for its time, and is asked for again after it", async () => {
  const { clock, find, asks } = scene();
  await find("a");
  await find("b", "short");
  clock.advance(9);
  assert.equal([await find("a"), await find("b"), asks()], ["long", "short", 2]);
  clock.advance(1);
  assert.equal([await find("a"), await find("b"), asks()], ["long", "long", 3]);
  clock.advance(90);
  await find("a");
  assert.is(asks(), 4);
});

test("several clients that ask for one thing at once wait for one answer", async () => {
  const { find, asks } = scene();
  assert.equal(await Promise.all([find("a"), find("a"), find("b")]), ["long", "long", "long"]);
  assert.is(asks(), 2);
});

test("a failure is not kept", async () => {
  const { find, asks } = scene();
  assert.instance(await find("a", new Failure("backend-lost", "backend", "no")), Failure);
  assert.equal([await find("a"), asks()], ["long", 2]);
});

test("of too many the one that was asked for longest ago goes", async () => {
  const { find, recent } = scene(2);
  await find("a");
  await find("b");
  await find("a");
  await find("c");
  assert.equal([recent.get("a"), recent.get("b"), recent.get("c")], ["long", undefined, "long"]);
});

test.run();
