/** Which differences between the runs of clients count as defects of the proxy. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { lostUnanswered, statusBody } from "../../../src/proxy/request/local-reply.ts";
import type { Said } from "../rig/said.ts";
import { compared, hasStatus } from "./curl.ts";
import { arrivedWhole, eventsOf, normalised } from "./operation.ts";
import {
  costOf,
  defects,
  type Failed,
  type Mode,
  type Outcome,
  table,
  tunnelsIn,
  unansweredIn,
} from "./outcome.ts";

const test = suite("real/clients-matrix/outcome");

const operation = { client: "kubectl", name: "get" };

function outcome(mode: Mode, shown: string, more: Partial<Outcome> = {}): Outcome {
  return { mode, operation, fault: mode === "through with faults" ? "api-0 killed" : "", shown, ...more };
}

test("what a client shows through the proxy is what it shows directly, or a defect", () => {
  const direct = outcome("direct", "a\nb");
  assert.equal(defects([direct, outcome("through", "a\nb")]), []);
  assert.equal(defects([direct, outcome("through", "a\nc")]), [
    'through: kubectl: get: directly "b", here "c"',
  ]);
  assert.equal(defects([direct, outcome("through with faults", "a")]), [
    'through with faults (api-0 killed): kubectl: get: directly "b", here "nothing more"',
  ]);
});

test("a failure is a defect in each mode, and without a direct run", () => {
  assert.equal(defects([outcome("direct", "", { failure: "exit 1" })]), ["direct: kubectl: get: exit 1"]);
  assert.equal(defects([outcome("through", "", { failure: "exit 1" })]), ["through: kubectl: get: exit 1"]);
});

const outage = { backend: "api-0", since: 10_000, until: 90_000 };

function failed(error: unknown, more: Partial<Failed> = {}): Failed {
  return { error, at: 50_000, hangs: false, tunnels: [], unanswered: [], ...more };
}

const lost = lostUnanswered("api-0");
/** The error as kubectl prints it. */
const unknown = new Error(
  `Error from server: ${(JSON.parse(statusBody(lost, false)) as { message: string }).message}`,
);
const write: Said = {
  ts: 50_000,
  msg: "request.failed",
  code: lost.code,
  err: lost.message,
  verb: "POST",
  URI: "/api/v1/namespaces/run-0001/configmaps",
  backend: "api-0",
};

test("a write is of unknown outcome if the apiserver that failed had it, during the fault", () => {
  const cost = (...unanswered: Failed["unanswered"]): unknown =>
    costOf(failed(unknown, { unanswered }), outage);
  assert.is(cost(write), "outcome of a write unknown");
  for (const change of [
    { backend: "api-1", err: "Backend api-1 was lost before it answered" },
    { ts: 9_999 },
    { ts: 99_000 },
    { verb: "GET" },
    { verb: "LIST" },
  ]) {
    const other = { ...write, ...change };
    assert.is(cost(other), undefined, JSON.stringify(change));
    if (other.err === write["err"]) assert.is(cost(write, other), undefined, JSON.stringify(change));
  }
  assert.is(cost(), undefined);
  const elsewhere = costOf(failed(unknown, { unanswered: [write] }), { ...outage, backend: "api-1" });
  assert.is(elsewhere, undefined);
});

test("a write of curl that gets another status is judged as one of another client", () => {
  const body = statusBody(lost, false);
  const thrown = thrownBy(() => hasStatus(`HTTP/1.1 502 Bad Gateway\r\n\r\n${body}`, 201));
  assert.is(costOf(failed(thrown, { unanswered: [write] }), outage), "outcome of a write unknown");
  assert.is(costOf(failed(thrown, { unanswered: [{ ...write, verb: "get" }] }), outage), undefined);
  const missing = thrownBy(() => hasStatus("HTTP/1.1 404 Not Found\r\n\r\n{}", 200));
  assert.is(costOf(failed(missing, { unanswered: [write] }), outage), undefined);
});

test("requests that the proxy answered itself are told apart by their namespace", () => {
  const review = { ...write, URI: "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews" };
  const others = [
    { ...write, URI: "/api/v1/nodes/run-0002" },
    { ...write, msg: "request.ended" },
  ];
  assert.equal(unansweredIn([write, review, ...others], "run-0001"), [write, review]);
});

test("a session ends with its apiserver, when this apiserver fails and not otherwise", () => {
  const tunnel = { backend: "api-0", at: 5_000 };
  const cost = (more: Partial<Failed>, error: unknown = new Error("exit 1")): unknown =>
    costOf(failed(error, { tunnels: [tunnel], ...more }), outage);
  assert.is(cost({}), "ended with its apiserver");
  assert.is(cost({ tunnels: [] }), undefined);
  assert.is(cost({ tunnels: [{ backend: "api-1", at: 5_000 }] }), undefined);
  assert.is(cost({ tunnels: [{ ...tunnel, endedAt: 9_999 }] }), undefined);
  assert.is(cost({ tunnels: [{ ...tunnel, endedAt: 10_001 }] }), "ended with its apiserver");
  // kubectl debug follows the log if its attach fails.
  assert.is(cost({ tunnels: [tunnel, { backend: "api-1", at: 50_000 }] }), "ended with its apiserver");
  assert.is(cost({ at: 9_999 }), undefined);
  assert.is(cost({ tunnels: [{ backend: "api-0", at: 90_001 }] }), undefined);
  assert.is(cost({ hangs: true }), undefined);
  assert.is(cost({}, new Error("exit SIGKILL\nkilled after 90000 ms")), undefined);
  const explained = outcome("through with faults", "", {
    failure: "exit 1",
    cost: "ended with its apiserver",
  });
  assert.equal(defects([explained]), []);
});

