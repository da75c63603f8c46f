import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  type Coverage,
  isRewound,
  type LagSuspicion,
  wouldShow,
} from "../../../src/watch/cache/cache-progress.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { bookmark, names, suspected, two } from "../../support/caches.ts";

const test = suite("watch/cache/coverage");

const second = 1000;

test("a watch shows it at once when it sees all of the resource, and else with its next bookmark", () => {
  const { caches, a, b } = two();
  b.showBookmark(bookmark("7"), 0);
  a.showEvent("9", 5 * second);
  caches.stalling(5 * second);
  const whole: Coverage = { from: "7", since: 0, isWhole: true, hasBookmarks: false };
  const shows = (coverage: Coverage, now: number, more: Partial<LagSuspicion> = {}): boolean =>
    wouldShow(coverage, { ...suspected(caches, now), ...more }, now);
  const [soon, late] = [15 * second, 5 * second + watchLimits.caughtUpMs];
  assert.ok(shows(whole, soon));
  assert.ok(shows({ ...whole, from: "" }, soon));
  assert.not(shows({ ...whole, from: "9" }, soon), "its client has it");
  assert.not(shows({ ...whole, since: 4 * second }, soon), "it may have been given it in its initial state");
  const some: Coverage = { ...whole, isWhole: false, hasBookmarks: true };
  assert.not(shows(some, soon));
  assert.ok(shows(some, late));
  assert.not(shows({ ...some, hasBookmarks: false }, late), "it may be silent for ever");
  assert.not(shows(some, late, { hasBookmarks: false }), "no backend has bookmarks of an uncached resource");
});

test("a watch that begins at what others have shown is measured by what they show after that", () => {
  const { caches, a, b } = two();
  const late: Coverage = { from: "9", since: 0, isWhole: true, hasBookmarks: false };
  a.showEvent("9", 0);
  caches.stalling(0);
  a.showEvent("10", 5 * second);
  caches.stalling(5 * second);
  const shows = (now: number): boolean => wouldShow(late, suspected(caches, now), now);
  assert.equal([shows(12 * second), shows(13 * second)], [false, true]);
  b.showEvent("9", 15 * second);
  assert.equal(names(caches, 22 * second), []);
  assert.equal([names(caches, 23 * second), shows(23 * second)], [["b 10 8000"], true]);
});

test("if a cache advances but stays far below the version of an upstream stream, the stream counts as waiting in vain (row 13)", () => {
  const { b } = two();
  const ahead = { from: "900", since: 0 };
  const late = watchLimits.caughtUpMs;
  assert.not(isRewound(ahead, b, late), "a cache that does not move shows nothing");
  b.showEvent("20", second);
  assert.equal([isRewound(ahead, b, late - 1), isRewound(ahead, b, late)], [false, true]);
  assert.not(
    isRewound({ ...ahead, since: 2 * second }, b, late + 2 * second),
    "nor one that moved before only",
  );
  assert.not(isRewound({ ...ahead, from: "20" }, b, late));
  b.showEvent("901", late);
  assert.not(isRewound(ahead, b, late), "it has come to it");
});

test.run();
