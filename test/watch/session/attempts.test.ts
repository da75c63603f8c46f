import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchLimits } from "../../../src/watch/limits.ts";
import { ResumeRetry } from "../../../src/watch/session/resume-retry.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("resume-retry: attempts");

const second = 1000;

const refused = { attempt: { backend: "a" }, refusal: undefined };

/** A search, on which each call is made at a time of its own. */
class Attempts {
  readonly #clock = manualClock();
  readonly #retry = new ResumeRetry(this.#clock, this.#clock);

  at(ms: number): ResumeRetry {
    this.#clock.advance(ms - this.#clock.now());
    return this.#retry;
  }

  get now(): ResumeRetry {
    return this.#retry;
  }
}

test("three backends are asked, not more", () => {
  const attempts = new Attempts();
  assert.equal(
    [1, 2, 3, 4].map((at) => attempts.at(at).mayTry()),
    [true, true, true, false],
  );
});

test("one that could not be asked does not count", () => {
  const attempts = new Attempts();
  for (let at = 0; at < 20; at += 1) {
    assert.ok(attempts.at(at).mayTry());
    attempts.now.uncount();
  }
  assert.not(attempts.at(15_000).mayTry(), "but its time does");
});

test("nor do the first three that were lost on their way", () => {
  const attempts = new Attempts();
  const tries = [1, 2, 3, 4, 5, 6, 7].map((at) => {
    const mayTry = attempts.at(at).mayTry();
    if (mayTry) attempts.now.lost();
    return mayTry;
  });
  assert.equal(tries, [true, true, true, true, true, true, false]);
  attempts.at(8).found();
  attempts.now.progressed();
  assert.ok(attempts.at(9).mayTry(), "of the next loss they do not count again");
  attempts.now.lost();
  assert.equal(
    [10, 11, 12, 13].map((at) => attempts.at(at).mayTry()),
    [true, true, true, false],
  );
});

test("no backend is asked when 15 seconds have passed", () => {
  const attempts = new Attempts();
  assert.ok(attempts.at(100).mayTry());
  assert.is(attempts.at(10_100).leftMs, 5 * second);
  assert.ok(attempts.at(15_099).mayTry());
  assert.not(attempts.at(15_100).mayTry());
});

test("a backend that takes the watch ends the loss, and the next begins anew", () => {
  const attempts = new Attempts();
  attempts.at(0).refused(refused, 410);
  for (let at = 0; at < 3; at += 1) attempts.at(at).mayTry();
  attempts.at(3).found();
  attempts.now.progressed();
  assert.ok(attempts.at(40 * second).mayTry());
  assert.is(attempts.at(40 * second).leftMs, 15 * second);
  assert.is(attempts.now.endReason, "no_backend");
});

/** Returns a budget after a resume at each of these times, without any new event in between. */
function fruitless(...times: number[]): Attempts {
  const attempts = new Attempts();
  for (const at of times) {
    assert.ok(attempts.at(at).mayTry(), String(at));
    attempts.at(at).found();
  }
  return attempts;
}

test("after three resumes within a minute that deliver no event, a watch is not resumed again (row 19)", () => {
  const attempts = fruitless(0, 4 * second, 8 * second);
  assert.not(attempts.at(12 * second).mayTry());
  assert.not(attempts.at(16 * second).mayTry());
});

test("a watch that was resumed and later hedged has a whole loss's time when it loses the hedge's stream", () => {
  const attempts = fruitless(0);
  attempts.at(30 * second).found(); // the hedge replaces the stream that the watch was resumed on
  assert.ok(attempts.at(30 * second + 100).mayTry());
  assert.is(attempts.at(30 * second + 100).leftMs, watchLimits.resumeMs);
});

test("one that takes the watch and refuses it in the same breath does not", () => {
  const attempts = new Attempts();
  for (const at of [0, 100, 200]) {
    assert.ok(attempts.at(at).mayTry());
    attempts.at(at + 50).found();
    attempts.at(at + 60).refused(refused, 410);
  }
  assert.not(attempts.at(300).mayTry());
  assert.is(attempts.now.endReason, "expired");
});

test("one that held it for more than a second does", () => {
  const attempts = new Attempts();
  for (let attempt = 0; attempt < 3; attempt += 1) assert.ok(attempts.at(0).mayTry());
  attempts.at(0).found();
  assert.ok(attempts.at(1001).mayTry());
});

test("something new between them makes them none", () => {
  const attempts = fruitless(0, 10 * second);
  assert.ok(attempts.now.hasNoProgress);
  attempts.now.progressed();
  assert.not(attempts.now.hasNoProgress);
  attempts.at(20 * second).found();
  assert.ok(attempts.at(30 * second).mayTry());
});

test("those of more than a minute ago do not count", () => {
  assert.ok(
    fruitless(0, 10 * second, 20 * second)
      .at(61 * second)
      .mayTry(),
  );
  assert.ok(
    fruitless(0, 30 * second, 61 * second, 62 * second)
      .at(63 * second)
      .mayTry(),
  );
});

test.run();
