import { suite } from "uvu";
import * as assert from "uvu/assert";
import { isStalled, latestEventOf, Standing } from "../../../src/watch/progress/standing.ts";
import { bookmark } from "../../support/standings.ts";

const test = suite("watch/standing");

test("it is as far as its newest event or bookmark, and its newest event is never newer than that", () => {
  const standing = new Standing("a", "/pods");
  standing.show("7", 10);
  standing.tell(bookmark("12"), 20);
  standing.show("9", 30);
  assert.equal(
    [standing.version, standing.event, standing.stillSince, standing.bookmarkAt],
    ["12", "9", 20, 20],
  );
  standing.show("8", 40);
  assert.is(standing.event, "9", "an older one on a slower watch");
  standing.show("12", 50);
  assert.is(standing.event, "12");
});

test("the marker of a list is no bookmark that comes every minute", () => {
  const standing = new Standing("a", "/pods");
  standing.tell(bookmark("12", true), 20);
  assert.equal([standing.version, standing.bookmarkAt], ["12", -1]);
});

test("it stands still from its first watch on, not from before", () => {
  const standing = new Standing("a", "/pods");
  standing.join(true, 100);
  standing.join(false, 200);
  assert.equal([standing.stillSince, standing.watches, standing.wholeWatches], [100, 2, 1]);
  standing.leave(true);
  standing.leave(false);
  standing.join(false, 300);
  assert.equal([standing.stillSince, standing.watches, standing.wholeWatches], [300, 1, 0]);
});

test("what it refused is older than the first that it takes; it is told once", () => {
  const standing = new Standing("a", "/pods");
  standing.refuse("5", "20");
  assert.equal([standing.refused, standing.hasForgotten, standing.hasForgotten], ["19", true, false]);
  standing.refuse("7", "");
  assert.equal([standing.refused, standing.hasForgotten], ["19", false]);
});

test("the newest event of several is sought among events only; a stall is over with its spell", () => {
  const [a, b] = [new Standing("a", "/pods"), new Standing("b", "/pods")];
  assert.is(latestEventOf([a, b]), "");
  a.show("9", 0);
  b.tell(bookmark("100"), 0);
  b.show("10", 0);
  assert.is(latestEventOf([a, b]), "10");
  a.stall = { version: "10", since: 0, until: 60, spellMs: 60 };
  assert.equal([isStalled(a, 59), isStalled(a, 60), isStalled(b, 0)], [true, false, false]);
});

test.run();
