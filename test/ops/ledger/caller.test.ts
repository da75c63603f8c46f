import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Caller } from "../../../src/ops/ledger/caller.ts";
import { ledgerLimits } from "../../../src/ops/ledger/limits.ts";
import { noSubject } from "../../../src/ops/ledger/subject.ts";
import { callerAt } from "../../support/callers.ts";

const test = suite("ops/ledger/caller");

test("a list counts as a relist when its resource was watched before; so does a watch from a state", () => {
  const caller = callerAt("10.0.0.7");
  assert.not(caller.listed("/pods"), "the first list of an informer");
  assert.not(caller.watched("/pods", false));
  assert.not(caller.watched("/pods", false), "it goes on from its version");
  assert.ok(caller.listed("/pods"));
  assert.ok(caller.watched("/pods", true));
  assert.not(caller.watched("/secrets", true), "the first of another resource");
  assert.equal([caller.watches, caller.relists], [4, 2]);
});

test("only so many resources are remembered", () => {
  const caller = callerAt("10.0.0.7");
  for (let index = 0; index <= ledgerLimits.callerResources; index += 1) caller.watched(`/r-${index}`, false);
  assert.not(caller.listed("/r-0"));
  assert.ok(caller.listed("/r-1"));
});

test("what is odd about it is said in words, and a usual one is not odd", () => {
  const usual = callerAt("10.0.0.7");
  usual.requests = 1000;
  assert.equal(usual.oddities(ledgerLimits.callerNewMs, 0), []);
  assert.equal(usual.oddities(ledgerLimits.callerNewMs - 1, 0), ["new"]);
  const odd = new Caller({ subject: noSubject, agent: "unknown", address: "10.0.0.8" }, 0);
  Object.assign(odd, { requests: 40, errors: 21, watches: 30, relists: 11 });
  assert.equal(odd.oddities(10_000, 0), [
    "new",
    "no-agent",
    "anonymous",
    "failing",
    "relisting",
    "re-watching",
  ]);
});

test.run();
