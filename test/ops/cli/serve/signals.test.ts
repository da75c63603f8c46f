import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Entry, Journal } from "../../../../src/events/journal.ts";
import { containFaults, exitCode, listenForSignals } from "../../../../src/ops/cli/serve/signals.ts";
import { manualClock } from "../../../support/clock.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/cli/serve/signals");

test.after.each(() => {
  for (const name of ["SIGTERM", "SIGINT"]) process.removeAllListeners(name);
  process.removeAllListeners("uncaughtException");
  process.removeAllListeners("unhandledRejection");
  process.exitCode = 0;
});

test("the first signal is told once, the second hurries", async () => {
  const { first, hurry } = listenForSignals();
  process.emit("SIGTERM");
  assert.is(await within(20_000, "the first", first), false);
  assert.not.ok(hurry.aborted);
  process.emit("SIGINT");
  assert.ok(hurry.aborted);
});

test("a fault is journaled, drains like a signal, and shows in the exit code", async () => {
  const journal = new Journal(manualClock());
  const entries: Entry[] = [];
  journal.subscribe((entry) => void entries.push(entry));
  const signals = listenForSignals();
  containFaults(journal, signals.raise);
  assert.is(exitCode(), 0);
  process.emit("uncaughtException", new Error("nothing caught this"));
  await within(20_000, "the drain", signals.first);
  assert.is(exitCode(), 1);
  assert.match(JSON.stringify(entries), "nothing caught this");
});

test.run();
