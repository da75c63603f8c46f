/** Unusual ends of upstream streams. test/watch/session tests the usual ones. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchLimits } from "../../src/watch/limits.ts";
import { blackHole, goAway, PlayedWatch } from "../support/watch-path.ts";

const test = suite("flows/early-ends");

test("a quiet watch that was moved for another reason still may end early once", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  watch.serve(watch.to);
  watch.advance(20_000);
  watch.end(watch.to);
  watch.has("+8a");
  assert.is(watch.to.asked.length, 2);
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("of two attempts the one that answers keeps the client's deadline", () => {
  const watch = new PlayedWatch({ query: "resourceVersion=7&timeoutSeconds=2" });
  watch.serve(watch.from, "+8a");
  watch.advance(700);
  blackHole(watch.from);
  watch.advance(800);
  watch.serve(watch.to, "~9a");
  watch.advance(500);
  watch.end(watch.to);
  watch.has("+8a ~9a", "ended");
  watch.advance(10_000);
  assert.is(watch.to.asked.length, 1);
  assert.is(watch.path.exchanges.size, 0);
});

test("a move at leisure that is refused is tried again, and stands in no hedge's way", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.from.isDown = true;
  goAway(watch.from);
  watch.advance(50);
  watch.to.last.answer(429, "busy");
  watch.path.settle();
  watch.say(watch.from, "~9a");
  assert.is(watch.to.asked.length, 1);
  watch.advance(watchLimits.declinedMs + 50);
  watch.serve(watch.to, "~10a");
  watch.has("+8a ~9a ~10a");
});

test.run();
