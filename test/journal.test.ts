import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Entry, Journal } from "../src/journal.ts";
import { manualClock } from "./support/clock.ts";

const test = suite("journal");

test("a reader hears what happened and when, until it unsubscribes", () => {
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

test.run();
