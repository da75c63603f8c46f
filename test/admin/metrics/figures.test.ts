import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figuresOf } from "../../../src/admin/metrics/figures.ts";

const test = suite("admin/figures");
const own = {
  at: "2026-11-22T00:00:00.000Z",
  name: "prod-eu1",
  uptimeMs: 5,
  cpuMs: 2,
  eventLoopDelayMs: 1,
  rssBytes: 9,
};

test("requests are told by the class of their code, whichever backend answered", () => {
  const row = (code: number, backend: string, count: number) => ({ verb: "get", code, backend, count });
  const requests = [row(200, "cp-1", 3), row(201, "cp-2", 1), row(503, "", 2), row(0, "cp-1", 1)];
  const figures = figuresOf({ version: "0.1.0", requests, watchEvents: 7 }, own);
  assert.equal(figures["requests"], { "2xx": 4, "5xx": 2, none: 1 });
  assert.is(figures["watchEvents"], 7);
  assert.is(figures["name"], "prod-eu1");
});

test.run();
