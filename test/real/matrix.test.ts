/**
 * The matrix of faults in short form: one run of each row, and two more if only time limits were missed. `npm run
 * test:matrix` runs each row several times.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Stage } from "./load/stage.ts";
import { playShort, rowsOf } from "./matrix/play-all.ts";
import { type Played, table } from "./matrix/table.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";

const test = suite("real/matrix");
const real = testWith(test, clusterNeeds);
const seed = Number(process.env["MATRIX_SEED"] ?? Date.now() % 100_000);

let stage: Stage;
const played: Played[] = [];

test.before(async () => {
  if (!real.canRun) return;
  stage = await Stage.start();
  figure(`MATRIX_SEED=${seed}`);
});

test.after(async () => {
  if (!real.canRun) return;
  await stage.stop();
  for (const line of table(played).split("\n")) if (line !== "") figure(line);
});

/** Words that select rows, with commas between them: `.ci/run` plays five rows. Default: all rows. */
const names = process.env["MATRIX_ROWS"]?.split(",") ?? [];

for (const row of rowsOf(names)) {
  real(`${row.name}: no client pays more than the row allows`, async () => {
    const one = await playShort(stage, row, seed);
    played.push(one);
    assert.equal([...one.wrong, ...one.late], []);
  });
}

test.run();
