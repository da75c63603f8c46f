import { suite } from "uvu";
import * as assert from "uvu/assert";
import { WorkerTotals } from "../../../src/fleet/reports/worker-totals.ts";
import type { Question } from "../../../src/fleet/workers/messages.ts";
import { type Page, pagesOf } from "../../../src/ops/admin/http/listing.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("fleet/reports/worker-totals");

function totalsOf(answers: readonly unknown[], snapshots: readonly unknown[] = []): WorkerTotals {
  return new WorkerTotals({ snapshots, ask: () => Promise.resolve(answers), onEnded: () => {} });
}

type Row = { readonly name: string; readonly size: number };

function pageOf(rows: readonly Row[]): Page {
  return pagesOf<Row>(
    {
      kind: "RowList",
      rows: () => rows,
      columns: { name: ({ name }) => name, size: ({ size }) => size },
      sort: "-size",
      view: ({ name }) => name,
    },
    manualClock(),
  );
}

/** Returns the page of all rows, and the page that the parent process merges from the same rows in two workers. */
async function both(query: string): Promise<readonly [unknown, unknown]> {
  const rows = Array.from({ length: 57 }, (_none, at) => ({
    name: `row-${at % 10}`,
    size: (at * 7919) % 101,
  }));
  const parts = [
    pageOf(rows.filter((_row, at) => at % 3 === 0)),
    pageOf(rows.filter((_row, at) => at % 3 > 0)),
  ];
  const totals = new WorkerTotals({
    snapshots: [],
    ask: (question: Question) =>
      Promise.all(question.of === "page" ? parts.map((part) => part.readFirst(question.query)) : []),
    onEnded: () => {},
  });
  const merged = totals.pagesOf(new Map([["watches", pageOf([])]])).get("watches");
  return [await pageOf(rows).read(query), await merged?.read(query)];
}

test("a list is the same page by page, whether its rows are in one process or in several", async () => {
  for (const query of [
    "",
    "limit=10",
    "limit=10&offset=30",
    "limit=5&offset=55",
    "sort=size",
    "name=row-3",
    "q=row-4",
    "group=name",
  ]) {
    const [whole, merged] = await both(query);
    assert.equal(merged, whole, query);
  }
});

test("a query that is wrong is refused as ever", async () => {
  const [whole, merged] = await both("sort=weight");
  assert.type(whole, "string");
  assert.equal(merged, whole);
});

test("time and memory of workers are added, and the longest delay counts", () => {
  const monitor = { cpuMs: 5, rssBytes: 100, eventLoopDelayMs: 3 };
  const totals = totalsOf([], [{ monitor }, { monitor: { ...monitor, eventLoopDelayMs: 9 } }, undefined]);
  assert.equal(totals.monitored, { cpuMs: 10, rssBytes: 200, eventLoopDelayMs: 9 });
});

test.run();
