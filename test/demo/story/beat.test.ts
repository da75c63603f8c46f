import { suite } from "uvu";
import * as assert from "uvu/assert";
import { jsonOf } from "../../../demo/objects/json.ts";
import { Store } from "../../../demo/objects/store.ts";
import { Beat, beatInto, beatObject, beatOf } from "../../../demo/story/beat.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("demo/story/beat");

test("each write is one change, counted and timed, until it is stopped", () => {
  const clock = manualClock();
  const store = new Store();
  const counts: number[] = [];
  store.subscribe(({ object }) => counts.push(beatOf(jsonOf(object))));
  const beat = new Beat(beatInto(store, clock), clock);
  beat.start();
  clock.advance(250);
  assert.equal([counts, beat.count], [[1, 2, 3], 3]);
  assert.equal([beat.age(1), beat.age(3), beat.age(4)], [250, 50, 0]);
  beat.stop();
  clock.advance(1_000);
  assert.is(beat.count, 3);
});

test("a write that takes its time is waited for, and none follows once it is stopped", async () => {
  const clock = manualClock();
  const writes: (() => void)[] = [];
  const beat = new Beat(() => new Promise((done) => writes.push(done)), clock);
  beat.start();
  clock.advance(1_000);
  assert.is(writes.length, 1);
  writes[0]?.();
  await Promise.resolve();
  clock.advance(100);
  assert.is(writes.length, 2);
  beat.stop();
  writes[1]?.();
  await Promise.resolve();
  clock.advance(1_000);
  assert.is(writes.length, 2);
});

test("what a client writes is read as the write that it is", () => {
  assert.is(beatOf(JSON.parse(JSON.stringify(beatObject(12)))), 12);
});

test("other objects are none of its writes", () => {
  assert.is(beatOf({ metadata: { name: "other" }, data: { count: "7" } }), 0);
  assert.is(beatOf(null), 0);
});

test.run();
