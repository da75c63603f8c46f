/** What counts as a defect of the proxy when clients are compared. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { failureOfCut, lostUnanswered, statusBody } from "../../../src/proxy/request/local-reply.ts";
import { normalised } from "./operation.ts";
import { costOf, defects, type Mode, type Outcome, table } from "./outcome.ts";

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

test("a write of unknown outcome is explained, and so is the end of a tunnel of the apiserver that failed", () => {
  for (const failure of [lostUnanswered("api-0"), failureOfCut(false)]) {
    const { message } = JSON.parse(statusBody(failure, false)) as { message: string };
    assert.is(costOf(`Error from server: ${message}`, [], "api-0"), "outcome of a write unknown");
  }
  assert.is(costOf("exit 1", ["api-0"], "api-0"), "ended with its apiserver");
  assert.is(costOf("exit 1", ["api-1"], "api-0"), undefined);
  assert.is(costOf("exit 1", [], "api-0"), undefined);
  assert.is(costOf("exit SIGKILL\nkilled after 90000 ms", ["api-0"], "api-0"), undefined);
  const explained = outcome("through with faults", "", {
    failure: "exit 1",
    cost: "ended with its apiserver",
  });
  assert.equal(defects([explained]), []);
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
