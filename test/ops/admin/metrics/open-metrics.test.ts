import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Histogram } from "../../../../src/base/histogram.ts";
import { Journal } from "../../../../src/events/journal.ts";
import { histogramText, metricText } from "../../../../src/ops/admin/metrics/exposition.ts";
import {
  openMetricsOf,
  wantsOpenMetrics,
  withoutExemplars,
} from "../../../../src/ops/admin/metrics/open-metrics.ts";
import { Metrics } from "../../../../src/ops/admin/metrics/registry.ts";
import { manualClock } from "../../../support/clock.ts";
import { clusterWith, processWith } from "../../../support/metrics.ts";

const test = suite("ops/admin/metrics/open-metrics");

const openMetrics = "application/openmetrics-text";
/** The Accept fields of Prometheus 2.42, Prometheus 3, curl, a browser, and clients that accept only one format. */
const accepts: readonly (readonly [accept: string, isOpen: boolean])[] = [
  [
    `${openMetrics};version=1.0.0,${openMetrics};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1`,
    true,
  ],
  [`${openMetrics};version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2`, true],
  ["*/*", false],
  ["", false],
  ["text/html,application/xhtml+xml,*/*;q=0.8", false],
  ["text/plain;version=0.0.4", false],
  [openMetrics, true],
  [`${openMetrics}; version=0.0.1`, false],
  ["Application/OpenMetrics-Text; version=1.0.0; q=0", false],
  [`${openMetrics};q=0.2,text/plain`, false],
];

for (const [accept, isOpen] of accepts)
  test(`Accept "${accept}" ${isOpen ? "is" : "is not"} answered with OpenMetrics`, () => {
    assert.is(wantsOpenMetrics(accept), isOpen);
  });

const family = { name: "x_seconds", help: "how long", labels: ["verb"] } as const;

function textWith(auditId: string): string {
  const histogram = new Histogram([0.5, 1]);
  histogram.observe(0.25, auditId, 1000);
  return histogramText(family, [[["GET"], histogram]], (at) => at + 1_800_000_000_000);
}

test("OpenMetrics has the exemplars, its own bounds and names, and no empty line", () => {
  const text = `${metricText({ name: "y_total", help: "n" }, [[[], 3]])}${textWith("a-1")}`;
  assert.is(
    openMetricsOf(text),
    `# HELP watchkeeper_y n
# TYPE watchkeeper_y counter
watchkeeper_y_total 3
# HELP watchkeeper_x_seconds how long
# TYPE watchkeeper_x_seconds histogram
watchkeeper_x_seconds_bucket{verb="GET",le="0.5"} 1 # {audit_id="a-1"} 0.25 1800000001.000
watchkeeper_x_seconds_bucket{verb="GET",le="1.0"} 1
watchkeeper_x_seconds_bucket{verb="GET",le="+Inf"} 1
watchkeeper_x_seconds_sum{verb="GET"} 0.25
watchkeeper_x_seconds_count{verb="GET"} 1
# EOF
`,
  );
});

test("the text format has no exemplars, and is otherwise unchanged", () => {
  assert.is(withoutExemplars(textWith("a-1")), textWith(""));
});

test("an Audit-ID that does not fit into an exemplar is omitted", () => {
  for (const auditId of ["x".repeat(101), 'a"} 1 # {b="c', "a\nb", "a b", "é"])
    assert.is(textWith(auditId), textWith(""), auditId);
  assert.is.not(textWith("x".repeat(100)), textWith(""));
});

test("a label that looks like an exemplar stays as it is", () => {
  const value = ' # {audit_id="a"} 1 2';
  const text = metricText({ name: "z", help: "n", labels: ["client"] }, [[[value], 1]]);
  assert.is(withoutExemplars(text), text);
  assert.ok(openMetricsOf(text).includes('{client=" # {audit_id=\\"a\\"} 1 2"} 1'));
});

const auditId = "0d6b2ff9-9f1a-4d6c-a3c1-000000000001";

/** Returns the text of a scrape from a process that has answered one request. */
function scrape(): Promise<string> {
  const { exchanges } = clusterWith().path;
  const durations = new Map([["list", new Histogram([0.5, 1])]]);
  durations.get("list")?.observe(0.75, auditId, 5);
  const cluster = clusterWith({ path: { exchanges: { ...exchanges, durations } } });
  return new Metrics(new Journal(manualClock()), processWith({ clusters: () => [cluster] })).text();
}

const suffixes: Readonly<Record<string, readonly string[]>> = {
  counter: ["_total"],
  histogram: ["_bucket", "_sum", "_count"],
  gauge: [""],
};

test("in OpenMetrics, each line of a whole scrape belongs to the family above it, and each family comes once", async () => {
  const lines = openMetricsOf(await scrape()).split("\n");
  assert.equal(lines.slice(-2), ["# EOF", ""]);
  let [name, type] = ["", ""];
  const seen = new Set<string>();
  for (const line of lines.slice(0, -2)) {
    const [, word, of = "", rest = ""] = /^# (\S+) (\S+) (.*)$/.exec(line) ?? [];
    if (word === "TYPE") {
      [name, type] = [of, rest];
      assert.not(seen.has(name), `${name} twice`);
      seen.add(name);
    }
    if (word !== undefined) continue;
    const own = /^\w+/.exec(line)?.[0] ?? "";
    assert.ok(
      suffixes[type]?.some((suffix) => own === name + suffix),
      `${line} below ${type} ${name}`,
    );
  }
  assert.equal(
    lines.filter((line) => line.includes(" # {")),
    [
      `watchkeeper_request_duration_seconds_bucket{verb="LIST",le="1.0"} 1 # {audit_id="${auditId}"} 0.75 1800000000.005`,
    ],
  );
});

test.run();
