import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  transitions,
  WorkerLife,
  workerInputs,
  workerStates,
} from "../../../src/fleet/workers/worker-life.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("fleet/workers/worker-life");

test("every state can end, and only the dead one starts again", () => {
  for (const state of workerStates)
    for (const input of workerInputs) {
      const next = transitions[state][input];
      if (input === "due") assert.is(next, state === "dead" ? "starting" : undefined);
      if (input === "ended") assert.is(next, state === "dead" ? undefined : "dead");
      if (state === "draining") assert.is.not(next, "serving");
    }
});

test("the first end costs no delay, further ones in a row cost twice as much each, up to ten seconds", () => {
  const clock = manualClock();
  const life = new WorkerLife(clock);
  const delays = Array.from({ length: 10 }, () => {
    life.take("due");
    life.take("ended");
    return life.restartMs;
  });
  assert.equal(delays, [0, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
});

test("a worker that has served for long starts again at once", () => {
  const clock = manualClock();
  const life = new WorkerLife(clock);
  for (let failure = 0; failure < 5; failure += 1) {
    life.take("due");
    life.take("ended");
  }
  assert.is(life.restartMs, 1600);
  life.take("due");
  life.take("ready");
  clock.advance(9999);
  assert.is(life.take("ended"), true);
  assert.is(life.restartMs, 3200);
  life.take("due");
  life.take("ready");
  clock.advance(10_000);
  life.take("ended");
  assert.is(life.restartMs, 0);
});

test("an input without an entry changes nothing", () => {
  const life = new WorkerLife(manualClock());
  assert.is(life.take("ready"), false);
  assert.is(life.take("ended"), false);
  life.take("due");
  life.take("drain");
  assert.is(life.take("ready"), false);
  assert.is(life.state, "draining");
});

test.run();
