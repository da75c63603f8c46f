import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Mark, noMark, Reading } from "../../../src/watch/session/session-progress.ts";
import { eventFrom } from "../../support/watch-events.ts";

const test = suite("watch/session/stream-progress");

function markOf(...words: string[]): Mark {
  let mark = noMark;
  for (const word of words) mark = mark.after(eventFrom(word));
  return mark;
}

test("a mark counts the events of the last version only", () => {
  const mark = markOf("-5a", "-5b", "-6a", "-6b", "-6c");
  assert.equal([mark.version, mark.count], ["6", 3]);
});

test("marks are equal when they saw the same events of one version in the same order", () => {
  assert.ok(markOf("~4z", "-5a", "-5b").equals(markOf("-5a", "-5b")));
  assert.ok(noMark.equals(markOf()));
  for (const other of [["-5b", "-5a"], ["-5a"], ["-5a", "-5c"], ["-5a", "~5b"], ["-6a", "-6b"], []])
    assert.not(markOf("-5a", "-5b").equals(markOf(...other)), other.join(" "));
});

test("events come in order when they are not older than the last one, and newer than the last bookmark", () => {
  const reading = new Reading("", false, "a");
  assert.ok(reading.isInOrder("1"));
  reading.mark = markOf("~9");
  assert.equal(
    ["8", "9", "10"].map((version) => reading.isInOrder(version)),
    [false, true, true],
  );
  reading.bookmark = "10";
  assert.equal(
    ["9", "10", "11"].map((version) => reading.isInOrder(version)),
    [false, false, true],
  );
});

test("an answer to version 9 shows nothing up to 9; one to no version may show everything", () => {
  const reading = new Reading("9", true, "a");
  assert.equal(
    ["8", "9", "10"].map((version) => reading.isBefore(version)),
    [true, true, false],
  );
  assert.not(new Reading("", false, "a").isBefore("1"));
});

test("a stream has reached what was delivered when it delivered that itself or was requested from behind it", () => {
  const delivered = markOf("-5a", "-5b");
  const behind = new Reading("4", true, "a");
  assert.not(behind.hasReached(delivered));
  behind.mark = markOf("-5a");
  assert.not(behind.hasReached(delivered), "half of the batch is not all of it");
  behind.mark = markOf("-5a", "-5b");
  assert.ok(behind.hasReached(delivered));
  assert.ok(new Reading("5", true, "a").hasReached(delivered));
  assert.ok(new Reading("", false, "a").hasReached(noMark), "nothing was delivered");
});

test.run();
