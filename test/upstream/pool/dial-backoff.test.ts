import { suite } from "uvu";
import * as assert from "uvu/assert";
import { DialBackoff } from "../../../src/upstream/pool/dial-backoff.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import { poolKey, rejectedOwner } from "../../../src/upstream/pool/pool-key.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";

const test = suite("upstream/pool/dial-backoff");

function played(): { clock: ManualClock; backoff: DialBackoff; at: number[] } {
  const clock = manualClock();
  const at: number[] = [];
  const backoff: DialBackoff = new DialBackoff(clock, () => {
    at.push(clock.now());
    backoff.stop();
    backoff.soon();
  });
  return { clock, backoff, at };
}

test("what fails is dialled again further and further apart, and at once after it has succeeded", () => {
  const { clock, backoff, at } = played();
  backoff.soon();
  clock.advance(2_000);
  assert.equal(at, [100, 300, 700, 1_200, 1_700]);
  backoff.succeeded();
  backoff.stop();
  backoff.soon();
  clock.advance(upstreamLimits.redialFirstMs);
  assert.is(at.at(-1), 2_000 + upstreamLimits.redialFirstMs);
});

test("however often it is asked for meanwhile, it is dialled once", () => {
  const { clock, backoff, at } = played();
  for (let index = 0; index < 10; index += 1) backoff.soon();
  clock.advance(upstreamLimits.redialFirstMs);
  assert.equal(at, [upstreamLimits.redialFirstMs]);
});

test("the unproven spend a budget of their own, and so do those of them that are rejected", () => {
  const { clock, backoff } = played();
  let taken = 0;
  const [proven, unproven] = [poolKey("proven", "plain"), poolKey("unproven", "plain")];
  const rejected = poolKey("unproven", "plain", rejectedOwner);
  while (backoff.take(rejected)) taken += 1;
  assert.is(taken, upstreamLimits.unprovenDialsPerSecond);
  for (taken = 0; backoff.take(unproven); ) taken += 1;
  assert.is(taken, upstreamLimits.unprovenDialsPerSecond);
  for (taken = 0; backoff.take(proven); ) taken += 1;
  assert.is(taken, upstreamLimits.dialsPerSecond);
  clock.advance(1_000);
  assert.ok(
    backoff.take(unproven) && backoff.take(rejected) && backoff.take(poolKey("front-proxy", "plain")),
  );
});

test.run();
