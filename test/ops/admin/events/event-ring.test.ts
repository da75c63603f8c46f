import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../../src/base/limits.ts";
import { Journal } from "../../../../src/events/journal.ts";
import { EventRing } from "../../../../src/ops/admin/events/event-ring.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import { timesOf } from "../../../../src/ops/admin/http/times.ts";
import { manualClock } from "../../../support/clock.ts";

const test = suite("ops/admin/events/event-ring");

function ring() {
  const clock = manualClock();
  const journal = new Journal(clock);
  const write = (count: number): void => {
    for (let index = 0; index < count; index += 1)
      journal.write({ kind: "backend.added", backend: String(index) });
  };
  return { ring: new EventRing(journal, timesOf(clock)), journal, clock, write };
}

test("what came after an id is all that came, until it is too long ago", () => {
  const { ring: one, write } = ring();
  write(3);
  const after = (id: string): readonly [number, boolean] => {
    const { entries, isWhole } = one.after(id);
    return [entries.length, isWhole];
  };
  assert.equal(after(`${one.epoch}-1`), [2, true]);
  assert.equal(after(`${one.epoch}-3`), [0, true]);
  assert.equal(after(`${one.epoch}-0`), [3, true]);
  assert.equal(after(`${one.epoch}-4`), [0, false], "no client was ever sent that one");
  for (const strange of ["", "1", "other-1", `${one.epoch}-x`, `${one.epoch}--1`])
    assert.equal(after(strange), [3, false], strange);
  write(adminLimits.eventsKept);
  assert.equal(after(`${one.epoch}-3`), [adminLimits.eventsKept, true]);
  assert.equal(after(`${one.epoch}-2`), [adminLimits.eventsKept, false]);
});

test("an entry is told once, with its time, and without what may be a token", () => {
  const { ring: one, journal } = ring();
  const heard: string[] = [];
  const unlisten = one.listen((told) => heard.push(one.textOf(told)));
  journal.write({
    kind: "request.refused",
    client: "10.0.0.7",
    reason: `Bearer abcdefghijklmnop ${"x".repeat(9999)}`,
  });
  unlisten();
  journal.write({ kind: "drain.started" });
  assert.is(heard.length, 1);
  const { kind, at, reason } = JSON.parse(heard[0] ?? "");
  assert.is(kind, "request.refused");
  assert.match(at, /^\d{4}-\d\d-\d\dT.*Z$/);
  assert.not.match(reason, "abcdefgh");
  assert.ok(reason.length <= limits.apiTextChars);
  one.stop();
  journal.write({ kind: "drain.started" });
  assert.is(one.after(`${one.epoch}-2`).entries.length, 0);
});

test("ten minutes of refusals, 1,820 a second, push out no incident and no state change", () => {
  const { ring: one, journal, clock, write } = ring();
  write(3);
  for (let second = 0; second < 600; second += 1) {
    for (let at = 0; at < 1820; at += 1)
      journal.write({ kind: "request.refused", client: `10.0.0.${at % 200}`, reason: "malformed" });
    clock.advance(1000);
  }
  const kinds = one.after("").entries.map(({ entry }) => entry.kind);
  assert.is(kinds.filter((kind) => kind === "backend.added").length, 3);
  assert.is(kinds.length - 3, adminLimits.clientEventsKept);
  const ids = one.after("").entries.map(({ id }) => id);
  assert.equal(
    ids,
    ids.toSorted((a, b) => a - b),
  );
});

test.run();
