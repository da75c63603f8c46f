import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import {
  DynamicTable,
  staticIndexByKey,
  staticIndexByName,
  staticTable,
} from "../../../src/h2/hpack/hpack-table.ts";
import { seeded } from "../../support/random.ts";

const test = suite("h2/hpack/hpack-table");

/** An entry whose size by RFC 7541 §4.1 is exactly `size` bytes. */
function entry(name: string, size: number): Field {
  return new Field(name, "v".repeat(size - 32 - name.length));
}

test("the static table is appendix A's, from index 1", () => {
  assert.is(staticTable.length, 62);
  assert.is(staticTable[0], undefined);
  for (const [index, name, value] of [
    [1, ":authority", ""],
    [2, ":method", "GET"],
    [16, "accept-encoding", "gzip, deflate"],
    [28, "content-length", ""],
    [58, "user-agent", ""],
    [61, "www-authenticate", ""],
  ] as const)
    assert.equal([staticTable[index]?.name, staticTable[index]?.value], [name, value]);
});

test("a name or a whole field is found at its first index", () => {
  assert.is(staticIndexByName.get(":status"), 8);
  assert.is(staticIndexByKey.get(new Field(":status", "204").key), 9);
  assert.is(staticIndexByKey.get(new Field(":status", "201").key), undefined);
  assert.is(staticIndexByName.get("__proto__"), undefined);
});

test("the newest entry is at 0, and nothing lies beyond the oldest", () => {
  const table = new DynamicTable(200);
  assert.is(table.at(0), undefined);
  const [a, b] = [entry("a", 100), entry("b", 100)];
  table.add(a);
  table.add(b);
  assert.equal([table.at(0), table.at(1), table.at(2), table.at(-1)], [b, a, undefined, undefined]);
});

test("an entry evicts the oldest until it fits, and one that fits never is not kept and empties the table", () => {
  const gone: string[] = [];
  const table = new DynamicTable(200, { delete: (key) => gone.push(key.slice(0, 1)) > 0 });
  for (const name of ["a", "b", "c", "d"]) table.add(entry(name, 50));
  table.add(entry("e", 120));
  assert.equal(gone, ["a", "b", "c"]);
  table.add(entry("f", 201));
  assert.equal([gone, table.at(0)], [["a", "b", "c", "d", "e"], undefined]);
  table.add(entry("g", 200));
  assert.is(table.at(0)?.name, "g");
});

test("a table that shrinks evicts at once; one of no size keeps nothing", () => {
  const table = new DynamicTable(4096);
  for (const name of ["a", "b", "c"]) table.add(entry(name, 100));
  table.resize(200);
  assert.equal([table.at(1)?.name, table.at(2)], ["b", undefined]);
  table.resize(0);
  table.add(entry("d", 33));
  assert.is(table.at(0), undefined);
});

test("through random additions and sizes it holds what a plain array would", () => {
  const random = seeded(41);
  const table = new DynamicTable(4096);
  let model: Field[] = [];
  let limit = 4096;
  const trim = (): void => {
    while (model.reduce((sum, field) => sum + field.size, 0) > limit) model = model.slice(0, -1);
  };
  for (let step = 0; step < 5000; step++) {
    if (random.chance(0.02)) {
      limit = random.below(4097);
      table.resize(limit);
    } else {
      const field = entry("n", 33 + random.below(random.chance(0.1) ? 4500 : 60));
      table.add(field);
      model = [field, ...model];
    }
    trim();
    assert.is(table.at(0), model[0]);
    assert.is(table.at(model.length - 1), model.at(-1));
    assert.is(table.at(model.length), undefined);
    const middle = random.below(model.length + 1);
    assert.is(table.at(middle), model[middle]);
  }
});

test.run();
