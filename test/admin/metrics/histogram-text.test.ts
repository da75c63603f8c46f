import { suite } from "uvu";
import * as assert from "uvu/assert";
import { histogramText } from "../../../src/admin/metrics/histogram-text.ts";
import { Histogram } from "../../../src/base/histogram.ts";

const test = suite("admin/metrics/histogram-text");

test("buckets add up, as Prometheus reads them; beyond the cap there are none", () => {
  const histogram = new Histogram([0.5, 1]);
  for (const value of [0.25, 0.75, 2]) histogram.observe(value);
  const family = { name: "x_seconds", help: "how long", labels: ["verb"], cap: 1 } as const;
  const rows = [["GET", histogram] as const, ["PUT", histogram] as const];
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

test.run();
