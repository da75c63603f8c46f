import { suite } from "uvu";
import * as assert from "uvu/assert";
import { FlushScheduler } from "../../../src/h2/core/flush-scheduler.ts";
import { Overhead } from "../../../src/proxy/observe/overhead.ts";
import { manualClock } from "../../support/clock.ts";
import { bearer, PlayedPath } from "../../support/path.ts";

const test = suite("proxy/observe/overhead");

function countsOf(path: PlayedPath): Record<string, number> {
  const { histograms } = path.overhead;
  return {
    request: histograms.request.count,
    queued: histograms.queued.count,
    response: histograms.response.count,
  };
}

test("a head counts from its arrival until the turn's writers have written", () => {
  const clock = manualClock();
  const turn = new FlushScheduler(clock);
  const overhead = new Overhead(clock, turn);
  const since = clock.now();
  clock.advance(3);
  overhead.forwarded("request", since, "a-1");
  overhead.forwarded("response", clock.now(), "a-2");
  turn.mark({ flush: () => clock.advance(2) });
  assert.is(overhead.histograms.request.count, 0);
  clock.turn();
  assert.is(overhead.histograms.request.sum, 0.005);
  assert.is(overhead.histograms.response.sum, 0.002);
  assert.is(overhead.histograms.response.exemplarOf(5)?.auditId, "a-2");
  clock.turn();
  assert.is(overhead.histograms.request.count, 1, "each head counts once");
});

test("without any writer, the turn ends all the same", () => {
  const clock = manualClock();
  const overhead = new Overhead(clock, new FlushScheduler(clock));
  overhead.forwarded("response", clock.now(), "");
  clock.turn();
  assert.is(overhead.histograms.response.count, 1);
});

test("a request counts once for each direction, and the time at the backend does not count", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  client.ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  client.ask("GET", "/api/v1/nodes", [bearer("t")]);
  path.settle();
  const before = countsOf(path);
  assert.is((before["request"] ?? 0) + (before["queued"] ?? 0), 2);
  assert.is(before["response"], 0);
  path.clock.advance(400);
  for (const asked of path.backend("a").asked) asked.answer(200, "[]");
  path.settle();
  assert.equal(countsOf(path), { ...before, response: 2 });
  const { request, response } = path.overhead.histograms;
  assert.ok(request.sum + response.sum < 0.4, "less than the backend took");
});

test("a request that waits for a backend counts as queued, with its wait", () => {
  const path = new PlayedPath(["a"]);
  path.settle();
  path.backend("a").kill();
  path.settle();
  path.client().ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  const { queued, request } = path.overhead.histograms;
  assert.equal([queued.count, request.count], [0, 0]);
  path.backend("a").isDown = false;
  for (let times = 0; times < 40 && queued.count === 0; times++) {
    path.clock.advance(250);
    path.settle();
  }
  assert.equal([queued.count, request.count], [1, 0]);
  assert.ok(queued.sum >= 0.1, `${queued.sum} s`);
});

test.run();
