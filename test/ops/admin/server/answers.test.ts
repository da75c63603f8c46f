import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Entry, Journal } from "../../../../src/events/journal.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import { Answers, type AnswersParts } from "../../../../src/ops/admin/server/answers.ts";
import type { Readiness } from "../../../../src/ops/admin/server/probes.ts";
import { manualClock } from "../../../support/clock.ts";

const test = suite("ops/admin/server/answers");

function answersOf(change: Partial<AnswersParts>) {
  const clock = manualClock();
  const journal = new Journal(clock);
  const heard: Entry[] = [];
  journal.subscribe((entry) => heard.push(entry));
  const live = (): Readiness[] => [{ name: "ping", ok: true }];
  const metrics = (): Promise<string> => Promise.resolve("");
  return {
    clock,
    journal,
    heard,
    answers: new Answers({ journal, clock, live, ready: live, metrics, ...change }),
  };
}

test("the journal has why a probe fails, once, and when it is good again; the response has no reason", async () => {
  let checks: Readiness[] = [{ name: "backends", ok: false, reason: "0 of 2 ready" }];
  const { answers, heard } = answersOf({ ready: () => checks });
  assert.equal(await answers.checks("readyz"), [{ name: "backends", ok: false }]);
  await answers.checks("readyz");
  await answers.checks("livez");
  checks = [{ name: "backends", ok: true }];
  assert.equal(await answers.checks("readyz"), [{ name: "backends", ok: true }]);
  assert.equal(heard, [
    { kind: "probe.changed", probe: "readyz", complaint: "backends: 0 of 2 ready" },
    { kind: "probe.changed", probe: "readyz", complaint: "" },
  ]);
});

test("a reported change is looked at once its turn is over, and only what is new is reported", () => {
  let checks: Readiness[] = [{ name: "draining", ok: true }];
  let looks = 0;
  const ready = (): Readiness[] => {
    looks += 1;
    return checks;
  };
  const { answers, clock, journal } = answersOf({ ready });
  const told: unknown[] = [];
  const undo = answers.onChange((...one) => told.push(one));
  journal.write({ kind: "drain.started" });
  journal.write({ kind: "backend.added", backend: "cp-1" });
  checks = [{ name: "draining", ok: false, reason: "the proxy is stopping" }];
  assert.is(told.length, 0);
  clock.turn();
  const expected = [["readyz", [{ name: "draining", ok: false }]]];
  assert.equal(told, expected);
  assert.equal(answers.standing(), {
    livez: [{ name: "ping", ok: true }],
    readyz: [{ name: "draining", ok: false }],
  });
  journal.write({ kind: "backend.removed", backend: "cp-1" });
  clock.turn();
  assert.is(looks, 3, "each change, and each question");
  journal.write({ kind: "config.reloaded", file: "", sha256: "", waiting: [] });
  clock.turn();
  undo();
  journal.write({ kind: "drain.started" });
  clock.turn();
  assert.is(looks, 3);
  assert.equal(told, expected);
});

test("many scrapes at nearly the same time cost one", async () => {
  let made = 0;
  const { answers, clock } = answersOf({ metrics: () => Promise.resolve(String(++made)) });
  await Promise.all(Array.from({ length: 20 }, () => answers.scrape()));
  assert.is(made, 1);
  clock.advance(adminLimits.scrapeReuseMs);
  assert.is(await answers.scrape(), "2");
});

test.run();
