import { suite } from "uvu";
import * as assert from "uvu/assert";
import { sliceLimits } from "../../../src/base/slices.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { HeapLoad, heapLimits, LoadShedding, loadOf } from "../../../src/proxy/overload/load-shedding.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/overload/load-shedding");

type Kind = "plain" | "watch" | "long-running";

function scene(kinds: readonly Kind[], idleCount: number) {
  const entries: Entry[] = [];
  const turns: (() => void)[] = [];
  const clock = { ...manualClock(), soon: (run: () => void) => void turns.push(run) };
  const journal = new Journal(clock);
  journal.subscribe((entry) => entries.push(entry));
  const gone: string[] = [];
  const idle = Array.from({ length: idleCount }, (_, at) => ({
    client: { address: `192.0.2.${at}` },
    drain: () => void gone.push(`idle ${at}`),
  }));
  const exchanges = kinds.map((kind, at) => ({
    context: { kind, at, auditId: String(at) },
    isEnded: false,
    cut: () => void gone.push(`${kind} ${at}`),
  }));
  const collected: string[] = [];
  const overload = new LoadShedding({
    clock,
    journal,
    load: new HeapLoad(),
    idle: () => idle,
    exchanges: () => exchanges,
    collect: () => void collected.push(overload.load),
  });
  return { overload, gone, entries, collected, turns, exchanges };
}

test("what is live of the heap says how short memory is, and it must ease before all is well (A26)", () => {
  assert.is(loadOf(0.84, "normal"), "normal");
  assert.is(loadOf(0.85, "normal"), "full");
  assert.is(loadOf(0.92, "full"), "crowded");
  assert.is(loadOf(0.97, "normal"), "critical");
  assert.is(loadOf(0.84, "critical"), "full");
  assert.is(loadOf(0.79, "full"), "normal");
});

test("of 50,000 requests the youngest tenth ends a slice in each loop turn, once, but those that are over by then", () => {
  const { overload, gone, turns, exchanges } = scene(
    Array.from({ length: 50_000 }, (): Kind => "watch"),
    0,
  );
  overload.look({ share: 0.99, residentBytes: 0 });
  overload.look({ share: 0.99, residentBytes: 0 });
  for (const exchange of exchanges.slice(-1000)) exchange.isEnded = true;
  const counts = [gone.length];
  for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) {
    turn();
    counts.push(gone.length);
  }
  const steps = counts.slice(1).map((count, index) => count - (counts[index] ?? 0));
  assert.ok(Math.max(...steps) <= sliceLimits.sliceEntries, String(Math.max(...steps)));
  assert.equal([gone.length, gone[0], gone.at(-1)], [4000, "watch 45000", "watch 48999"]);
});

test("full: no new client is let in, and none is sent away; it is reported once (A26)", () => {
  const { overload, gone, entries } = scene(["plain"], 5);
  overload.look({ share: 0.86, residentBytes: 0 });
  overload.look({ share: 0.87, residentBytes: 0 });
  assert.is(overload.load, "full");
  assert.equal(gone, []);
  assert.is(entries.length, 1);
});

test("a heap that was full is looked at again, until all is well and once more; one that was not is not (A26)", () => {
  const { overload, collected } = scene([], 0);
  overload.look({ share: 0.5, residentBytes: 0 });
  overload.beat();
  assert.equal(collected, []);
  overload.look({ share: 0.86, residentBytes: 0 });
  overload.beat();
  overload.beat();
  assert.equal(collected, ["full"], "one answer is waited for");
  overload.look({ share: 0.86, residentBytes: 0 });
  overload.beat();
  overload.look({ share: 0.3, residentBytes: 0 });
  // This second look stands for a collection by V8 itself before the next beat. Such a collection returns no pages to
  // the kernel.
  overload.look({ share: 0.3, residentBytes: 0 });
  overload.beat();
  overload.look({ share: 0.3, residentBytes: 0 });
  overload.beat();
  assert.equal(collected, ["full", "full", "normal"]);
});

test("crowded: idle clients go, a part of them at each look, the latest first (A26)", () => {
  const { overload, gone } = scene(["watch"], 300);
  overload.look({ share: 0.93, residentBytes: 0 });
  assert.is(gone.length, 300 * heapLimits.shedShare);
  assert.is(gone[0], "idle 0");
});

test("critical: requests end, those that began last, and watches only when nothing else is left (A26)", () => {
  const all = scene(["watch", "plain", "long-running", "plain", "watch"], 0);
  all.overload.look({ share: 0.98, residentBytes: 0 });
  assert.equal(all.gone, ["plain 1", "plain 3"]);
  const some = scene(["watch", "long-running", "watch"], 0);
  some.overload.look({ share: 0.98, residentBytes: 0 });
  assert.equal(some.gone, ["long-running 1"]);
  const watches = scene(["watch", "watch"], 0);
  watches.overload.look({ share: 0.98, residentBytes: 0 });
  assert.equal(watches.gone, ["watch 0", "watch 1"]);
  const many = scene(
    Array.from({ length: 900 }, (): Kind => "watch"),
    0,
  );
  many.overload.look({ share: 0.98, residentBytes: 0 });
  assert.equal([many.gone.length, many.gone[0], many.gone.at(-1)], [90, "watch 810", "watch 899"]);
  assert.ok(watches.entries.some((entry) => entry.kind === "request.failed" && entry.code === "overload"));
});

function releases() {
  const clock = manualClock();
  let count = 0;
  const overload = new LoadShedding({
    clock,
    journal: new Journal(clock),
    load: new HeapLoad(),
    idle: () => [],
    exchanges: () => [],
    collect: () => void (count += 1),
  });
  /**
   * Reports, one after the other, collections after which so many MiB are resident. Returns how often the heap's free
   * pages were returned to the kernel so far.
   */
  const after = (...residentMiB: readonly number[]): number => {
    for (const each of residentMiB) {
      overload.look({ share: 0, residentBytes: each * 2 ** 20 });
      overload.beat();
    }
    return count;
  };
  return { clock, after };
}

test("a heap that is less than half of what it was has its pages go back, from 48 MiB on", () => {
  assert.is(releases().after(40, 80, 40), 0);
  assert.is(releases().after(40, 119, 50), 1);
  assert.is(releases().after(600, 301), 0);
  assert.is(releases().after(600, 299), 1);
});

test("once for each time that it was full, and once a minute", () => {
  const { clock, after } = releases();
  assert.is(after(200, 40), 1);
  assert.is(after(40, 41), 1, "what was full is full no more");
  assert.is(after(200, 40), 1, "too early");
  clock.advance(heapLimits.heapPagesMs);
  assert.is(after(40), 2, "late, but not forgotten");
});

test.run();
