import { suite } from "uvu";
import * as assert from "uvu/assert";
import { h2Limits } from "../../../src/h2/core/limits.ts";
import {
  giveBackOutput,
  largestOutputBytes,
  outputBuffer,
  shrinkOutput,
  unusedOutputBytes,
} from "../../../src/h2/core/output-buffers.ts";

const test = suite("h2/core/output-buffers");

const taken = (count: number, bytes: number): Buffer[] =>
  Array.from({ length: count }, () => outputBuffer(bytes));

function giveBackAll(buffers: readonly Buffer[]): void {
  for (const buffer of buffers) giveBackOutput(buffer);
}

/** Each call of `shrinkOutput` drops what was unused since the one before. */
test.before.each(() => {
  shrinkOutput();
  shrinkOutput();
  assert.is(unusedOutputBytes(), 0);
});

test("a buffer is the smallest of its three sizes that has the room", () => {
  const sizes = [1, 4096, 4097, 16_384, 16_385, largestOutputBytes].map(
    (count) => outputBuffer(count).length,
  );
  assert.equal(sizes, [4096, 4096, 16_384, 16_384, 65_536, 65_536]);
});

test("thousands of buffers of one turn are used again in the next", () => {
  const first = new Set(taken(5000, 10_000));
  giveBackAll(Array.from(first));
  assert.ok(unusedOutputBytes() <= h2Limits.unusedOutputBytes);
  const again = taken(4000, 10_000).filter((buffer) => first.has(buffer));
  assert.is(again.length, 4000);
});

test("unused buffers have a limit", () => {
  giveBackAll(taken(1100, largestOutputBytes));
  assert.is(unusedOutputBytes(), h2Limits.unusedOutputBytes);
});

test("shrinkOutput keeps the buffers that were used since its last call, and drops the others", () => {
  giveBackAll(taken(100, 4096));
  shrinkOutput();
  assert.is(unusedOutputBytes(), 100 * 4096, "all were used since the last call");
  giveBackAll(taken(30, 4096));
  shrinkOutput();
  assert.is(unusedOutputBytes(), 30 * 4096);
  shrinkOutput();
  assert.is(unusedOutputBytes(), 0);
});

test.run();
