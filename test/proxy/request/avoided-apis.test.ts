import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Journal } from "../../../src/events/journal.ts";
import { classify, type RequestInfo } from "../../../src/kube/request-info.ts";
import { AvoidedApis } from "../../../src/proxy/request/avoided-apis.ts";
import { requestLimits } from "../../../src/proxy/request/limits.ts";
import { orderOf } from "../../support/attempt-owner.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/request/avoided-apis");

const named = (resource: string): RequestInfo => classify("GET", `/apis/example.com/v1/${resource}`);

/** Backend `lacking` has no route for the resource, and `b` serves it. */
function learnGap(apis: AvoidedApis, resource: string, lacking = "a"): void {
  const held = { attempt: { backend: lacking }, complaint: "no-route" } as const;
  assert.ok(apis.leave(named(resource), held, [], "b"));
  apis.readAnswered(named(resource), "b", 200, [lacking]);
}

test("of more resources than the limit the one whose gap was found first is forgotten", () => {
  const clock = manualClock();
  const apis = new AvoidedApis(clock, new Journal(clock));
  for (let at = 0; at <= requestLimits.missingResources; at += 1) {
    clock.advance(1000 / requestLimits.missingAsksPerSecond);
    learnGap(apis, `things${at}`);
  }
  assert.equal([apis.avoided(named("things0")), apis.avoided(named("things1"))], [[], ["a"]]);
});

test("names of any length are kept by their beginning", () => {
  const clock = manualClock();
  const apis = new AvoidedApis(clock, new Journal(clock));
  const long = "x".repeat(60_000);
  learnGap(apis, `${long}1`);
  assert.equal(apis.avoided(named(`${long}2`)), ["a"]);
});

test("to ask which backends a request avoids changes nothing; only a read that is placed tests one", () => {
  const clock = manualClock();
  const apis = new AvoidedApis(clock, new Journal(clock));
  apis.reconcile(["a", "b", "c"]);
  learnGap(apis, "things");
  clock.advance(requestLimits.missingTestMs);
  for (let count = 0; count < 10; count += 1) assert.equal(apis.avoided(named("things")), ["a"]);
  const read = orderOf({ method: "GET", kind: "plain", isBodiless: true });
  const write = orderOf({ method: "POST", kind: "plain", isBodiless: false });
  assert.equal(apis.place(write, named("things")), ["a"]);
  assert.equal(apis.place(read, named("things")), ["b", "c"], "the test");
  assert.equal(apis.place(read, named("things")), ["a"]);
});

test.run();
