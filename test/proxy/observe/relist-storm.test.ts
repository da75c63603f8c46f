import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ledgerTapLimits, RelistStorm } from "../../../src/proxy/observe/ledger-tap.ts";
import { callerAt } from "../../support/callers.ts";

const test = suite("proxy/observe/relist-storm");

const callers = Array.from({ length: ledgerTapLimits.stormRelists }, (_, index) =>
  callerAt(`10.0.0.${index}`),
);

test("many callers at once are a storm, told once in its time, with the resource and the first of them", () => {
  const storm = new RelistStorm();
  const told = callers.map((caller, index) => storm.take(caller, index < 30 ? "/pods" : "/secrets", index));
  assert.is(
    told.findIndex((one) => one !== undefined),
    ledgerTapLimits.stormRelists - 1,
  );
  assert.equal([told.at(-1)?.resource, told.at(-1)?.relists], ["/pods", ledgerTapLimits.stormRelists]);
  assert.is(told.at(-1)?.clients.length, 5);
  assert.is(storm.take(callerAt("x"), "/pods", 100), undefined);
});

test("one process that begins anew is none, however much it lists; nor is one that lists all the time", () => {
  const storm = new RelistStorm();
  const few = callers.slice(0, ledgerTapLimits.stormCallers - 1);
  for (let index = 0; index < 5 * ledgerTapLimits.stormRelists; index += 1)
    for (const caller of few) assert.is(storm.take(caller, `/r-${index % 60}`, index), undefined);
});

test("what is long ago does not count", () => {
  const storm = new RelistStorm();
  const told = callers.map((caller, index) =>
    storm.take(caller, "/pods", (index * ledgerTapLimits.stormMs) / 30),
  );
  assert.ok(told.every((one) => one === undefined));
});

test.run();
