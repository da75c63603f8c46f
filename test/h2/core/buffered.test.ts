import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Buffered } from "../../../src/h2/core/buffered.ts";

const test = suite("h2/core/buffered");

test("it is tight above half of its limit, and reports each addition above all of it", () => {
  const buffered = new Buffered(100);
  let told = 0;
  buffered.onOver = () => {
    told += 1;
  };
  buffered.add(50);
  assert.equal([buffered.isTight, told], [false, 0]);
  buffered.add(50);
  assert.equal([buffered.isTight, buffered.isOver, told], [true, false, 0]);
  buffered.add(1);
  assert.equal([buffered.isOver, told], [true, 1]);
  buffered.add(-60);
  assert.equal([buffered.bytes, buffered.isTight, told], [41, false, 1]);
});

test.run();
