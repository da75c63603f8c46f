import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Journal } from "../../../src/events/journal.ts";
import { classify, type RequestInfo } from "../../../src/kube/request-info.ts";
import { AvoidedApis } from "../../../src/proxy/request/avoided-apis.ts";
import { requestLimits } from "../../../src/proxy/request/limits.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/request/avoided-apis");

const named = (resource: string): RequestInfo => classify("GET", `/apis/example.com/v1/${resource}`);

const complaintOf = (backend: string) => ({ attempt: { backend }, complaint: "no-route" }) as const;

test("of more resources than the limit the one that was doubted first is forgotten", () => {
  const clock = manualClock();
  const missing = new AvoidedApis(clock, new Journal(clock));
  for (let at = 0; at <= requestLimits.missingResources; at += 1) {
    clock.advance(1000 / requestLimits.missingAsksPerSecond);
    assert.ok(missing.mayLeave(named(`things${at}`), complaintOf("a")));
  }
  assert.equal(missing.avoided(named("things0")), []);
  assert.equal(missing.avoided(named("things1")), ["a"]);
});

test("names of any length are kept by their beginning", () => {
  const clock = manualClock();
  const missing = new AvoidedApis(clock, new Journal(clock));
  const long = "x".repeat(60_000);
  missing.mayLeave(named(`${long}1`), complaintOf("a"));
  assert.equal(missing.avoided(named(`${long}2`)), ["a"]);
});

test.run();
