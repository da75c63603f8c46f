import { suite } from "uvu";
import * as assert from "uvu/assert";
import { standing } from "../../../src/ops/page/header.js";

const test = suite("ops/page/header");

test("the worst state is told, and how many are in it", () => {
  const of = (...states: string[]): string => standing(states.map((state) => ({ state }))).text;
  assert.is(of("ready", "ready"), "all 2 backends ready");
  assert.is(of("ready", "dead", "suspect"), "1 of 3 backends dead");
  assert.is(of("suspect", "suspect"), "2 of 2 backends suspect");
  assert.is(of(), "no backends");
});

test.run();
