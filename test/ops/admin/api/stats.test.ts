import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { ProcessMonitor, statsOf } from "../../../../src/ops/admin/api/stats.ts";
import { timesOf } from "../../../../src/ops/admin/http/times.ts";
import type { Sample } from "../../../../src/ops/admin/metrics/exposition.ts";
import { cpuMs } from "../../../support/cpu.ts";

const test = suite("ops/admin/api/stats");

test("work shows in the processor's time and in the loop's lateness, once", async () => {
  const source = new ProcessMonitor(timesOf(wallClock));
  const before = source.read();
  await sleep(50);
  for (let spentMs = 0; spentMs < 200; ) spentMs += cpuMs(() => "x".repeat(10_000).split(""));
  await sleep(50);
  const busy = source.read();
  assert.ok(busy.cpuMs - before.cpuMs >= 150, `${busy.cpuMs - before.cpuMs} ms of the processor`);
  assert.ok(busy.eventLoopDelayMs >= 100, `${busy.eventLoopDelayMs} ms late`);
  assert.ok(busy.uptimeMs > before.uptimeMs && busy.rssBytes > 1e7);
  source.stop();
});

test("requests are counted by the class of their code, whichever backend answered", () => {
  const rows = {
    requests_total: [
      [["GET", "200", "cp-1"], 3],
      [["GET", "201", "cp-2"], 1],
      [["GET", "503", ""], 2],
      [["GET", "other", "cp-1"], 1],
    ],
    watch_events_total: [
      [[], 5],
      [[], 2],
    ],
  } as const;
  const read = (name: string): readonly Sample[] =>
    Object.entries(rows).find(([one]) => one === name)?.[1] ?? [];
  const own = {
    version: "0.1.0",
    at: 0,
    name: "prod-eu1",
    restartRequired: [],
    listeners: [{ name: "kube", address: "127.0.0.1:8443" }],
    uptimeMs: 5,
    cpuMs: 2,
    eventLoopDelayMs: 1,
    rssBytes: 9,
  };
  const stats = statsOf({ read }, own, timesOf(wallClock));
  assert.equal(stats["requests"], { "2xx": 4, "5xx": 2, none: 1 });
  assert.is(stats["watchEvents"], 7);
  assert.is(stats["name"], "prod-eu1");
  assert.equal(stats["listeners"], own.listeners);
});

test.run();
