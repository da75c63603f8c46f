import { suite } from "uvu";
import * as assert from "uvu/assert";
import { StreamTable } from "../../../src/h2/session/stream-table.ts";
import { seeded } from "../../support/random.ts";

const test = suite("h2/session/stream-table");

test("streams are found by their ids, oldest first when all are asked for", () => {
  const table = new StreamTable<{ readonly id: number }>();
  for (const id of [9, 1, 2 ** 31 - 1, 17, 33]) table.add({ id });
  table.delete(17);
  table.delete(17);
  assert.equal([table.get(33)?.id, table.get(17), table.get(3), table.size], [33, undefined, undefined, 4]);
  assert.equal(
    table.all().map(({ id }) => id),
    [1, 9, 33, 2 ** 31 - 1],
  );
  const visited: number[] = [];
  table.visit(({ id }) => visited.push(id));
  assert.equal(
    visited.toSorted((a, b) => a - b),
    [1, 9, 33, 2 ** 31 - 1],
  );
});

test("a stream that ends while all are visited is no trouble", () => {
  const table = new StreamTable<{ readonly id: number }>();
  for (let id = 1; id < 200; id += 2) table.add({ id });
  for (const { id } of table.all()) table.delete(id);
  assert.equal([table.size, table.all()], [0, []]);
});

test("after any adding and deleting it holds what a Map holds", () => {
  const random = seeded(7);
  for (let round = 0; round < 200; round += 1) {
    const table = new StreamTable<{ readonly id: number }>();
    const map = new Map<number, { readonly id: number }>();
    for (let step = 0; step < 200; step += 1) {
      // These ids have few home slots in a small table. Some of those are the last slots, from which probing wraps to
      // the first.
      const id = 1 + 2 * (16 * random.below(4) + 12 + random.below(6));
      if (map.delete(id)) table.delete(id);
      else {
        const stream = { id };
        map.set(id, stream);
        table.add(stream);
      }
      assert.is(table.size, map.size);
    }
    for (let id = 1; id < 200; id += 2) assert.is(table.get(id), map.get(id));
  }
});

test.run();
