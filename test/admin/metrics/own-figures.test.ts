import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { timesOf } from "../../../src/admin/http/times.ts";
import { OwnFigureSource } from "../../../src/admin/metrics/own-figures.ts";
import { wallClock } from "../../../src/base/clock.ts";
import { cpuMs } from "../../support/cpu.ts";

const test = suite("admin/own-figures");

test("work shows in the processor's time and in the loop's lateness, once", async () => {
  const source = new OwnFigureSource("prod-eu1", timesOf(wallClock));
  const before = source.read();
  await sleep(50);
  for (let spentMs = 0; spentMs < 200; ) spentMs += cpuMs(() => "x".repeat(10_000).split(""));
  await sleep(50);
  const busy = source.read();
  assert.ok(busy.cpuMs - before.cpuMs >= 150, `${busy.cpuMs - before.cpuMs} ms of the processor`);
  assert.ok(busy.eventLoopDelayMs >= 100, `${busy.eventLoopDelayMs} ms late`);
  assert.ok(busy.uptimeMs > before.uptimeMs && busy.rssBytes > 1e7);
  assert.is(busy.name, "prod-eu1");
  source.stop();
});

test.run();
