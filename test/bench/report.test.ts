import { suite } from "uvu";
import * as assert from "uvu/assert";
import { summaryOf } from "../../bench/h2load.ts";
import { median, mediansOf, tableOf } from "../../bench/report.ts";
import type { Scenario } from "../../bench/scenario.ts";
import { verdicts } from "../../bench/targets.ts";

const test = suite("bench/report");

const scenario: Scenario = {
  name: "small-8x16",
  about: "",
  backend: "static",
  proxies: "kept",
  metrics: [{ key: "cpuUs", title: "CPU", digits: 1 }],
  measure: () => Promise.resolve({}),
};
const rounds = new Map([
  ["watchkeeper", [{ cpuUs: 9 }, { cpuUs: 8 }, { cpuUs: 30 }]],
  ["nghttpx", [{ cpuUs: 10 }, { cpuUs: 8 }]],
  ["direct", [{ cpuUs: Number.NaN }]],
]);

test("a median is the middle value, or the mean of the two in the middle", () => {
  assert.is(median([3, 1, 2]), 2);
  assert.is(median([4, 1, 2, 3]), 2.5);
  assert.ok(Number.isNaN(median([])));
});

test("the table has watchkeeper as a share of each peer, and a dash where nothing was measured", () => {
  const rows = tableOf(scenario, rounds, "watchkeeper").split("\n");
  assert.match(rows[2] ?? "", /^\| watchkeeper \| +9\.0 \| 8\.0–30\.0 \| +\|$/);
  assert.match(rows[3] ?? "", /^\| nghttpx +\| +9\.0 \| +8\.0–10\.0 \| +1\.00 \|$/);
  assert.match(rows[4] ?? "", /^\| direct +\| +– \|/);
});

test("a target is judged only when both sides were measured", () => {
  const medians = { "small-8x16": mediansOf(scenario, rounds) };
  assert.equal(verdicts("watchkeeper", medians), ["✓ small-8x16 cpuUs / nghttpx: 1.00 (at most 1.2)"]);
});

const said = (bad: number): string => `
finished in 3.00s, 41701.50 req/s, 83.00MB/s
requests: 125108 total, 125172 started, 125108 done, ${125108 - bad} succeeded, ${bad} failed, ${bad} errored, 0 timeout
status codes: ${125108 - bad} 2xx, 0 3xx, 0 4xx, 0 5xx
`;

test("h2load's summary is read", () => {
  assert.equal(summaryOf(said(0)), { requests: 125108, perSecond: 41701.5 });
});

test("a run with failed requests is no measurement", () => {
  assert.throws(() => summaryOf(said(3)), /6 bad answers/);
});

test.run();
