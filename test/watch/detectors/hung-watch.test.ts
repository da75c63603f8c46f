import { suite } from "uvu";
import * as assert from "uvu/assert";
import { sliceLimits } from "../../../src/base/slices.ts";
import type { ActiveRequests } from "../../../src/proxy/request/active-requests.ts";
import { HungWatchDetector } from "../../../src/watch/detectors/hung-watch.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { countedClock } from "../../support/clock.ts";
import { PlayedWatch } from "../../support/watch-path.ts";

const test = suite("watch/detectors/hung-watch");

const minute = 60_000;

test("a watch that its server forgot to end is ended, a little after its client's deadline", () => {
  const watch = new PlayedWatch({ query: "resourceVersion=7&timeoutSeconds=60" });
  watch.serve(watch.from, "+8a");
  watch.advance(minute + watchLimits.overdueMs - 1);
  watch.has("+8a");
  watch.advance(watchLimits.hungLookMs + 1);
  watch.has("+8a", "ended");
});

test("one whose initial events came when its deadline had passed is not ended so soon that its client lists anew", () => {
  const query =
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=4";
  const watch = new PlayedWatch({ query });
  watch.advance(2 * watchLimits.hungLookMs - 200);
  watch.serve(watch.from, "+8a =9$");
  watch.advance(900);
  watch.has("+8a =9$");
  watch.advance(500);
  watch.has("+8a =9$", "ended");
});

test("a watch that has missed two bookmarks is asked for elsewhere, and what that shows goes on", () => {
  const watch = new PlayedWatch({ query: "resourceVersion=7&allowWatchBookmarks=true" });
  watch.serve(watch.from, "=8");
  watch.advance(watchLimits.hungMs - watchLimits.hungLookMs);
  assert.is(watch.to.asked.length, 0);
  watch.advance(2 * watchLimits.hungLookMs);
  watch.serve(watch.to, "+9a");
  watch.has("=8 +9a");
  watch.advance(10 * minute);
  assert.equal(
    [watch.from.asked.length, watch.to.asked.length],
    [1, 1],
    "and left alone, having had no bookmark there",
  );
});

test("the bookmark that ends the initial events promises no other: the cache may stay at its version for minutes", () => {
  const query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  const watch = new PlayedWatch({ query });
  watch.serve(watch.from, "+8a =9$");
  watch.advance(10 * minute);
  assert.is(watch.to.asked.length, 0);
  watch.serve(watch.from, "=10");
  watch.advance(watchLimits.hungMs + watchLimits.hungLookMs);
  assert.ok(watch.to.asked.length > 0, "but a bookmark after that one does");
});

test("a watch whose client does not read is not hung: its silence may be the client's", () => {
  const watch = new PlayedWatch({ query: "resourceVersion=7&allowWatchBookmarks=true" });
  watch.ear.isReading = false;
  const many = Array.from({ length: 300 }, (_, index) => `+${index + 9}${"x".repeat(1000)}`);
  watch.serve(watch.from, `=8 ${many.join(" ")}`);
  const [exchange] = watch.path.exchanges.live;
  watch.advance(watchLimits.hungMs + watchLimits.hungLookMs);
  assert.is(exchange?.watch?.isHung, false);
  assert.is(watch.to.asked.length, 0);
});

test("a quiet watch that never had a bookmark is left alone for hours (D7)", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.advance(240 * minute);
  watch.has("+8a");
  assert.equal([watch.from.asked.length, watch.to.asked.length], [1, 0]);
});

test("of 50,000 watches each is looked at once in a round, and so many in one loop turn; one that is over is not", () => {
  const clock = countedClock();
  const perTurn = new Map<number, number>();
  const looks = new Map<number, number>();
  const live = Array.from({ length: 50_000 }, (_, index) => ({
    isEnded: index === 40_000,
    watch: {
      look(): void {
        perTurn.set(clock.turns, (perTurn.get(clock.turns) ?? 0) + 1);
        looks.set(index, (looks.get(index) ?? 0) + 1);
      },
    },
  }));
  const exchanges = { live } as unknown as ActiveRequests;
  const detector = new HungWatchDetector(clock, exchanges);
  detector.start();
  clock.advance(watchLimits.hungLookMs);
  assert.is(looks.size, 49_999);
  assert.is(Math.max(...looks.values()), 1);
  assert.ok(Math.max(...perTurn.values()) <= sliceLimits.sliceEntries, String(Math.max(...perTurn.values())));
  detector.stop();
  clock.advance(2 * watchLimits.hungLookMs);
  assert.is(Math.max(...looks.values()), 1);
});

test.run();
