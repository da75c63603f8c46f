import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchLimits } from "../../../src/watch/limits.ts";
import { ResumeBudget } from "../../../src/watch/session/resume-retry.ts";

const test = suite("resume-retry: attempts");

const second = 1000;

test("three backends are asked, not more", () => {
  const attempts = new ResumeBudget();
  assert.equal(
    [1, 2, 3, 4].map((at) => attempts.mayTry(at)),
    [true, true, true, false],
  );
});

test("one that could not be asked does not count", () => {
  const attempts = new ResumeBudget();
  for (let at = 0; at < 20; at += 1) {
    assert.ok(attempts.mayTry(at));
    attempts.uncount();
  }
  assert.not(attempts.mayTry(15_000), "but its time does");
});

test("nor do the first three that were lost on their way", () => {
  const attempts = new ResumeBudget();
  const tries = [1, 2, 3, 4, 5, 6, 7].map((at) => {
    const mayTry = attempts.mayTry(at);
    if (mayTry) attempts.lost();
    return mayTry;
  });
  assert.equal(tries, [true, true, true, true, true, true, false]);
  attempts.resumed(8);
  attempts.progressed();
  assert.ok(attempts.mayTry(9), "of the next loss they do not count again");
  attempts.lost();
  assert.equal(
    [10, 11, 12, 13].map((at) => attempts.mayTry(at)),
    [true, true, true, false],
  );
});

test("no backend is asked when 15 seconds have passed", () => {
  const attempts = new ResumeBudget();
  assert.ok(attempts.mayTry(100));
  assert.is(attempts.leftMs(10_100), 5 * second);
  assert.ok(attempts.mayTry(15_099));
  assert.not(attempts.mayTry(15_100));
});

test("a backend that takes the watch ends the loss, and the next begins anew", () => {
  const attempts = new ResumeBudget();
  attempts.refuse(410, 0);
  for (let at = 0; at < 3; at += 1) attempts.mayTry(at);
  attempts.resumed(3);
  attempts.progressed();
  assert.ok(attempts.mayTry(40 * second));
  assert.is(attempts.leftMs(40 * second), 15 * second);
  assert.is(attempts.refusedWith, 0);
});

/** Returns a budget after a resume at each of these times, without any new event in between. */
function fruitless(...times: number[]): ResumeBudget {
  const attempts = new ResumeBudget();
  for (const at of times) {
    assert.ok(attempts.mayTry(at), String(at));
    attempts.resumed(at);
  }
  return attempts;
}

test("after three resumes within a minute that deliver no event, a watch is not resumed again (row 19)", () => {
  const attempts = fruitless(0, 4 * second, 8 * second);
  assert.not(attempts.mayTry(12 * second));
  assert.not(attempts.mayTry(16 * second));
});

test("a watch that was resumed and later hedged has a whole loss's time when it loses the hedge's stream", () => {
  const attempts = fruitless(0);
  attempts.resumed(30 * second); // the hedge replaces the stream that the watch was resumed on
  assert.ok(attempts.mayTry(30 * second + 100));
  assert.is(attempts.leftMs(30 * second + 100), watchLimits.resumeMs);
});

test("one that takes the watch and refuses it in the same breath does not", () => {
  const attempts = new ResumeBudget();
  for (const at of [0, 100, 200]) {
    assert.ok(attempts.mayTry(at));
    attempts.resumed(at + 50);
    attempts.refuse(410, at + 60);
  }
  assert.not(attempts.mayTry(300));
  assert.is(attempts.refusedWith, 410);
});

test("one that held it for more than a second does", () => {
  const attempts = new ResumeBudget();
  for (let attempt = 0; attempt < 3; attempt += 1) assert.ok(attempts.mayTry(0));
  attempts.resumed(0);
  assert.ok(attempts.mayTry(1001));
});

test("something new between them makes them none", () => {
  const attempts = fruitless(0, 10 * second);
  assert.not(attempts.hasProgressed);
  attempts.progressed();
  assert.ok(attempts.hasProgressed);
  attempts.resumed(20 * second);
  assert.ok(attempts.mayTry(30 * second));
});

test("those of more than a minute ago do not count", () => {
  assert.ok(fruitless(0, 10 * second, 20 * second).mayTry(61 * second));
  assert.ok(fruitless(0, 30 * second, 61 * second, 62 * second).mayTry(63 * second));
});

test.run();
