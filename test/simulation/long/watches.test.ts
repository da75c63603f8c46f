/**
 * Watches of every kind with a thousand seeds. To replay a seed that failed: run.ts --scene watches --seed N --trace.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { figure } from "../../support/figure.ts";
import { longSeeds } from "../../support/seeds.ts";
import { playAll, summaryOf } from "../watches/play-all.ts";

const test = suite("simulation/long/watches");

test("in a thousand simulated runs no watch loses, repeats or reorders an event, and no watch ends without a reason (row 1, 2)", () => {
  const told: string[] = [];
  const from = wallClock.now();
  const sum = playAll(1, longSeeds, ({ seed, problems }) =>
    told.push(`seed ${seed}: ${JSON.stringify(problems)}`),
  );
  figure(summaryOf(sum, wallClock.now() - from));
  assert.equal(told, []);
  const relists = [...sum.counts.keys()].filter((what) => what.startsWith("relist"));
  // The proxy cannot hide two causes of a relist from a client: a version that all caches have forgotten, and withdrawn
  // permissions.
  assert.equal(
    relists.filter((what) => !["relist: 410", "relist: 403"].includes(what)),
    [],
  );
  // Runs without events and faults would prove little.
  assert.ok((sum.counts.get("events") ?? 0) > 50 * longSeeds, "too few events");
  assert.ok([...sum.counts].filter(([what]) => what.startsWith("fault")).length >= 15, "a fault never came");
});

test.run();
