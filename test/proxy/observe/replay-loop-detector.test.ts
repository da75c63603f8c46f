import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Journal } from "../../../src/events/journal.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { ownOrigin } from "../../../src/kube/api-origin.ts";
import { classify } from "../../../src/kube/request-info.ts";
import { ReplayLoop, ReplayLoopDetector } from "../../../src/proxy/observe/replay-loop-detector.ts";
import { Client } from "../../../src/upstream/context/client.ts";
import { watchContextOf } from "../../../src/watch/session/watch-context.ts";
import { manualClock } from "../../support/clock.ts";
import { bearer, PlayedPath } from "../../support/path.ts";
import { PlayedWatch } from "../../support/watch-path.ts";

const test = suite("proxy/observe/loops");

/** Starts and ends the same watch `times` times. Returns what the detector reported. */
function loop(replayLoop: ReplayLoop, times: number, everyMs: number, from = 0): (number | undefined)[] {
  return Array.from({ length: times }, (_, index) => {
    const told = replayLoop.asked(from + index * everyMs);
    replayLoop.ended();
    return told;
  }).filter((told) => told !== undefined);
}

const from = {
  address: "10.0.0.9",
  port: 40_000,
  listener: "kube",
  alpn: "h2",
  isTls: true,
  isTrustedForwarder: false,
} as const;
const userAgent = new Field("user-agent", "controller/v1");

/** Opens a client's watches one after the other. Each delivers an event and ends. */
function watchAgain(path: PlayedPath, queries: readonly string[]): PlayedWatch[] {
  return queries.map((query) => {
    const watch = new PlayedWatch({ path, query, fields: [bearer("t"), userAgent] });
    watch.serve(watch.from, "+8a");
    watch.ear.stream.reset(8);
    path.clock.advance(1000);
    return watch;
  });
}

test("a client that asks from one version in a loop is named, once a minute (seed 001)", () => {
  const path = new PlayedPath(["a", "b"]);
  const queries = Array.from({ length: 40 }, (_, index) => `resourceVersion=7&timeoutSeconds=${300 + index}`);
  const [watch] = watchAgain(path, queries);
  assert.equal(watch?.entries("watch.replay_loop"), [
    {
      kind: "watch.replay_loop",
      client: "10.0.0.9",
      userAgent: "controller/v1",
      resource: "/configmaps",
      version: "7",
      times: limits.replays,
    },
  ]);
});

test("one that goes on is none, nor is one with as many selectors", () => {
  const path = new PlayedPath(["a", "b"]);
  const on = Array.from({ length: 20 }, (_, index) => `resourceVersion=${index + 1}`);
  const wide = Array.from({ length: 20 }, (_, index) => `resourceVersion=7&labelSelector=a${index}`);
  const [watch] = watchAgain(path, [...on, ...wide]);
  assert.equal(watch?.entries("watch.replay_loop"), []);
});

test("a watch that is asked for again from one version in a loop is told of once a minute (seed 001)", () => {
  const replayLoop = new ReplayLoop();
  assert.equal(loop(replayLoop, 20, 1000), [limits.replays]);
  assert.equal(loop(replayLoop, 40, 1000, 20_000), []);
  assert.is(loop(replayLoop, 20, 1000, 60_000).length, 1);
});

test("a loop that lasts is reported with the number of the minute before", () => {
  const replayLoop = new ReplayLoop();
  assert.equal(loop(replayLoop, 120, 500), [limits.replays]);
  assert.equal(loop(replayLoop, 10, 500, 60_000), [119]);
  assert.equal(loop(replayLoop, 10, 500, 300_000), [limits.replays], "the number of minutes ago is old");
});

test("one that its client asks for every few minutes is none: nothing happens there", () => {
  assert.equal(loop(new ReplayLoop(), 100, 20_000), []);
});

test("nor are many at once, of as many informers", () => {
  const replayLoop = new ReplayLoop();
  assert.equal(
    Array.from({ length: 50 }, () => replayLoop.asked(0)).filter((told) => told !== undefined),
    [],
  );
});

test("beyond the limit the watch that was asked for least lately is forgotten", () => {
  const clock = manualClock();
  const replays = new ReplayLoopDetector(clock, new Journal(clock));
  const order = { client: new Client(from), fields: [] };
  const answered = (version: number): ReplayLoop | undefined => {
    const target = `/api/v1/pods?watch=1&resourceVersion=${version + 1}`;
    const asked = watchContextOf(target, classify("GET", target), { origin: ownOrigin });
    return replays.answered(asked, order);
  };
  const first = answered(0);
  for (let version = 1; version < limits.replayKeys; version += 1) answered(version);
  assert.ok(answered(0) === first);
  for (let version = 1; version <= limits.replayKeys; version += 1) answered(limits.replayKeys + version);
  assert.ok(answered(0) !== first);
});

test.run();
