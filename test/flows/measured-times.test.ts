/** What the histograms of detection, moves, PINGs and probes measure on the whole data path. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Histogram } from "../../src/base/histogram.ts";
import { PlayedPath } from "../support/path.ts";
import { PlayedWatch } from "../support/watch-path.ts";

const test = suite("flows/measured-times");

const meanOf = ({ sum, count }: Histogram): number => sum / count;

function runningPath(): PlayedPath {
  const path = new PlayedPath(["a", "b"], { isProbed: true });
  path.clock.advance(5000);
  return path;
}

test("the time of detection runs from the last sign of life, once for suspect and once for dead", () => {
  const path = runningPath();
  const { suspect, dead } = path.backends.detections;
  assert.equal([suspect.count, dead.count], [0, 0]);
  const from = path.clock.now();
  path.backend("a").blackHole();
  path.clock.advance(20_000);
  assert.equal([suspect.count, dead.count], [1, 1]);
  const deadAt = path.changes.find(({ to, at }) => to === "dead" && at > from)?.at ?? 0;
  // The last answer arrived at most one PING interval before the black hole began.
  for (const [histogram, seconds] of [
    [suspect, 0.5],
    [dead, (deadAt - from) / 1000],
  ] as const)
    assert.ok(Math.abs(meanOf(histogram) - seconds) <= 0.3, `${meanOf(histogram)} s, ${seconds} s`);
});

test("a watch's move is measured from the loss of its stream until it continues", () => {
  const path = runningPath();
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  path.clock.advance(40);
  watch.serve(watch.to, "~9a");
  const [[reason, histogram] = []] = path.migrations.moveDurations;
  assert.equal([reason, histogram?.count], ["lost", 1]);
  assert.ok((histogram?.sum ?? 9) < 0.5, String(histogram?.sum));
});

test("PINGs and probes have histograms of their own", () => {
  const path = runningPath();
  const { pings, probes } = path.measurementsOf("a");
  assert.ok((pings?.count ?? 0) >= 30, String(pings?.count));
  assert.is(probes.durations.count, probes.answers + probes.failures);
});

test.run();
