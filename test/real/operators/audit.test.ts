/** Which requests in an audit log count as repeated lists and as closed watches. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Asked, asked, judge, readAudit, requestsOf, unwatching } from "./audit.ts";

const test = suite("real/operators/audit");

function entry(requestURI: string, verb: "list" | "watch" = "watch"): Parameters<typeof asked>[0] {
  return {
    auditID: "1",
    stage: "RequestReceived",
    verb,
    requestURI,
    user: { username: "python-0" },
    userAgent: "operator/1 (linux)",
    requestReceivedTimestamp: "2026-01-01T00:00:00.000000Z",
    stageTimestamp: "2026-01-01T00:00:00.000000Z",
  };
}

function watch(at: number, more: Partial<Asked> = {}): Asked {
  const { timeoutMs = 300_000 } = more;
  const plain = { at, user: "a", kind: "watch", what: "/pods?", from: "7", isOver: false } as const;
  return { ...plain, timeoutMs, latestMs: timeoutMs, ...more };
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

test("a watch that was over when the faults began does not excuse a closed one", () => {
  const closed = watch(400_000);
  // The second watch replaces the first one after 10 s. It is due at 310 s, and the third watch replaces it then. So
  // only the third watch is open at 400 s.
  const all = [watch(0, { isOver: true }), watch(10_000), watch(309_000), closed];
  assert.equal(judge(all, 20_000, 500_000).closed, [closed]);
});

test("a watch that reached its timeout long ago, and was not opened again, does not excuse a closed one", () => {
  const closed = watch(900_000);
  const all = [watch(0), watch(0, { timeoutMs: 800_000 }), watch(800_000, { timeoutMs: 400_000 }), closed];
  assert.equal(judge(all, 1, 1_000_000).closed, [closed]);
});

test("without a timeout of its own, a watch may end after 30 to 60 minutes", () => {
  const untimed = { timeoutMs: 1_800_000, latestMs: 3_600_000 };
  const opened = [1_700_000, 1_900_000, 3_500_000].map((at) => watch(at, untimed));
  const closed = opened.map((one) => judge([watch(0, untimed), one], 1, 4_000_000).closed.length);
  assert.equal(closed, [1, 0, 0]);
});

/** Returns a line of the audit log, `seconds` after the log's beginning. */
function line(auditID: string, stage: string, seconds: number, verb: "list" | "watch" = "watch"): string {
  const at = new Date(Date.parse("2026-01-01T00:00:00Z") + seconds * 1_000).toISOString();
  const one = entry("/api/v1/pods?timeoutSeconds=300", verb);
  return `${JSON.stringify({ ...one, auditID, stage, requestReceivedTimestamp: at, stageTimestamp: at })}\n`;
}

test("a watch is over if all apiservers that had it have ended it before the faults began", () => {
  const moved = line("moved", "RequestReceived", 1) + line("moved", "RequestReceived", 2);
  const log = moved + line("moved", "ResponseComplete", 2) + line("ended", "RequestReceived", 3);
  // The list that the proxy itself sends to find out whether the initial events are complete.
  const own = line("ended", "RequestReceived", 3.5, "list");
  const requests = requestsOf(
    log + own + line("ended", "ResponseComplete", 4),
    Date.parse("2026-01-01T00:00:05Z"),
  );
  assert.equal(
    requests.map(({ isOver }) => isOver),
    [false, true],
  );
  const early = requestsOf(log, Date.parse("2026-01-01T00:00:03Z"));
  assert.equal(
    early.map(({ isOver }) => isOver),
    [false, false],
  );
});

test("a log that is missing or cannot be read is an error, and so is a client that the log does not have", () => {
  assert.throws(() => readAudit("/nonexistent/audit.log", 0), /ENOENT/);
  assert.throws(() => requestsOf('{"auditID":"1","ver{"auditID":"2"}\n', 0), /JSON/);
  assert.equal(unwatching([watch(0)], ["a", "b"]), ["b"]);
});

test("the first watch of a client is no other's end", () => {
  assert.equal(judge([watch(0), watch(5_000, { user: "b" })], 1, 10_000).closed, []);
});

test.run();
