import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Journal } from "../../../src/events/journal.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { poolKey } from "../../../src/upstream/pool/pool-key.ts";
import { type ListAnswer, ListRequest } from "../../../src/watch/detectors/list-request.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { orderOf } from "../../support/attempt-owner.ts";
import { manualClock } from "../../support/clock.ts";
import { json, listOf, ok } from "../../support/watch-path.ts";

const test = suite("watch/detectors/list-request");

function asked() {
  const clock = manualClock();
  const told: ListAnswer[] = [];
  const faults: string[] = [];
  const journal = new Journal(clock);
  journal.subscribe(({ kind }) => void faults.push(kind));
  const learnt: number[] = [];
  const watching = {
    poolKey: () => poolKey("proven", "plain"),
    learnt: (code: number) => void learnt.push(code),
  };
  const onAnswer = (answer: ListAnswer): void => void told.push(answer);
  const ask = new ListRequest(watching, { backend: "a", context: orderOf(), onAnswer }, { clock, journal });
  const feed = (text: string, end = false): void =>
    ask.attemptData(ask.attempt, Buffer.from(text), 0, text.length, end);
  return { clock, told, faults, learnt, ask, feed };
}

const status = (code: number): Field[] => [new Field(":status", String(code)), json];

test("its answer is the version of the list, however it is cut, and is told once", () => {
  const { clock, told, ask, feed } = asked();
  clock.advance(30);
  ask.attemptHeaders(ask.attempt, status(103), false);
  ask.attemptHeaders(ask.attempt, ok, false);
  for (const octet of listOf("20")) feed(octet);
  assert.equal(told, []);
  feed("", true);
  assert.equal(told, [{ status: 200, version: "20", ms: 30 }]);
  ask.attemptGone();
  clock.advance(watchLimits.progressAnswerMs);
  assert.is(told.length, 1);
});

test("a refusal is told by its status, an end without an answer as 0", () => {
  const refused = asked();
  refused.ask.attemptHeaders(refused.ask.attempt, status(403), false);
  assert.equal([refused.told, refused.learnt], [[{ status: 403, version: "", ms: 0 }], [403]]);
  const empty = asked();
  empty.ask.attemptHeaders(empty.ask.attempt, ok, true);
  assert.equal(empty.told, [{ status: 200, version: "", ms: 0 }]);
  for (const end of ["attemptGone", "attemptRefused", "attemptSuspected"] as const) {
    const gone = asked();
    gone.ask[end]();
    assert.equal([gone.told, gone.learnt], [[{ status: 0, version: "", ms: 0 }], []]);
  }
  const late = asked();
  late.clock.advance(watchLimits.progressAnswerMs);
  assert.equal(late.told, [{ status: 0, version: "", ms: watchLimits.progressAnswerMs }]);
});

test("a body that is no list has no version; a fault of the proxy ends it", () => {
  const { told, ask, feed } = asked();
  ask.attemptHeaders(ask.attempt, ok, false);
  feed('{"kind":"Status"}', true);
  assert.equal(told, [{ status: 200, version: "", ms: 0 }]);
  const faulty = asked();
  faulty.ask.attemptFaulted(new Error("played"));
  assert.equal([faulty.told.length, faulty.faults.length], [1, 1]);
});

test.run();
