import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { sliceLimits } from "../../../../src/base/slices.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import { type JsonObject, type Listing, pageOf } from "../../../../src/ops/admin/http/listing.ts";
import { countedClock, manualClock } from "../../../support/clock.ts";

const test = suite("ops/admin/http/listing");

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

test("a list has only the rows that belong to it", async () => {
  const tens = { ...some, has: ({ count }: Row): boolean => count === 10 };
  const outcome = await pageOf(tens, "limit=1", clock);
  assert.equal(
    typeof outcome === "string" ? outcome : [outcome["total"], outcome["matching"], outcome["items"]],
    [2, 2, ["Cc"]],
  );
});

const some = listing([
  { name: "b", count: 10 },
  { name: "a", count: 9 },
  { name: "Cc", count: 10 },
]);

const clock = manualClock();
const page = (query: string): Promise<JsonObject | string> => pageOf(some, query, clock);

const items = async (query: string): Promise<unknown> => {
  const outcome = await page(query);
  return typeof outcome === "string" ? outcome : outcome["items"];
};

test("a page is sorted, cut and counted", async () => {
  assert.equal(await page("limit=1&offset=1"), {
    kind: "RowList",
    total: 3,
    matching: 3,
    offset: 1,
    limit: 1,
    items: ["a"],
    groups: [],
  });
  assert.equal(await items("sort=-count&limit=2"), ["b", "Cc"]);
  assert.equal(await items("offset=7"), []);
});

test("filters must all fit, each by one of its values; q is part of any text", async () => {
  assert.equal(await items("count=10"), ["Cc", "b"]);
  assert.equal(await items("name=b&name=Cc&name=absent"), ["Cc", "b"]);
  assert.equal(await items("name=b&count=9&name=Cc"), []);
  assert.equal(await items("name=b&count=9&name=Cc&count=10"), ["Cc", "b"]);
  assert.equal(await items("count=10&name=b"), ["b"]);
  assert.equal(await items("q=c"), ["Cc"]);
  assert.equal(await items("q=1"), [], "not of a number");
});

test("the rows that match are counted by the values of a column, the most frequent value first", async () => {
  const groups = async (query: string): Promise<unknown> => {
    const outcome = await page(query);
    return typeof outcome === "string" ? outcome : outcome["groups"];
  };
  const tens = { value: "10", rows: 2 };
  assert.equal(await groups("group=count&limit=1"), [tens, { value: "9", rows: 1 }]);
  assert.equal(await groups("group=count&q=c"), [{ value: "10", rows: 1 }]);
  assert.match(
    String(await groups("group=constructor")),
    /^Cannot group by "constructor": columns are name, count/,
  );
});

test("rows may come later, as when they are counted in slices", async () => {
  const later = { ...some, rows: () => Promise.resolve(some.rows()) };
  const outcome = await pageOf(later, "limit=1", clock);
  assert.equal(typeof outcome === "string" ? outcome : [outcome["total"], outcome["items"]], [3, ["Cc"]]);
});

test("values beyond the limit are counted together", async () => {
  const { apiGroups, apiPageMost } = adminLimits;
  const rows = Array.from({ length: apiGroups + 5 }, (_, at) => ({ name: `n${at}`, count: at }));
  const outcome = await pageOf(listing(rows), "group=name", wallClock);
  const groups = typeof outcome === "string" ? [] : outcome["groups"];
  assert.ok(Array.isArray(groups));
  assert.equal([groups.length, groups[0]], [apiPageMost, { value: "", rows: 5 }]);
});

test("what is not understood is said, and nothing is guessed", async () => {
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
    assert.type(await items(query), "string", query);
});

test("a page of 50,000 rows costs milliseconds", async () => {
  const many = listing(
    Array.from({ length: 50_000 }, (_, index) => ({ name: `n-${index}`, count: (index * 7919) % 50_000 })),
  );
  await pageOf(many, "sort=-count", wallClock);
  const began = performance.now();
  const found = await pageOf(many, "sort=-count&q=n-1", wallClock);
  const tookMs = performance.now() - began;
  console.log(`figure: a page of 50,000 rows takes ${tookMs.toFixed(1)} ms`);
  assert.ok(typeof found !== "string" && tookMs < 1000, "generous: the machine may be busy");
});

test("a page of 50,000 rows has the first of them all, and no loop turn looks at all rows", async () => {
  const counted = countedClock();
  const perTurn = new Map<number, number>();
  const rows = Array.from({ length: 50_000 }, (_, index) => ({ index, name: `n-${index}` }));
  const rankOf = ({ index }: { readonly index: number }): number => (index * 7919) % 50_000;
  const many: Listing<(typeof rows)[number]> = {
    kind: "RowList",
    rows: () => rows,
    sort: "-rank",
    columns: {
      name: ({ name }) => name,
      rank: (row) => {
        perTurn.set(counted.turns, (perTurn.get(counted.turns) ?? 0) + 1);
        return rankOf(row);
      },
    },
    view: ({ name }) => name,
  };
  const byRank = rows.toSorted((one, other) => rankOf(one) - rankOf(other)).map(({ name }) => name);
  const found = rows.map(({ name }) => name).filter((name) => name.includes("n-77"));
  for (const [query, names] of [
    ["limit=20", byRank.toReversed().slice(0, 20)],
    ["limit=7&offset=30&sort=rank", byRank.slice(30, 37)],
    ["q=n-77&sort=-name", found.toSorted().toReversed().slice(0, adminLimits.apiPage)],
  ] as const) {
    perTurn.clear();
    const sliced = pageOf(many, query, counted);
    counted.turn();
    const outcome = await sliced;
    assert.equal(typeof outcome === "string" ? outcome : outcome["items"], names, query);
    const most = Math.max(0, ...perTurn.values());
    assert.ok(most <= sliceLimits.sliceEntries + 1, `${most} in one turn`);
  }
});

test.run();
