import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Buffered } from "../../../src/h2/core/buffered.ts";
import { Legs } from "../../../src/proxy/request/legs.ts";
import { Refusal } from "../../../src/proxy/upstream/refusal.ts";
import { legOwner } from "../../support/leg-owner.ts";

const test = suite("proxy/legs");

const refusal = (): Refusal => new Refusal([], true, new Buffered(1_000));

test("of two that are asked the one that answers goes on, and the other is let go", () => {
  const legs = new Legs(legOwner({}));
  const first = legs.ask("a");
  const hedge = legs.hedge("b");
  assert.equal([legs.hasTwo, legs.backend, legs.asked], [true, "a", ["a", "b"]]);
  assert.equal([legs.otherThan(first), legs.otherThan(hedge)], [hedge, first]);
  assert.is(legs.prefer(hedge), first);
  assert.equal([legs.first, legs.hasTwo, legs.backend], [hedge, false, "b"]);
});

test("never of more than two at a time", () => {
  const legs = new Legs(legOwner({}));
  legs.ask("a");
  legs.hedge("b");
  assert.is(legs.hedge("c"), legs.other);
  assert.equal(legs.asked, ["a", "c"]);
});

test("without the one the other goes on; without both nobody does, and both were asked in vain", () => {
  const legs = new Legs(legOwner({}));
  const first = legs.ask("a");
  const hedge = legs.hedge("b");
  assert.ok(legs.goesOnWithout(first));
  assert.equal([legs.first, legs.backend], [hedge, "b"]);
  assert.not(legs.goesOnWithout(hedge));
  assert.equal(legs.tried, ["a", "b"]);
});

test("whoever waits for an upstream connection may give its place to another, and was asked in vain", () => {
  const legs = new Legs(legOwner({}));
  legs.move(legs.ask("a"), "b");
  legs.move(legs.hedge("c"), "d");
  assert.equal([legs.first?.backend, legs.other?.backend, legs.tried], ["b", "d", ["a", "c"]]);
});

test("they are doubted when each is silent and none has refused", () => {
  const legs = new Legs(legOwner({}));
  const first = legs.ask("a");
  assert.not(legs.isDoubted);
  first.suspected();
  assert.ok(legs.isDoubted);
  const hedge = legs.hedge("b");
  assert.not(legs.isDoubted);
  hedge.suspected();
  assert.ok(legs.isDoubted);
  hedge.keepRefusal(refusal());
  assert.not(legs.isDoubted);
});

test("when nobody does better the one that refused is heard", () => {
  const legs = new Legs(legOwner({}));
  const first = legs.ask("a");
  const hedge = legs.hedge("b");
  hedge.keepRefusal(refusal());
  legs.settle();
  assert.is(legs.first, hedge);
  first.keepRefusal(refusal());
  legs.settle();
  assert.is(legs.first, hedge);
});

test.run();
