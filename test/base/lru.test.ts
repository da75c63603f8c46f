import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Lru } from "../../src/base/lru.ts";

const test = suite("base/lru");

test("beyond the limit the oldest entry is dropped, and setting one again makes it the newest", () => {
  const lru = new Lru<string, number>(3);
  for (const key of ["a", "b", "c"]) lru.set(key, 1);
  lru.set("a", 2).set("d", 1);
  assert.equal([...lru.keys()], ["c", "a", "d"]);
  assert.equal([lru.get("a"), lru.get("b"), lru.size], [2, undefined, 3]);
});

test("reading an entry leaves it as old as it is, and one that was deleted makes room", () => {
  const lru = new Lru<number, true>(2);
  lru.set(1, true).set(2, true);
  lru.get(1);
  lru.set(3, true);
  assert.equal([...lru.keys()], [2, 3]);
  assert.equal([lru.delete(2), lru.delete(2)], [true, false]);
  lru.set(4, true);
  assert.equal([...lru.keys()], [3, 4]);
});

test.run();
