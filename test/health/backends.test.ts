import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Backends } from "../../src/health/backends.ts";
import { type Entry, Journal } from "../../src/journal.ts";
import { manualClock } from "../support/clock.ts";

const test = suite("health/backends");

test("a change of verdict is journaled once, with its reason and time", () => {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const backends = new Backends(["a"], { clock, journal });
  clock.advance(40);
  backends.learn("a", { kind: "dial", ok: true, reason: "" });
  backends.learn("a", { kind: "dial", ok: true, reason: "" });
  assert.equal(backends.views, [{ name: "a", state: "ready", since: 40 }]);
  assert.equal(entries, [
    { kind: "backend.changed", backend: "a", from: "unknown", to: "ready", reason: "a new session answered" },
  ]);
});

test("those that stay keep their verdict, newcomers are unknown, evidence of the gone is ignored", () => {
  const clock = manualClock();
  const backends = new Backends(["a", "b"], { clock, journal: new Journal(clock) });
  backends.learn("b", { kind: "dial", ok: true, reason: "" });
  backends.reconcile(["b", "c"]);
  backends.learn("a", { kind: "dial", ok: true, reason: "" });
  assert.equal(
    backends.views.map(({ name, state }) => `${name} ${state}`),
    ["b ready", "c unknown"],
  );
});

test("whoever shares a backend's fate hears once that it is dead", () => {
  const clock = manualClock();
  const backends = new Backends(["a", "b"], { clock, journal: new Journal(clock) });
  const heard: string[] = [];
  backends.onDoubt("a", () => heard.push("a"));
  backends.onDoubt("b", () => heard.push("b"));
  const forget = backends.onDoubt("a", () => heard.push("forgotten"));
  forget();
  for (const ok of [true, false, true, false]) backends.learn("a", { kind: "dial", ok, reason: "" });
  assert.equal(heard, ["a"]);
});

test.run();
