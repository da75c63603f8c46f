import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Clock } from "../../../src/base/clock.ts";
import { BackendShares, shareAfter } from "../../../src/upstream/pool/backend-shares.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import { pick } from "../../../src/upstream/pool/pick.ts";
import { manualClock } from "../../support/clock.ts";
import { loadsOf } from "../../support/loads.ts";
import { bearer, PlayedPath } from "../../support/path.ts";

const test = suite("upstream/pool/slow-start");

/** The shares of backends of weight 1 that can serve their full load. */
function slowStartOf(clock: Clock): BackendShares {
  const traitsOf = () => ({ weight: 1, isNear: true });
  return new BackendShares({ clock, traitsOf, capacityOf: () => 1, isPaused: () => false, random: () => 0 });
}

test("it counts for more with each second, and for a whole one at last", () => {
  assert.is(shareAfter(0), upstreamLimits.slowStartLeast);
  assert.is(shareAfter(15_000), 0.5);
  assert.is(shareAfter(30_000), 1);
  assert.is(shareAfter(1e9), 1);
});

test("only a backend that had lost its clients begins anew: a false alarm costs nothing", () => {
  const clock = manualClock();
  const slowStart = slowStartOf(clock);
  const judged = (state: "ready" | "suspect" | "dead" | "draining"): boolean =>
    slowStart.judged({ name: "a", state });
  assert.ok(judged("ready"), "it has come");
  clock.advance(30_000);
  assert.not(judged("suspect"));
  assert.not(judged("ready"));
  assert.is(slowStart.of("a"), 1);
  // A backend that returns after it was dead or draining is first suspect for a while.
  for (const lost of ["dead", "draining"] as const) {
    assert.not(judged(lost));
    assert.not(judged("suspect"));
    assert.ok(judged("ready"), "it has returned");
    assert.is(slowStart.of("a"), upstreamLimits.slowStartLeast, lost);
    clock.advance(30_000);
    assert.is(slowStart.of("a"), 1);
  }
  slowStart.reconcile([]);
  assert.is(slowStart.of("a"), upstreamLimits.slowStartLeast);
});

test("5,000 clients that come at once do not all go to the one that has just come back", () => {
  const clock = manualClock();
  const slowStart = slowStartOf(clock);
  const streams = new Map([
    ["a", 5000],
    ["b", 0],
  ]);
  slowStart.judged({ name: "a", state: "ready" });
  clock.advance(60_000);
  slowStart.judged({ name: "b", state: "ready" });
  const views = ["a", "b"].map((name) => ({ name, state: "ready", since: 0 }) as const);
  const loads = loadsOf((name) => ((streams.get(name) ?? 0) + 1) / slowStart.of(name));
  const taken: number[] = [];
  for (const second of [1, 2, 3]) {
    clock.advance(1000);
    for (let client = 0; client < 5000; client += 1) {
      const name = pick({ views, loads, bound: undefined, tried: [] });
      if (typeof name === "string") streams.set(name, (streams.get(name) ?? 0) + 1);
    }
    taken.push(streams.get("b") ?? 0);
    assert.ok((streams.get("b") ?? 0) <= (5000 * (second + 1) * second) / 30 + 1, taken.join());
  }
});

test("on the path: a backend that comes back gets its part of newcomers, and all of them when it is alone", () => {
  const path = new PlayedPath(["a", "b"], { down: ["b"] });
  path.settle();
  for (let count = 0; count < 40; count += 1)
    path.client().ask("GET", "/api/v1/pods?watch=1", [bearer(`t-${count}`)]);
  path.clock.advance(31_000);
  path.backend("b").isDown = false;
  path.clock.advance(5000);
  assert.is(path.backends.views.find(({ name }) => name === "b")?.state, "ready");
  for (let count = 0; count < 40; count += 1) {
    path.client().ask("GET", "/api/v1/pods?watch=1", [bearer(`t-${count}`)]);
    path.settle();
  }
  const [onA, onB] = [path.pools.loadOf("a"), path.pools.loadOf("b")];
  assert.is(onA + onB, 80);
  // The backend is 5 s into its ramp of 30 s, so its share is a sixth. Without the ramp it would have 40.
  assert.ok(onB >= 5 && onB <= 15, `${onB} on b`);
  path.backend("a").kill();
  path.settle();
  const lonely = path.client();
  lonely.ask("GET", "/api", [bearer("t")]);
  path.settle();
  assert.is(lonely.downstream.client.backend, "b");
});

test.run();
