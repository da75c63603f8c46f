import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Entry, Journal } from "../../src/events/journal.ts";
import { manualClock } from "../support/clock.ts";

const test = suite("journal");

test("a reader gets what happened and when, until it unsubscribes", () => {
  const clock = manualClock();
  const journal = new Journal(clock);
  const heard: [Entry["kind"], number][] = [];
  const stop = journal.subscribe((entry, at) => heard.push([entry.kind, at]));
  clock.advance(7);
  journal.write({ kind: "drain.started" });
  stop();
  journal.write({ kind: "drain.ended", cut: 0 });
  assert.equal(heard, [["drain.started", 7]]);
});

test("a reader that throws costs neither the other readers nor the writer, and is told of", () => {
  const journal = new Journal(manualClock());
  const heard: Entry["kind"][] = [];
  journal.subscribe(() => {
    throw new Error("a bug");
  });
  journal.subscribe(({ kind }) => heard.push(kind));
  journal.write({ kind: "drain.started" });
  assert.equal(heard.toSorted(), ["drain.started", "internal.error"]);
});

test("what is written for a cluster says so, to the same readers", () => {
  const journal = new Journal(manualClock());
  const read: Entry[] = [];
  const eu = journal.of("eu");
  journal.subscribe((entry) => read.push(entry));
  eu.write({ kind: "drain.started" });
  journal.of("").write({ kind: "drain.started" });
  assert.equal(read, [{ kind: "drain.started", cluster: "eu" }, { kind: "drain.started" }]);
});

test.run();
