import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Block, giveBack, roomFor, Slabs } from "../../../src/h2/core/slabs.ts";

const test = suite("h2/core/slabs");
const MiB = 1 << 20;

const taken = (slabs: Slabs, count: number): Block[] => Array.from({ length: count }, () => slabs.take());

test("no two that are taken share a byte, and all of a slab is used before another is begun", () => {
  const slabs = new Slabs(16_384);
  const blocks = taken(slabs, 64);
  assert.is(slabs.bytes, MiB);
  for (const [at, { bytes }] of blocks.entries()) bytes.fill(at);
  for (const [at, { bytes }] of blocks.entries())
    assert.ok(bytes.length === 16_384 && bytes.every((octet) => octet === at));
  slabs.take();
  assert.is(slabs.bytes, 2 * MiB);
});

test("what was released is taken again, of the slab that was begun first", () => {
  const slabs = new Slabs(16_384);
  const blocks = taken(slabs, 65);
  const [first, last] = [blocks[0], blocks[64]];
  if (first === undefined || last === undefined) throw new Error("none taken");
  slabs.release(last);
  slabs.release(first);
  assert.is(slabs.take(), last, "the second has one block less than the first, and room");
  for (const block of taken(slabs, 63)) assert.is.not(block, last);
  assert.is(slabs.take(), first);
  assert.is(slabs.bytes, 2 * MiB);
});

/** Calls `shrink` until all empty slabs have been released. */
function shrunk(slabs: Slabs): void {
  for (let looks = 0; looks < 4; looks += 1) slabs.shrink();
}

test("what was empty from one look to the next is gone at once, without a collection, 64 MiB at a time", () => {
  const slabs = new Slabs(16_384);
  const before = process.memoryUsage().rss;
  for (const round of [1, 2, 3]) {
    const blocks = taken(slabs, 128 * 64);
    for (const { bytes } of blocks) bytes.fill(round);
    slabs.shrink();
    assert.ok(process.memoryUsage().rss - before > 100 * MiB);
    for (const block of blocks) slabs.release(block);
    slabs.shrink();
    assert.is(slabs.bytes, 128 * MiB, "it is empty since the last look only");
    slabs.shrink();
    assert.is(slabs.bytes, 64 * MiB);
    shrunk(slabs);
    assert.is(slabs.bytes, 0);
  }
  const grown = process.memoryUsage().rss - before;
  assert.ok(grown < 32 * MiB, `${grown >> 20} MiB stay`);
});

test("what is used between two looks, however shortly, is kept", () => {
  const slabs = new Slabs(16_384);
  for (let look = 0; look < 5; look += 1) {
    for (const block of taken(slabs, 3 * 64)) slabs.release(block);
    const blocks = taken(slabs, 3 * 64);
    for (const block of blocks) slabs.release(block);
    slabs.shrink();
    assert.is(slabs.bytes, 3 * MiB);
  }
});

test("one block that is still taken keeps its own slab and no other", () => {
  const slabs = new Slabs(4096);
  const blocks = taken(slabs, 20 * 256);
  for (const [at, { bytes }] of blocks.entries()) bytes.writeUInt32BE(at);
  const kept = blocks.filter((_, at) => at === 300 || at === 3000);
  for (const block of blocks) if (!kept.includes(block)) slabs.release(block);
  shrunk(slabs);
  assert.is(slabs.bytes, 2 * MiB);
  assert.equal(
    kept.map(({ bytes }) => bytes.readUInt32BE()),
    [300, 3000],
  );
  for (const block of kept) slabs.release(block);
  shrunk(slabs);
  assert.is(slabs.bytes, 0);
});

test("a block is never more than twice what is to lie in it, from 2 KiB on", () => {
  for (const [count, bytes] of [
    [2048, 4096],
    [4096, 4096],
    [4097, 8192],
    [8192, 8192],
    [8193, 16_384],
    [16_384, 16_384],
  ] as const) {
    const block = roomFor(count);
    assert.is(block.bytes.length, bytes);
    giveBack(block);
    assert.is(roomFor(count), block);
    giveBack(block);
  }
});

test.run();
