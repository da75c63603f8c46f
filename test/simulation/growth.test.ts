/** Tests of the code that finds growth in long runs. long/day.test.ts uses it for the whole proxy. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { grownSince } from "./watches/growth.ts";
import { tablesOf } from "./watches/tables.ts";

const test = suite("simulation/growth");

class Inner {
  readonly #seen = new Set<string>();
  readonly names: string[] = [];

  add(name: string): void {
    this.#seen.add(name);
    if (this.#seen.size % 2 === 0) this.names.push(name);
  }
}

class Outer {
  readonly #inner = new Map<string, Inner>();

  inner(name: string): Inner {
    const known = this.#inner.get(name) ?? new Inner();
    this.#inner.set(name, known);
    return known;
  }
}

test("tables are found in private fields and in the entries of tables; the largest of a class and field counts", () => {
  const outer = new Outer();
  for (const name of ["x", "y", "z"]) outer.inner("a").add(name);
  outer.inner("b").add("x");
  const found = tablesOf({ outer }, () => false);
  assert.equal(
    [...found],
    [
      ["Outer.#inner", 2],
      ["Inner.names", 1],
      ["Inner.#seen", 3],
    ],
  );
});

test("an outside object is not looked into, and an object in a circle only once", () => {
  const outside = new Inner();
  const circle: { readonly outside: Inner; readonly list: number[]; self?: object } = { outside, list: [1] };
  circle.self = circle;
  assert.equal([...tablesOf(circle, (object) => object === outside)], [["list", 1]]);
});

test("of many entries, only the oldest are looked into", () => {
  const table = new Map<number, Inner>();
  for (let count = 0; count < 20; count += 1) table.set(count, new Inner());
  table.get(0)?.add("old");
  table.get(19)?.add("new 1");
  table.get(19)?.add("new 2");
  assert.is(tablesOf({ table }, () => false).get("Inner.#seen"), 1);
});

function sizes(size: number, liveBytes?: number) {
  return { tables: new Map([["Pool.table", size]]), liveBytes };
}

test("a table may grow by 5 % and 24 entries, or up to its own limit", () => {
  assert.equal(grownSince(sizes(100), sizes(129), {}), []);
  assert.equal(grownSince(sizes(100), sizes(130), {}), ["Pool.table has 130 entries instead of 100"]);
  assert.equal(grownSince(sizes(100), sizes(130), { "Pool.table": 130 }), []);
  assert.equal(grownSince(sizes(100), sizes(131), { "Pool.table": 130 }).length, 1);
  assert.equal(grownSince({ tables: new Map(), liveBytes: undefined }, sizes(25), {}), []);
});

test("the memory may grow by 5 % and 16 MiB", () => {
  const mostBytes = 1.05e9 + 16 * 1024 * 1024;
  assert.equal(grownSince(sizes(1, 1e9), sizes(1, mostBytes), {}), []);
  assert.equal(grownSince(sizes(1, 1e9), sizes(1, mostBytes + 1), {}), [
    "1067 MB are in use instead of 1000 MB",
  ]);
});

test.run();
