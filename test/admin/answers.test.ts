import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Answers, type AnswersParts } from "../../src/admin/answers.ts";
import type { Readiness } from "../../src/admin/probes.ts";
import { type Entry, Journal } from "../../src/journal.ts";
import { limits } from "../../src/limits.ts";
import { manualClock } from "../support/clock.ts";

const test = suite("admin/answers");

function answersOf(change: Partial<AnswersParts>) {
  const clock = manualClock();
  const journal = new Journal(clock);
  const heard: Entry[] = [];
  journal.subscribe((entry) => heard.push(entry));
  const live = (): Readiness[] => [{ name: "ping", ok: true }];
  const metrics = (): Promise<string> => Promise.resolve("");
  return { clock, heard, answers: new Answers({ journal, clock, live, ready: live, metrics, ...change }) };
}

test("the journal hears why a probe fails, once, and when it is good again; who asks is told no reason", async () => {
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

test("many scrapes at nearly the same time cost one", async () => {
  let made = 0;
  const { answers, clock } = answersOf({ metrics: () => Promise.resolve(String(++made)) });
  await Promise.all(Array.from({ length: 20 }, () => answers.scrape()));
  assert.is(made, 1);
  clock.advance(limits.scrapeReuseMs);
  assert.is(await answers.scrape(), "2");
});

test.run();
