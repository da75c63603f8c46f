/** Which requests of clients count as relists and as closed watches. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Asked, asked, judge } from "./audit.ts";

const test = suite("real/operators/audit");

function entry(requestURI: string, verb: "list" | "watch" = "watch"): Parameters<typeof asked>[0] {
  return {
    auditID: "1",
    verb,
    requestURI,
    user: { username: "python-0" },
    userAgent: "operator/1 (linux)",
    requestReceivedTimestamp: "2026-01-01T00:00:00.000000Z",
  };
}

function watch(at: number, more: Partial<Asked> = {}): Asked {
  return { at, user: "a", kind: "watch", what: "/pods?", from: "7", timeoutMs: 300_000, ...more };
}

test("a streaming list is a list and a watch", () => {
  const one = asked(entry("/api/v1/pods?watch=true&sendInitialEvents=true&timeoutSeconds=300"));
  assert.is(one.kind, "list");
  assert.is(one.timeoutMs, 300_000);
});

test("what a watch is about does not depend on its version or its timeout, but on its selectors", () => {
  const of = (query: string): string => asked(entry(`/api/v1/pods?watch=1&${query}`)).what;
  assert.is(of("resourceVersion=7&timeoutSeconds=300"), of("resourceVersion=9&timeoutSeconds=400"));
  assert.is.not(of("labelSelector=a"), of("labelSelector=b"));
});

test("fabric8 ends its watches after half the timeout that it asks for", () => {
  const uri = "/api/v1/pods?watch=true&timeoutSeconds=600";
  assert.is(asked(entry(uri)).timeoutMs, 600_000);
  assert.is(asked({ ...entry(uri), userAgent: "fabric8-kubernetes-client/8.0.0" }).timeoutMs, 300_000);
});

test("a list counts if its client has listed before, from the moment on that the faults begin", () => {
  const first = watch(500, { kind: "list", timeoutMs: 0 });
  const second = { ...first, at: 1_000 };
  assert.equal(judge([first, second], 0, 2_000).relists, [second]);
  assert.equal(judge([first, second], 1_500, 2_000).relists, []);
});

test("a watch in the place of one that has reached its timeout is the client's own", () => {
  assert.equal(judge([watch(0), watch(299_000)], 1, 400_000).closed, []);
});

test("a watch in the place of one that had not reached its timeout was closed", () => {
  const second = watch(200_000);
  assert.equal(judge([watch(0), second], 1, 400_000).closed, [second]);
});

test("of two equal watches of one client, the one that is due is the one that has ended", () => {
  const all = [watch(0, { timeoutMs: 400_000 }), watch(1_000), watch(301_000)];
  assert.equal(judge(all, 2_000, 500_000).closed, []);
});

test("the first watch of a client is no other's end", () => {
  assert.equal(judge([watch(0), watch(5_000, { user: "b" })], 1, 10_000).closed, []);
});

test.run();
