import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { StaleResponses } from "../../../src/ops/incidents/fold.ts";
import { incidentLimits } from "../../../src/ops/incidents/limits.ts";

const test = suite("ops/incidents/stale-responses");

const entry = {
  kind: "response.stale",
  client: "10.0.0.7",
  userAgent: "manager/v1",
  resource: "/pods",
  backend: "a",
  version: "7",
  seen: "9",
} as const;

test("once is a failover; again within minutes is a client that is led back", () => {
  const answers = new StaleResponses();
  assert.is(answers.take(entry, 0), undefined);
  assert.is(answers.take({ ...entry, client: "10.0.0.8" }, 1), undefined);
  const found = answers.take(entry, 60_000);
  assert.equal([found?.kind, found?.client], ["version-regression", "10.0.0.7 manager/v1"]);
  assert.is(answers.take(entry, 60_001 + incidentLimits.quietMs), undefined);
});

test("of too many clients the oldest are forgotten", () => {
  const answers = new StaleResponses();
  answers.take(entry, 0);
  for (let index = 0; index < limits.anomalies; index += 1)
    answers.take({ ...entry, client: `c-${index}` }, 1);
  assert.is(answers.take(entry, 2), undefined);
});

test.run();
