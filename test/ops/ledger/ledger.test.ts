import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Caller } from "../../../src/ops/ledger/caller.ts";
import { Ledger } from "../../../src/ops/ledger/ledger.ts";
import { ledgerLimits } from "../../../src/ops/ledger/limits.ts";
import { noSubject } from "../../../src/ops/ledger/subject.ts";

const test = suite("ops/ledger/ledger");

const name = (agent: string, address = "10.0.0.7") => ({ subject: noSubject, agent, address });

test("one caller is one object, by identity, program and address", () => {
  const ledger = new Ledger(0);
  const one = ledger.of(name("a"), 1);
  assert.is(ledger.of(name("a"), 2), one);
  assert.is.not(ledger.of(name("b"), 2), one);
  assert.is.not(ledger.of(name("a", "10.0.0.8"), 2), one);
  assert.is.not(ledger.of({ ...name("a"), subject: { ...noSubject, name: "x" } }, 2), one);
  assert.is(ledger.size, 4);
});

test("a caller that came soon after the start of the process is never new, and a later one is", () => {
  const ledger = new Ledger(1000);
  const { callerNewMs } = ledgerLimits;
  const [early, later] = [
    ledger.of(name("early"), 999 + callerNewMs),
    ledger.of(name("later"), 1000 + callerNewMs),
  ];
  const isNew = (caller: Caller): boolean =>
    caller.oddities(1001 + callerNewMs, ledger.warmAt).includes("new");
  assert.equal([isNew(early), isNew(later)], [false, true]);
});

test("a flood of newcomers pushes out itself, not the active callers", () => {
  const ledger = new Ledger(0);
  const usual = ledger.of(name("usual"), 0);
  usual.requests = ledgerLimits.callerRequests;
  const open = ledger.of(name("open"), 0);
  open.active = 1;
  for (let index = 0; index < 3 * ledgerLimits.callers; index += 1) ledger.of(name(`flood-${index}`), 1000);
  assert.is(ledger.size, ledgerLimits.callers);
  assert.equal([usual.isForgotten, open.isForgotten], [false, false]);
  assert.is(ledger.forgotten, 2 * ledgerLimits.callers + 2);
});

test("when all are at work one of them goes all the same", () => {
  const ledger = new Ledger(0);
  for (let index = 0; index < ledgerLimits.callers; index += 1) ledger.of(name(`n-${index}`), 0).active = 1;
  ledger.of(name("one more"), 0);
  assert.is(ledger.size, ledgerLimits.callers);
});

test("requests by program never fall, whichever caller is forgotten; beyond the first few they are counted together", () => {
  const ledger = new Ledger(0);
  for (let index = 0; index < ledgerLimits.callers + 100; index += 1)
    ledger.of(name(`p-${index}`), 0).began(0, index % 2 === 0 ? "list" : "post");
  const { programs } = ledger;
  assert.is(programs.size, ledgerLimits.agents + 1);
  assert.equal(programs.get("p-0")?.counts, [["list", 1]]);
  const others = (ledgerLimits.callers + 100 - ledgerLimits.agents) / 2;
  assert.equal(programs.get("other")?.counts, [
    ["list", others],
    ["other", others],
  ]);
});

test.run();
