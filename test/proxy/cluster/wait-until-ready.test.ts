import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { BackendState, BackendView } from "../../../src/health/backend.ts";
import { waitUntilReady } from "../../../src/proxy/cluster/cluster.ts";
import { manualClock } from "../../support/clock.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/cluster/wait-until-ready");

function played(...states: BackendState[]) {
  const clock = manualClock();
  const now = { states, isProven: !states.includes("draining") };
  const views = (): BackendView[] =>
    now.states.map((state, index) => ({ name: `cp-${index}`, state, since: 0 }));
  let outcome: boolean | undefined;
  const work = async (): Promise<void> => {
    outcome = await waitUntilReady(views, clock, { withinMs: 1000, isProven: () => now.isProven });
  };
  const done = work();
  return { clock, now, done, outcome: () => outcome };
}

test("one ready backend is enough, once all have been judged", async () => {
  const { clock, now, done, outcome } = played("unknown", "unknown");
  clock.advance(100);
  now.states = ["ready", "unknown"];
  clock.advance(100);
  await Promise.resolve();
  assert.is(outcome(), undefined);
  now.states = ["ready", "dead"];
  clock.advance(100);
  await within(20_000, "the answer", done);
  assert.is(outcome(), true);
});

test("a ready backend is not enough while no certificate that asserts identities is proven", async () => {
  const { clock, now, done, outcome } = played("ready", "draining");
  clock.advance(100);
  await Promise.resolve();
  assert.is(outcome(), undefined);
  now.isProven = true;
  clock.advance(100);
  await within(20_000, "the answer", done);
  assert.is(outcome(), true);
});

test("it does not wait for ever", async () => {
  for (const [states, isReady] of [
    [["ready", "unknown"], true],
    [["dead", "suspect"], false],
    [[], false],
  ] as const) {
    const { clock, done, outcome } = played(...states);
    clock.advance(1000);
    await within(20_000, "the answer", done);
    assert.is(outcome(), isReady);
  }
});

test.run();
