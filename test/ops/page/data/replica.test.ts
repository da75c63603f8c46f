import { suite } from "uvu";
import * as assert from "uvu/assert";
import { askReplica, isElsewhere, pathAtReplica } from "../../../../src/ops/page/data/api.js";
import { addressOf, problemOf, replicaIn } from "../../../../src/ops/page/data/replica.js";
import type { Replica } from "../../../../src/ops/page/data/rows.d.ts";

const test = suite("ops/page/data/replica");

const row: Replica = {
  name: "wk-2",
  address: "10.0.0.2:7480",
  id: "",
  isSelf: false,
  state: "live",
  since: "",
  sinceAgeMs: 0,
  answeredAgeMs: 0,
  version: "",
  startedAt: "",
  clusters: [],
  activeIncidents: 0,
  lastError: "",
};

test("the address keeps the replica beside the view, and an incident's number only at its own replica", () => {
  const at = { pathname: "/", hash: "#/watches?q=a" };
  assert.is(addressOf(at, "[fd00::1]:7480"), "/?replica=%5Bfd00%3A%3A1%5D%3A7480#/watches?q=a");
  assert.is(replicaIn("?replica=%5Bfd00%3A%3A1%5D%3A7480"), "[fd00::1]:7480");
  assert.is(addressOf(at, ""), "/#/watches?q=a");
  assert.is(addressOf({ ...at, hash: "#/incidents/42" }, "wk-2"), "/?replica=wk-2#/");
});

test("paths of the API lead to the replica, and to no other host", () => {
  assert.is(pathAtReplica("/api/v1/stats"), "/api/v1/stats");
  askReplica("//evil.example/x");
  assert.ok(isElsewhere());
  assert.is(pathAtReplica("/api/v1/stats?a=1"), "/api/v1/replicas/%2F%2Fevil.example%2Fx/stats?a=1");
  askReplica("");
  assert.not.ok(isElsewhere());
});

test("a replica that is silent or unknown is a problem, and one that is not known yet is none", () => {
  assert.is(problemOf([], "wk-2"), "");
  assert.is(problemOf([row], ""), "");
  assert.is(problemOf([row], "wk-2"), "");
  assert.is(problemOf([row], "10.0.0.2:7480"), "");
  assert.is(problemOf([row], "wk-9"), "There is no replica wk-9.");
  const silent = { ...row, state: "silent", answeredAgeMs: 20_400, lastError: "x" };
  assert.is(problemOf([silent], "wk-2"), "Replica wk-2 has not answered for 20 s: x.");
  assert.is(problemOf([{ ...silent, answeredAgeMs: null }], "wk-2"), "Replica wk-2 has not answered yet: x.");
});

test.run();
