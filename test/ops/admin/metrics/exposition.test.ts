import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Histogram } from "../../../../src/base/histogram.ts";
import { limits } from "../../../../src/base/limits.ts";
import { histogramText, metricText, Series } from "../../../../src/ops/admin/metrics/exposition.ts";

const test = suite("ops/admin/metrics/exposition");

test("buckets add up, as Prometheus reads them", () => {
  const histogram = new Histogram([0.5, 1]);
  for (const value of [0.25, 0.75, 2]) histogram.observe(value);
  const family = { name: "x_seconds", help: "how long", labels: ["verb"] } as const;
  const rows = [[["GET"], histogram] as const];
  assert.is(
    histogramText(family, rows),
    `# HELP watchkeeper_x_seconds how long
# TYPE watchkeeper_x_seconds histogram
watchkeeper_x_seconds_bucket{verb="GET",le="0.5"} 1
watchkeeper_x_seconds_bucket{verb="GET",le="1"} 2
watchkeeper_x_seconds_bucket{verb="GET",le="+Inf"} 3
watchkeeper_x_seconds_sum{verb="GET"} 3
watchkeeper_x_seconds_count{verb="GET"} 3

`,
  );
});

test("a gauge's labels are escaped, the only cluster is not named, and a number without labels is always there", () => {
  const family = { name: "x", help: "what", labels: ["name", "cluster"] };
  assert.is(
    metricText(family, [
      [['a"b\\c\nd', ""], 1.5],
      [["e", "eu"], 0],
    ]),
    `# HELP watchkeeper_x what
# TYPE watchkeeper_x gauge
watchkeeper_x{name="a\\"b\\\\c\\nd"} 1.5
watchkeeper_x{name="e",cluster="eu"} 0

`,
  );
  const head = "# HELP watchkeeper_y_total n\n# TYPE watchkeeper_y_total counter\n";
  assert.is(metricText({ name: "y_total", help: "n" }, []), `${head}watchkeeper_y_total 0\n\n`);
  assert.is(metricText({ name: "y_total", help: "n", labels: ["a"] }, []), `${head}\n`);
});

test("equal labels are summed, and rows keep the order in which they came", () => {
  const series = new Series();
  series.add([["a", "b"], 1]);
  series.add([["ab", ""], 2]);
  series.add([["a", "b"], 3]);
  assert.equal(series.rows, [
    [["a", "b"], 4],
    [["ab", ""], 2],
  ]);
});

test("beyond the cap new labels are summed under other, and old ones still count (A54)", () => {
  const series = new Series(3);
  for (let index = 0; index < 1000; index++) series.add([[`client-${index}`], 1]);
  series.add([["client-1"], 1]);
  assert.equal(series.rows, [
    [["client-0"], 1],
    [["client-1"], 2],
    [["other"], 998],
  ]);
});

test("a cluster that exceeds the cap takes no series from another", () => {
  const series = new Series(2);
  for (const [name, cluster] of [
    ["a", "eu"],
    ["b", "eu"],
    ["c", "eu"],
    ["a", "us"],
  ] as const)
    series.add([[name], 1, cluster]);
  assert.equal(series.rows, [
    [["a"], 1, "eu"],
    [["other"], 2, "eu"],
    [["a"], 1, "us"],
  ]);
});

test("a label is clipped", () => {
  const series = new Series();
  series.add([["x".repeat(1 << 20)], 1]);
  assert.is(series.rows[0]?.[0][0]?.length, limits.labelChars);
});

test.run();
