import { suite } from "uvu";
import * as assert from "uvu/assert";
import { adminLimits } from "../../../src/admin/http/limits.ts";
import { type Listing, pageOf, slicedPageOf } from "../../../src/admin/http/listing.ts";
import { sliceLimits } from "../../../src/base/slices.ts";
import { countedClock } from "../../support/clock.ts";

const test = suite("admin/http/listing");

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
    `limit=${adminLimits.apiPageMost + 1}`,
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

test("a page of 50,000 rows is the same when it is made in slices, and no loop turn looks at all rows", async () => {
  const clock = countedClock();
  const perTurn = new Map<number, number>();
  const rows = Array.from({ length: 50_000 }, (_, index) => ({ index, name: `n-${index}` }));
  const many: Listing<(typeof rows)[number]> = {
    kind: "RowList",
    rows: () => rows,
    sort: "-rank",
    columns: {
      name: ({ name }) => name,
      rank: ({ index }) => {
        perTurn.set(clock.turns, (perTurn.get(clock.turns) ?? 0) + 1);
        return (index * 7919) % 50_000;
      },
    },
    view: ({ name }) => name,
  };
  for (const query of ["limit=20", "limit=7&offset=30&sort=rank", "q=n-77&sort=-name"]) {
    const page = pageOf(many, query);
    perTurn.clear();
    const sliced = slicedPageOf(many, query, clock);
    clock.turn();
    assert.equal(await sliced, page, query);
    const most = Math.max(0, ...perTurn.values());
    assert.ok(most <= sliceLimits.sliceEntries + 1, `${most} in one turn`);
  }
  assert.equal(pageOf(many, "limit=3"), {
    kind: "RowList",
    total: 50_000,
    matching: 50_000,
    offset: 0,
    limit: 3,
    items: [49_999, 49_998, 49_997].map(
      (rank) => `n-${rows.findIndex(({ index }) => (index * 7919) % 50_000 === rank)}`,
    ),
  });
  assert.is(await slicedPageOf(many, "limit=x", clock), pageOf(many, "limit=x"));
});

test.run();
