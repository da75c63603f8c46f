import { suite } from "uvu";
import * as assert from "uvu/assert";
import { AccountedBuffer, Buffered } from "../../../src/h2/core/buffered.ts";
import { takenBlocks } from "../../../src/h2/core/slabs.ts";

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

const textOf = (held: AccountedBuffer): string => held.joined().toString("latin1");

test("bytes that arrive one by one are kept in order and counted, until they are dropped", () => {
  const buffered = new Buffered(1000);
  const held = new AccountedBuffer(buffered);
  const chunk = Buffer.from("abcdefgh");
  for (let at = 0; at < chunk.length; at += 1) held.add(chunk, at, at + 1);
  chunk.fill(0);
  assert.equal([held.length, buffered.bytes, textOf(held)], [8, 8, "abcdefgh"]);
  assert.is(held.joined(Buffer.from("-ijk-"), 1, 4).toString(), "abcdefghijk");
  held.drop();
  assert.equal([held.length, buffered.bytes, textOf(held)], [0, 0, ""]);
});

test("single bytes fill whole blocks, which go back once", () => {
  const before = takenBlocks();
  const held = new AccountedBuffer(new Buffered(1e9));
  const chunk = Buffer.from(Array.from({ length: 10_000 }, (_, index) => index % 251));
  for (let at = 0; at < chunk.length; at += 1) held.add(chunk, at, at + 1);
  // Blocks for one byte have 4 KiB.
  assert.is(takenBlocks(), before + 3);
  assert.ok(held.joined().equals(chunk));
  held.drop();
  held.drop();
  assert.is(takenBlocks(), before);
});

test("a chunk that is larger than a block is kept in several, and moved in order", () => {
  const before = takenBlocks();
  const buffered = new Buffered(1e9);
  const held = new AccountedBuffer(buffered);
  const chunk = Buffer.from(Array.from({ length: 40_000 }, (_, index) => index % 251));
  held.add(chunk, 0, chunk.length);
  const moved: Buffer[] = [];
  const lasts: boolean[] = [];
  held.moveTo((bytes, isLast) => {
    assert.equal([held.length, buffered.bytes], [0, 0]);
    moved.push(Buffer.from(bytes));
    lasts.push(isLast);
  });
  assert.ok(Buffer.concat(moved).equals(chunk));
  assert.equal([lasts, takenBlocks()], [[false, false, true], before]);
});

test("a few bytes take no block, however they arrive, and never more than twice their number", () => {
  const before = takenBlocks();
  const held = new AccountedBuffer(new Buffered(1e9));
  const chunk = Buffer.from(Array.from({ length: 2048 }, (_, index) => index % 251));
  for (let at = 0; at < 2047; at += 1) held.add(chunk, at, at + 1);
  assert.is(takenBlocks(), before);
  held.add(chunk, 2047, 2048);
  assert.is(takenBlocks(), before + 1);
  assert.ok(held.joined().equals(chunk));
  held.drop();
  held.add(chunk, 0, 2000);
  held.add(chunk, 2000, 2048);
  assert.is(takenBlocks(), before + 1);
  let calls = 0;
  held.each((bytes, isLast) => {
    calls += 1;
    assert.equal([bytes.equals(chunk), isLast], [true, true]);
  });
  held.drop();
  assert.equal([calls, takenBlocks()], [1, before]);
});

test("if the user of moved bytes throws, all blocks go back, each once", () => {
  for (const failing of [1, 2, 3]) {
    const before = takenBlocks();
    const buffered = new Buffered(1e9);
    const held = new AccountedBuffer(buffered);
    held.add(Buffer.alloc(40_000), 0, 40_000);
    let used = 0;
    const use = (): void => {
      used += 1;
      if (used === failing) throw new Error("thrown by the test");
    };
    assert.throws(() => held.moveTo(use), "thrown by the test");
    held.drop();
    assert.equal([used, buffered.bytes, takenBlocks()], [failing, 0, before]);
  }
});

test("after its bytes were dropped, no block is read that may have another user", () => {
  const held = new AccountedBuffer(new Buffered(1e9));
  held.add(Buffer.alloc(40_000), 0, 40_000);
  let used = 0;
  held.each(() => {
    used += 1;
    held.drop();
  });
  assert.is(used, 1);
});

test.run();