test("the audit log tells when a session began and ended", () => {
  const line = (auditID: string, stage: string, second: number, path: string): string =>
    JSON.stringify({
      auditID,
      stage,
      requestURI: path,
      requestReceivedTimestamp: "2026-01-01T00:00:01.000000Z",
      stageTimestamp: `2026-01-01T00:00:0${second}.000000Z`,
    });
  const path = "/api/v1/namespaces/run-0001/pods/shell/exec";
  const log = [
    "I0101 00:00:01 /namespaces/run-0001/pods/",
    line("a", "RequestReceived", 1, path),
    line("b", "RequestReceived", 1, path),
    line("b", "ResponseComplete", 3, path),
    line("c", "RequestReceived", 1, "/api/v1/namespaces/run-0002/pods/shell/exec"),
  ].join("\n");
  const at = Date.parse("2026-01-01T00:00:01Z");
  assert.equal(tunnelsIn(log, "api-0", "/namespaces/run-0001/pods/"), [
    { backend: "api-0", at },
    { backend: "api-0", at, endedAt: at + 2_000 },
  ]);
});

function thrownBy(run: () => void): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("wrong data is never explained, and data that ended early is", () => {
  const tunnels = [{ backend: "api-0", at: 5_000 }];
  const cost = (error: unknown): unknown => costOf(failed(error, { tunnels }), outage);
  const sent = Buffer.from("all of this");
  assert.is(
    thrownBy(() => arrivedWhole(sent, sent)),
    undefined,
  );
  assert.is(cost(thrownBy(() => arrivedWhole(Buffer.from("all of"), sent))), "ended with its apiserver");
  for (const wrong of ["all in ", "all of this and more", "all of thus"])
    assert.is(cost(thrownBy(() => arrivedWhole(Buffer.from(wrong), sent))), undefined);
  assert.is(cost(thrownBy(() => assert.equal(["ADDED a", "ADDED a"], ["ADDED a"]))), undefined);
});

function response(version: string, fields: readonly string[], body: string): string {
  return [`${version} 200`, "Content-Type: application/json", ...fields, "", body].join("\r\n");
}

test("curl compares the length that a response tells, if it can be the same", () => {
  for (const version of ["HTTP/1.1", "HTTP/2"]) {
    const told = compared(response(version, ["Content-Length: 5"], "a 999"));
    // The length differs, and is correct too.
    const digits = compared(response(version, ["content-length: 6"], "a 1000"));
    assert.is(digits.replace("1000", "999"), told);
    assert.is.not(compared(response(version, [], "a 999")), told);
    assert.is.not(compared(response(version, ["content-length: 6"], "a 999")), told);
    assert.is.not(compared(response(version, ["transfer-encoding: chunked"], "a 999")), told);
  }
  const [kept, closed] = ["Connection: keep-alive", "Connection: close"];
  assert.is(compared(response("HTTP/1.1", [kept], "a")), compared(response("HTTP/1.1", [], "a")));
  assert.is.not(compared(response("HTTP/1.1", [closed], "a")), compared(response("HTTP/1.1", [], "a")));
  // The response to HEAD has no body with which to compare the length.
  assert.is.not(
    compared(response("HTTP/2", ["content-length: 5"], "")),
    compared(response("HTTP/2", [], "")),
  );
});

test("curl compares no length where the apiserver gives none over HTTP/1.1 and one over HTTP/2", () => {
  const body = "x".repeat(2_049);
  const [length, chunked] = ["content-length: 2049", "transfer-encoding: chunked"];
  assert.is(compared(response("HTTP/1.1", [length], body)), compared(response("HTTP/1.1", [chunked], body)));
  assert.is.not(compared(response("HTTP/1.1", [], body)), compared(response("HTTP/1.1", [chunked], body)));
  assert.is.not(compared(response("HTTP/2", [], body)), compared(response("HTTP/2", [length], body)));
});

test("the events of a watch are compared one by one", () => {
  const line = (type: string, name: string): string =>
    `${JSON.stringify({ type, object: { metadata: { name } } })}\n`;
  assert.equal(eventsOf(line("ADDED", "a") + line("ADDED", "a") + line("DELETED", "a")), [
    "ADDED a",
    "ADDED a",
    "DELETED a",
  ]);
});

test("the table counts what was right, what is explained and what is wrong", () => {
  const outcomes = [
    outcome("direct", "a"),
    outcome("through with faults", "a"),
    outcome("through with faults", "", { failure: "exit 1", cost: "ended with its apiserver" }),
    outcome("through with faults", "b"),
  ];
  const row = "| 1 of 1 | – | 1 of 3, 1 ended with its apiserver, 1 WRONG |";
  assert.match(table(outcomes), `| kubectl: get ${row}`);
  assert.match(table(outcomes, true), `| kubectl ${row}`);
});

test("what varies between two right runs is not compared, and what does not is", () => {
  const one =
    "ns run-0001 with 10.0.0.7 at https://10.1.2.11:6443 (resourceVersion: 12) 2026-01-01T00:00:10Z age 3s";
  const other =
    "ns run-0377 with 10.0.1.12 at https://127.0.0.1:20443 (resourceVersion: 345) 2026-01-01T00:01:11Z age 1m4s";
  assert.is(normalised(one), normalised(other));
  assert.is.not(normalised("configmap/a created"), normalised("configmap/a configured"));
  assert.is.not(normalised("exit 1"), normalised("exit 7"));
});

test.run();
