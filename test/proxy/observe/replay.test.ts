import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Replay, Replays } from "../../../src/proxy/observe/replay.ts";

const test = suite("watch/replay");

/** Asks, and lets it end, this often; returns what was told. */
function loop(replay: Replay, times: number, everyMs: number, from = 0): (number | undefined)[] {
  return Array.from({ length: times }, (_, index) => {
    const told = replay.asked(from + index * everyMs);
    replay.ended();
    return told;
  }).filter((told) => told !== undefined);
}

test("a watch that is asked for again from one version in a loop is told of once a minute (seed 001)", () => {
  const replay = new Replay();
  assert.equal(loop(replay, 20, 1000), [limits.replays]);
  assert.equal(loop(replay, 40, 1000, 20_000), []);
  assert.equal(loop(replay, 20, 1000, 60_000), [limits.replays]);
});

test("one that its client asks for every few minutes is none: nothing happens there", () => {
  assert.equal(loop(new Replay(), 100, 20_000), []);
});

test("nor are many at once, of as many informers", () => {
  const replay = new Replay();
  assert.equal(
    Array.from({ length: 50 }, () => replay.asked(0)).filter((told) => told !== undefined),
    [],
  );
});

test("what was asked for least lately is forgotten first", () => {
  const replays = new Replays();
  const first = replays.of("first");
  for (let index = 0; index < limits.replayKeys; index += 1) replays.of(String(index));
  assert.is(replays.size, limits.replayKeys);
  assert.ok(replays.of("first") !== first);
});

test.run();
