import { suite } from "uvu";
import * as assert from "uvu/assert";
import { guarded } from "../../src/events/guarded-clock.ts";
import { type Entry, Journal } from "../../src/events/journal.ts";
import { manualClock } from "../support/clock.ts";

const test = suite("events/guarded-clock");

test("a callback that throws is journaled, and costs nothing that is due beside it (D10)", () => {
  const manual = manualClock();
  const journal = new Journal(manual);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const clock = guarded(manual, journal);
  const ran: string[] = [];
  const fail = (): never => {
    throw new Error("a bug");
  };
  clock.after(10, fail);
  clock.after(10, () => ran.push("timer"));
  clock.soon(fail);
  clock.soon(() => ran.push("turn"));
  manual.advance(10);
  assert.equal(ran, ["turn", "timer"]);
  const entry = { kind: "internal.error", scope: "timer", message: "a bug" };
  assert.equal(entries, [entry, entry]);
});

test("a callback of the control side is told as one of its part", () => {
  const manual = manualClock();
  const journal = new Journal(manual);
  const scopes: string[] = [];
  journal.subscribe((entry) => scopes.push(entry.kind === "internal.error" ? entry.scope : entry.kind));
  guarded(manual, journal, "discovery").after(10, () => {
    throw new Error("a bug");
  });
  manual.advance(10);
  assert.equal(scopes, ["discovery"]);
});

test("it tells the same time, and what it was given can be undone", () => {
  const manual = manualClock();
  const clock = guarded(manual, new Journal(manual));
  manual.advance(7);
  assert.equal([clock.now(), clock.wall()], [manual.now(), manual.wall()]);
  const ran: string[] = [];
  clock.after(10, () => ran.push("undone"))();
  manual.advance(20);
  assert.equal(ran, []);
});

test.run();
