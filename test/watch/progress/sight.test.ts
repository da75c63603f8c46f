import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { isHung, isRewound, type Sight, wouldShow } from "../../../src/watch/progress/sight.ts";
import type { Doubt } from "../../../src/watch/progress/stale.ts";
import { bookmark, doubted, names, two } from "../../support/standings.ts";

const test = suite("watch/sight");

const second = 1000;

test("a watch shows it at once when it sees all of the resource, and else with its next bookmark", () => {
  const { standings, a, b } = two();
  b.tell(bookmark("7"), 0);
  a.show("9", 5 * second);
  standings.judge(5 * second);
  const whole: Sight = { from: "7", since: 0, isWhole: true, hasBookmarks: false };
  const shows = (sight: Sight, now: number, more: Partial<Doubt> = {}): boolean =>
    wouldShow(sight, { ...doubted(standings, now), ...more }, now);
  const [soon, late] = [15 * second, 5 * second + limits.caughtUpMs];
  assert.ok(shows(whole, soon));
  assert.ok(shows({ ...whole, from: "" }, soon));
  assert.not(shows({ ...whole, from: "9" }, soon), "its client has it");
  assert.not(shows({ ...whole, since: 4 * second }, soon), "it may have been given it in its initial state");
  const some: Sight = { ...whole, isWhole: false, hasBookmarks: true };
  assert.not(shows(some, soon));
  assert.ok(shows(some, late));
  assert.not(shows({ ...some, hasBookmarks: false }, late), "it may be silent for ever");
  assert.not(shows(some, late, { hasBookmarks: false }), "nobody has bookmarks of an uncached resource");
});

test("a watch that begins at what others have shown is measured by what they show after that", () => {
  const { standings, a, b } = two();
  const late: Sight = { from: "9", since: 0, isWhole: true, hasBookmarks: false };
  a.show("9", 0);
  standings.judge(0);
  a.show("10", 5 * second);
  standings.judge(5 * second);
  const shows = (now: number): boolean => wouldShow(late, doubted(standings, now), now);
  assert.equal([shows(12 * second), shows(13 * second)], [false, true]);
  b.show("9", 15 * second);
  assert.equal(names(standings, 22 * second), []);
  assert.equal([names(standings, 23 * second), shows(23 * second)], [["b 10 8000"], true]);
});

test("a leg waits in vain for a cache that moves and is far from its version (row 13)", () => {
  const { b } = two();
  const ahead = { from: "900", since: 0 };
  const late = limits.caughtUpMs;
  assert.not(isRewound(ahead, b, late), "a cache that does not move shows nothing");
  b.show("20", second);
  assert.equal([isRewound(ahead, b, late - 1), isRewound(ahead, b, late)], [false, true]);
  assert.not(
    isRewound({ ...ahead, since: 2 * second }, b, late + 2 * second),
    "nor one that moved before only",
  );
  assert.not(isRewound({ ...ahead, from: "20" }, b, late));
  b.show("901", late);
  assert.not(isRewound(ahead, b, late), "it has come to it");
});

test("a watch hangs when it has missed two bookmarks, and only one that had any", () => {
  const since = (lastEventAt: number, lastBookmarkAt: number, isBlocked = false): boolean =>
    isHung({ lastEventAt, lastBookmarkAt, isBlocked }, 130 * second);
  assert.ok(since(0, 0));
  assert.not(since(1, 0), "an event came since");
  assert.not(since(0, -1), "never a bookmark: silence is no illness (D7)");
  assert.not(since(-1, -1));
  assert.not(since(0, 0, true), "its client does not read");
});

test.run();
