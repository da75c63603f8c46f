import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Pursuit } from "../../../src/watch/session/pursuit.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/pursuit");

test("it knows why and since when, and forgets whom it asked once something new came, or after a while", () => {
  const clock = manualClock();
  const pursuit = new Pursuit(clock, clock);
  pursuit.begin("lost", "a");
  clock.advance(30);
  pursuit.inVain("a");
  pursuit.inVain("b");
  assert.equal([pursuit.reason, pursuit.from, pursuit.ms, pursuit.tried], ["lost", "a", 30, ["a", "b"]]);
  // Who takes it may still refuse it in its first event.
  pursuit.found();
  assert.equal(pursuit.tried, ["a", "b"]);
  pursuit.progressed();
  assert.equal(pursuit.tried, []);
  pursuit.inVain("c");
  clock.advance(limits.resumeMs);
  assert.equal(pursuit.tried, []);
});

test("it waits for one thing at a time", () => {
  const clock = manualClock();
  const pursuit = new Pursuit(clock, clock);
  const done: string[] = [];
  pursuit.after(10, () => done.push("first"));
  pursuit.after(20, () => done.push("second"));
  clock.advance(30);
  assert.equal(done, ["second"]);
  pursuit.untilAnswered(
    () => false,
    () => done.push("silent"),
  );
  clock.advance(limits.resumeAnswerMs - 1);
  pursuit.stop();
  clock.advance(10);
  assert.equal(done, ["second"]);
});

test("its time is over fifteen seconds after it was first tried, and not before it was", () => {
  const clock = manualClock();
  const pursuit = new Pursuit(clock, clock);
  clock.advance(60_000);
  assert.not(pursuit.isOver);
  assert.is(pursuit.leftMs, limits.resumeMs);
  assert.ok(pursuit.mayTry());
  clock.advance(1000);
  assert.is(pursuit.leftMs, limits.resumeMs - 1000);
  clock.advance(limits.resumeMs - 1000);
  assert.ok(pursuit.isOver);
  assert.not(pursuit.mayTry());
});

test("whoever has no upstream connection does not count, and the next is put off a little longer each time", () => {
  const pursuit = new Pursuit(manualClock(), manualClock());
  const pauses = [1, 2, 3, 4, 5].map(() => (pursuit.mayTry() ? pursuit.unsent() : -1));
  assert.equal(pauses, [0, 50, 100, 150, 200]);
});

test("that nothing new comes of it is remembered until something does", () => {
  const pursuit = new Pursuit(manualClock(), manualClock());
  pursuit.mayTry();
  pursuit.found();
  assert.ok(pursuit.isFruitless);
  pursuit.progressed();
  assert.not(pursuit.isFruitless);
});

test("a refusal holds for its time, or until somebody takes the watch", () => {
  const clock = manualClock();
  const pursuit = new Pursuit(clock, clock);
  assert.not(pursuit.isDeclined);
  pursuit.declined(2000);
  clock.advance(1999);
  assert.ok(pursuit.isDeclined);
  clock.advance(1);
  assert.not(pursuit.isDeclined);
  pursuit.declined(Number.POSITIVE_INFINITY);
  clock.advance(1e9);
  assert.ok(pursuit.isDeclined);
  pursuit.found();
  assert.not(pursuit.isDeclined);
});

test("each backend that does not serve the resource is remembered, and is no attempt, once", () => {
  const pursuit = new Pursuit(manualClock(), manualClock());
  for (const backend of ["a", "b", "b", "a", "b"]) {
    assert.ok(pursuit.mayTry());
    pursuit.unserved(backend);
  }
  assert.equal([pursuit.notServing, pursuit.endReason], [["a", "b"], "not_found"]);
  assert.not(pursuit.mayTry());
  pursuit.found();
  assert.equal([pursuit.notServing, pursuit.endReason], [[], "no_backend"]);
});

test("a version that is too old is remembered while it is searched for", () => {
  const pursuit = new Pursuit(manualClock(), manualClock());
  assert.not(pursuit.isExpired);
  assert.is(pursuit.endReason, "no_backend");
  pursuit.mayTry();
  pursuit.begin("lost", "a");
  pursuit.expired("b", undefined);
  pursuit.found();
  assert.ok(pursuit.isExpired);
  assert.equal([pursuit.reason, pursuit.refusal, pursuit.endReason], ["lost", undefined, "expired"]);
});

test("where that answers the client's own request, the search begins with it, and it is kept", () => {
  const clock = manualClock();
  const pursuit = new Pursuit(clock, clock);
  pursuit.expired("a", Buffer.from("410"));
  assert.ok(pursuit.mayTry());
  assert.equal([pursuit.reason, pursuit.from, String(pursuit.refusal)], ["expired", "a", "410"]);
  pursuit.found();
  clock.advance(limits.settledMs + 1);
  assert.ok(pursuit.mayTry(), "another incident");
  assert.is(pursuit.refusal, undefined);
});

test.run();
