import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchLimits } from "../../../src/watch/limits.ts";
import { ResumeRetry } from "../../../src/watch/session/resume-retry.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("resume-retry");

test("it knows why and since when, and forgets which backends it asked once something new came, or after a while", () => {
  const clock = manualClock();
  const retry = new ResumeRetry(clock, clock);
  retry.begin("lost", "a");
  clock.advance(30);
  retry.inVain("a");
  retry.inVain("b");
  assert.equal([retry.reason, retry.from, retry.ms, retry.tried], ["lost", "a", 30, ["a", "b"]]);
  // The backends stay in `tried`: one that has accepted the watch may still refuse it in its first event.
  retry.found();
  assert.equal(retry.tried, ["a", "b"]);
  retry.progressed();
  assert.equal(retry.tried, []);
  retry.inVain("c");
  clock.advance(watchLimits.resumeMs);
  assert.equal(retry.tried, []);
});

test("it waits for one thing at a time", () => {
  const clock = manualClock();
  const retry = new ResumeRetry(clock, clock);
  const done: string[] = [];
  retry.after(10, () => done.push("first"));
  retry.after(20, () => done.push("second"));
  clock.advance(30);
  assert.equal(done, ["second"]);
  retry.untilAnswered(
    () => false,
    () => done.push("silent"),
  );
  clock.advance(watchLimits.resumeAnswerMs - 1);
  retry.stop();
  clock.advance(10);
  assert.equal(done, ["second"]);
});

test("its time is over fifteen seconds after it was first tried, and not before it was", () => {
  const clock = manualClock();
  const retry = new ResumeRetry(clock, clock);
  clock.advance(60_000);
  assert.not(retry.isOver);
  assert.is(retry.leftMs, watchLimits.resumeMs);
  assert.ok(retry.mayTry());
  clock.advance(1000);
  assert.is(retry.leftMs, watchLimits.resumeMs - 1000);
  clock.advance(watchLimits.resumeMs - 1000);
  assert.ok(retry.isOver);
  assert.not(retry.mayTry());
});

test("a backend without an upstream connection does not count, and the next try is put off a little longer each time", () => {
  const retry = new ResumeRetry(manualClock(), manualClock());
  const pauses = [1, 2, 3, 4, 5].map(() => (retry.mayTry() ? retry.unsent() : -1));
  assert.equal(pauses, [0, 50, 100, 150, 200]);
});

test("that nothing new comes of it is remembered until something does", () => {
  const retry = new ResumeRetry(manualClock(), manualClock());
  retry.mayTry();
  retry.found();
  assert.ok(retry.hasNoProgress);
  retry.progressed();
  assert.not(retry.hasNoProgress);
});

/**
 * Loses the stream and resumes it `times` times. Each stream stays open for `openMs`. True if another resume is
 * allowed.
 */
function mayResumeAfter(times: number, openMs: number): boolean {
  const clock = manualClock();
  const retry = new ResumeRetry(clock, clock);
  for (let n = 0; n < times; n += 1) {
    assert.ok(retry.mayTry(), `resume ${n + 1}`);
    retry.found();
    clock.advance(openMs);
  }
  return retry.mayTry();
}

test("a watch that is lost soon after each resume ends at the limit", () => {
  const { noProgressResumes, servedMs } = watchLimits;
  assert.not(mayResumeAfter(noProgressResumes, servedMs - 1));
});

test("a quiet watch is resumed after any number of faults, if its streams stay open between them", () => {
  assert.ok(mayResumeAfter(20, watchLimits.servedMs));
});

test("a refusal holds for its time, or until a backend takes the watch", () => {
  const clock = manualClock();
  const retry = new ResumeRetry(clock, clock);
  assert.not(retry.isDeclined);
  retry.declined(2000);
  clock.advance(1999);
  assert.ok(retry.isDeclined);
  clock.advance(1);
  assert.not(retry.isDeclined);
  retry.declined(Number.POSITIVE_INFINITY);
  clock.advance(1e9);
  assert.ok(retry.isDeclined);
  retry.found();
  assert.not(retry.isDeclined);
});

test("each backend that does not serve the resource is remembered, and is no attempt, once", () => {
  const retry = new ResumeRetry(manualClock(), manualClock());
  for (const backend of ["a", "b", "b", "a", "b"]) {
    assert.ok(retry.mayTry());
    retry.unserved(backend);
  }
  assert.equal([retry.notServing, retry.endReason], [["a", "b"], "not_found"]);
  assert.not(retry.mayTry());
  retry.found();
  assert.equal([retry.notServing, retry.endReason], [[], "no_backend"]);
});

test("a version that is too old is remembered while it is searched for", () => {
  const retry = new ResumeRetry(manualClock(), manualClock());
  assert.is(retry.endReason, "no_backend");
  retry.mayTry();
  retry.begin("lost", "a");
  retry.refused({ attempt: { backend: "b" }, refusal: undefined }, 410);
  retry.found();
  assert.equal([retry.reason, retry.refusal, retry.endReason], ["lost", undefined, "expired"]);
});

test("where that answers the client's own request, the search begins with it, and it is kept", () => {
  const clock = manualClock();
  const retry = new ResumeRetry(clock, clock);
  retry.refused({ attempt: { backend: "a" }, refusal: Buffer.from("410") }, 410);
  assert.ok(retry.mayTry());
  assert.equal([retry.reason, retry.from, String(retry.refusal)], ["expired", "a", "410"]);
  retry.found();
  clock.advance(watchLimits.settledMs + 1);
  assert.ok(retry.mayTry(), "another incident");
  assert.is(retry.refusal, undefined);
});

test("a wait that is over is none", () => {
  const clock = manualClock();
  const retry = new ResumeRetry(clock, clock);
  retry.after(10, () => {});
  assert.ok(retry.isWaiting);
  clock.advance(10);
  assert.not(retry.isWaiting);
  retry.waitFor(() => {});
  assert.ok(retry.isWaiting);
  retry.stop();
  assert.not(retry.isWaiting);
});

test.run();
