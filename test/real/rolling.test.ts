/**
 * Every apiserver is restarted in turn, several times, while clients of all kinds run. ROLLING_ROUNDS sets the number
 * of rounds (3).
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Rolling } from "./load/rolling.ts";
import { Stage } from "./load/stage.ts";
import { Storm } from "./load/storm.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { misses, summary } from "./storm/tell.ts";

const test = suite("real/rolling");
const real = testWith(test, [...clusterNeeds, "informer"]);
const rounds = Number(process.env["ROLLING_ROUNDS"] ?? 3);

/**
 * Longest accepted delay of an event, in milliseconds. It is generous, because CI's machine is shared; the measured
 * delay is printed.
 */
const mostDelayMs = 5_000;

let stage: Stage;

test.before(async () => {
  if (real.canRun) stage = await Stage.start();
});

test.after(async () => {
  if (real.canRun) await stage.stop();
});

real("repeated rolling restarts of all apiservers affect no client (row 1, 2, 18)", async () => {
  const crowd = { watches: 20, informers: 5, writesPerSecond: 20, getsPerSecond: 20, others: false };
  const storm = await Storm.start(stage, { ...crowd, namespaces: 2, seed: 1 });
  const rolling = await Rolling.start(stage);
  for (let round = 0; round < rounds; round++) {
    for (const apiserver of stage.cluster.apiservers) {
      storm.spare(apiserver);
      await rolling.replace(apiserver);
    }
  }
  await rolling.stop();
  const outcome = await storm.stop();
  for (const line of summary(outcome).split("\n")) figure(line);
  assert.equal([...rolling.wrong, ...misses(outcome, mostDelayMs)], []);
});

test.run();
