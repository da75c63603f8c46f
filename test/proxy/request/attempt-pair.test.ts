import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Buffered } from "../../../src/h2/core/buffered.ts";
import { classify } from "../../../src/kube/request-info.ts";
import { RequestObservers } from "../../../src/proxy/load/request-observer.ts";
import { AttemptPair } from "../../../src/proxy/request/attempt-pair.ts";
import { HeldResponse } from "../../../src/proxy/request/held-response.ts";
import type { Attempt } from "../../../src/upstream/pool/attempt.ts";
import { attemptOwner } from "../../support/attempt-owner.ts";

const test = suite("proxy/request/attempt-pair");

const request = {
  avoided: [],
  observers: new RequestObservers([]),
  info: classify("GET", "/api/v1/namespaces/a/pods/b"),
};
const refusal = (attempt: Attempt): HeldResponse => new HeldResponse(attempt, [], true, new Buffered(1_000));

test("of two that are asked the one that answers goes on, and the other is let go", () => {
  const attempts = new AttemptPair(attemptOwner({}), request);
  const first = attempts.ask("a");
  const hedge = attempts.hedge("b");
  assert.equal([attempts.hasTwo, attempts.backend, attempts.asked], [true, "a", ["a", "b"]]);
  assert.equal([attempts.otherThan(first), attempts.otherThan(hedge)], [hedge, first]);
  assert.is(attempts.prefer(hedge), first);
  assert.equal([attempts.first, attempts.hasTwo, attempts.backend], [hedge, false, "b"]);
});

test("never of more than two at a time", () => {
  const attempts = new AttemptPair(attemptOwner({}), request);
  attempts.ask("a");
  attempts.hedge("b");
  assert.is(attempts.hedge("c"), attempts.other);
  assert.equal(attempts.asked, ["a", "c"]);
});

test("without the first attempt the other goes on; without both none does, and both backends were asked in vain", () => {
  const attempts = new AttemptPair(attemptOwner({}), request);
  const first = attempts.ask("a");
  const hedge = attempts.hedge("b");
  assert.ok(attempts.goesOnWithout(first));
  assert.equal([attempts.first, attempts.backend], [hedge, "b"]);
  assert.not(attempts.goesOnWithout(hedge));
  assert.equal(attempts.tried, ["a", "b"]);
});

test("an attempt that waits for an upstream connection may give its place to another, and counts as asked in vain", () => {
  const attempts = new AttemptPair(attemptOwner({}), request);
  attempts.move(attempts.ask("a"), "b");
  attempts.move(attempts.hedge("c"), "d");
  assert.equal([attempts.first?.backend, attempts.other?.backend, attempts.tried], ["b", "d", ["a", "c"]]);
});

test("they are doubted when each is silent and none has refused", () => {
  const attempts = new AttemptPair(attemptOwner({}), request);
  const first = attempts.ask("a");
  assert.not(attempts.isDoubted);
  first.suspected();
  assert.ok(attempts.isDoubted);
  const hedge = attempts.hedge("b");
  assert.not(attempts.isDoubted);
  hedge.suspected();
  assert.ok(attempts.isDoubted);
  attempts.hold(refusal(hedge));
  assert.not(attempts.isDoubted);
});

test("when no attempt does better the one that refused is the first", () => {
  const attempts = new AttemptPair(attemptOwner({}), request);
  const first = attempts.ask("a");
  const hedge = attempts.hedge("b");
  const held = refusal(hedge);
  attempts.hold(held);
  assert.equal([attempts.heldOf(first), attempts.heldOf(hedge)], [undefined, held]);
  assert.is(attempts.takeHeld(), held);
  assert.equal([attempts.first, attempts.other, attempts.isHolding], [hedge, first, false]);
});

test("a held response goes with its attempt", () => {
  const attempts = new AttemptPair(attemptOwner({}), request);
  const first = attempts.ask("a");
  attempts.hold(refusal(attempts.hedge("b")));
  attempts.prefer(first);
  assert.not(attempts.isHolding);
  attempts.hold(refusal(attempts.hedge("c")));
  attempts.goesOnWithout(first);
  assert.ok(attempts.isHolding);
  attempts.cancel(false);
  assert.not(attempts.isHolding);
});

test.run();
