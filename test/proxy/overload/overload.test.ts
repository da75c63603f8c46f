import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { loadOf, Overload } from "../../../src/proxy/overload/overload.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/overload");

type Kind = "plain" | "watch" | "long-running";

function scene(kinds: readonly Kind[], idleCount: number) {
  const entries: Entry[] = [];
  const journal = new Journal(manualClock());
  journal.subscribe((entry) => entries.push(entry));
  const gone: string[] = [];
  const idle = Array.from({ length: idleCount }, (_, at) => ({
    client: { address: `192.0.2.${at}` },
    drain: () => void gone.push(`idle ${at}`),
  }));
  const exchanges = kinds.map((kind, at) => ({
    order: { kind, at, auditId: String(at) },
    cut: () => void gone.push(`${kind} ${at}`),
  }));
  const collected: string[] = [];
  const overload = new Overload({
    journal,
    idle: () => idle,
    exchanges: () => exchanges,
    collect: () => void collected.push(overload.load),
  });
  return { overload, gone, entries, collected };
}

test("what is live of the heap says how short memory is, and it must ease before all is well (A26)", () => {
  assert.is(loadOf(0.84, "normal"), "normal");
  assert.is(loadOf(0.85, "normal"), "full");
  assert.is(loadOf(0.92, "full"), "crowded");
  assert.is(loadOf(0.97, "normal"), "critical");
  assert.is(loadOf(0.84, "critical"), "full");
  assert.is(loadOf(0.79, "full"), "normal");
});

test("full: nobody new, and nobody goes; it is told once (A26)", () => {
  const { overload, gone, entries } = scene(["plain"], 5);
  overload.look(0.86);
  overload.look(0.87);
  assert.is(overload.load, "full");
  assert.equal(gone, []);
  assert.is(entries.length, 1);
});

test("who was full looks again by itself, until all is well and once more; who was not does not (A26)", () => {
  const { overload, collected } = scene([], 0);
  overload.look(0.5);
  overload.beat();
  assert.equal(collected, []);
  overload.look(0.86);
  overload.beat();
  overload.beat();
  assert.equal(collected, ["full"], "one answer is waited for");
  overload.look(0.86);
  overload.beat();
  overload.look(0.3);
  // By V8 itself, before the next beat: it gives no pages back.
  overload.look(0.3);
  overload.beat();
  overload.look(0.3);
  overload.beat();
  assert.equal(collected, ["full", "full", "normal"]);
});

test("crowded: idle clients go, a part of them at each look, the latest first (A26)", () => {
  const { overload, gone } = scene(["watch"], 300);
  overload.look(0.93);
  assert.is(gone.length, 300 * limits.shedShare);
  assert.is(gone[0], "idle 0");
});

test("critical: requests end, the youngest first, and watches only when nothing else is left (A26)", () => {
  const all = scene(["watch", "plain", "long-running", "plain", "watch"], 0);
  all.overload.look(0.98);
  assert.equal(all.gone, ["plain 3", "plain 1"]);
  const some = scene(["watch", "long-running", "watch"], 0);
  some.overload.look(0.98);
  assert.equal(some.gone, ["long-running 1"]);
  const watches = scene(["watch", "watch"], 0);
  watches.overload.look(0.98);
  assert.equal(watches.gone, ["watch 1", "watch 0"]);
  assert.ok(watches.entries.some((entry) => entry.kind === "request.failed" && entry.code === "overload"));
});

test.run();
