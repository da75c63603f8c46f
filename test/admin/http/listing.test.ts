import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Listing, pageOf } from "../../../src/admin/http/listing.ts";
import { limits } from "../../../src/limits.ts";

const test = suite("admin/listing");

type Row = { readonly name: string; readonly count: number };

function listing(rows: readonly Row[]): Listing<Row> {
  return {
    kind: "RowList",
    rows: () => rows,
    sort: "name",
    columns: { name: ({ name }) => name, count: ({ count }) => count },
    view: ({ name }) => name,
  };
}

const some = listing([
  { name: "b", count: 10 },
  { name: "a", count: 9 },
  { name: "Cc", count: 10 },
]);

const items = (query: string): unknown => {
  const page = pageOf(some, query);
  return typeof page === "string" ? page : page["items"];
};

test("a page is sorted, cut and counted", () => {
  assert.equal(pageOf(some, "limit=1&offset=1"), {
    kind: "RowList",
    total: 3,
    matching: 3,
    offset: 1,
    limit: 1,
    items: ["a"],
  });
  assert.equal(items("sort=-count&limit=2"), ["b", "Cc"]);
  assert.equal(items("offset=7"), []);
});

test("filters must all fit; q is part of any text", () => {
  assert.equal(items("count=10"), ["Cc", "b"]);
  assert.equal(items("count=10&name=b"), ["b"]);
  assert.equal(items("q=c"), ["Cc"]);
  assert.equal(items("q=1"), [], "not of a number");
});

test("what is not understood is said, and nothing is guessed", () => {
  for (const query of [
    "limit=0",
    "limit=x",
    `limit=${limits.apiPageMost + 1}`,
    "offset=-1",
    "offset=1e9",
    "sort=x",
    "sort=__proto__",
    "x=1",
    "constructor=1",
  ])
    assert.type(items(query), "string", query);
});

test("a page of 50,000 rows costs milliseconds", () => {
  const many = listing(
    Array.from({ length: 50_000 }, (_, index) => ({ name: `n-${index}`, count: (index * 7919) % 50_000 })),
  );
  pageOf(many, "sort=-count");
  const began = performance.now();
  const page = pageOf(many, "sort=-count&q=n-1");
  const tookMs = performance.now() - began;
  console.log(`figure: a page of 50,000 rows takes ${tookMs.toFixed(1)} ms`);
  assert.ok(typeof page !== "string" && tookMs < 1000, "generous: the machine may be busy");
});

test.run();
