import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Dials } from "../../../src/proxy/upstream/dials.ts";
import { poolKey, rejectedOwner } from "../../../src/proxy/upstream/pool-key.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";

const test = suite("proxy/dials");

function played(): { clock: ManualClock; dials: Dials; at: number[] } {
  const clock = manualClock();
  const at: number[] = [];
  const dials: Dials = new Dials(clock, () => {
    at.push(clock.now());
    dials.stop();
    dials.soon();
  });
  return { clock, dials, at };
}

test("what fails is dialled again further and further apart, and at once after it has succeeded", () => {
  const { clock, dials, at } = played();
  dials.soon();
  clock.advance(2_000);
  assert.equal(at, [100, 300, 700, 1_200, 1_700]);
  dials.succeeded();
  dials.stop();
  dials.soon();
  clock.advance(limits.redialFirstMs);
  assert.is(at.at(-1), 2_000 + limits.redialFirstMs);
});

test("however often it is asked for meanwhile, it is dialled once", () => {
  const { clock, dials, at } = played();
  for (let index = 0; index < 10; index += 1) dials.soon();
  clock.advance(limits.redialFirstMs);
  assert.equal(at, [limits.redialFirstMs]);
});

test("the unproven spend a budget of their own, and so do those of them that are rejected", () => {
  const { clock, dials } = played();
  let taken = 0;
  const [proven, unproven] = [poolKey("proven", "plain"), poolKey("unproven", "plain")];
  const rejected = poolKey("unproven", "plain", rejectedOwner);
  while (dials.take(rejected)) taken += 1;
  assert.is(taken, limits.unprovenDialsPerSecond);
  for (taken = 0; dials.take(unproven); ) taken += 1;
  assert.is(taken, limits.unprovenDialsPerSecond);
  for (taken = 0; dials.take(proven); ) taken += 1;
  assert.is(taken, limits.dialsPerSecond);
  clock.advance(1_000);
  assert.ok(dials.take(unproven) && dials.take(rejected) && dials.take(poolKey("front-proxy", "plain")));
});

test.run();
