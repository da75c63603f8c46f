import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Histogram, rttBounds } from "../../../../src/base/histogram.ts";
import { histograms } from "../../../../src/ops/admin/metrics/histogram-declarations.ts";
import { metrics } from "../../../../src/ops/admin/metrics/metric-declarations.ts";
import {
  acrossOf,
  combined,
  histogramRows,
  type MetricsSnapshot,
} from "../../../../src/ops/admin/metrics/snapshot.ts";

const test = suite("ops/admin/metrics/snapshot");

test("values are added, or the most or the least counts, or the process speaks for all", () => {
  const own = [[["a"], 1]] as const;
  const others = [
    [["a"], 3],
    [["b"], 2],
  ] as const;
  const value = (across: "sum" | "max" | "min" | "own"): unknown => combined(across, own, others);
  assert.equal(value("own"), own);
  assert.equal(value("sum"), [...own, ...others]);
  assert.equal(value("max"), others);
  assert.equal(value("min"), [own[0], others[1]]);
});

test("no counter is a maximum, because a worker that ends would make it fall", () => {
  for (const metric of metrics)
    if (metric.name.endsWith("_total")) assert.ok(["sum", "own"].includes(acrossOf(metric)), metric.name);
});

test("a histogram crosses as JSON, with its exemplars by their age", () => {
  const histogram = new Histogram(rttBounds);
  histogram.observe(0.003, "audit-1", 900);
  histogram.observe(7);
  const [metric] = histograms;
  assert.ok(metric !== undefined);
  const snapshot: MetricsSnapshot = JSON.parse(
    JSON.stringify({
      samples: {},
      histograms: { [metric.name]: [[["get"], histogram.toPlain(1000)]] },
      bounds: { [metric.name]: rttBounds },
    }),
  );
  const [[labels, copy] = [[], undefined]] = histogramRows(metric, snapshot, 50_000);
  assert.equal(labels, ["get"]);
  assert.equal(copy?.counts, histogram.counts);
  assert.is(copy?.sum, histogram.sum);
  assert.equal(copy?.exemplarOf(1), { auditId: "audit-1", value: 0.003, at: 49_900 });
});

test.run();
