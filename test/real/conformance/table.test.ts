/** What counts as a defect of the proxy when Kubernetes' own suite is compared. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { failureOfCut, lostUnanswered, statusBody } from "../../../src/proxy/request/local-reply.ts";
import type { Said } from "../rig/said.ts";
import { costOf } from "./costs.ts";
import type { Judged, Mode, Played } from "./play.ts";
import { defects, table } from "./table.ts";

const test = suite("real/conformance/table");

const at = Date.parse("2026-01-01T00:00:10Z");

function passed(title: string): Judged {
  return { title, passed: true, seconds: 1, endedAt: at, message: "", namespaces: [] };
}

function failed(
  title: string,
  message: string,
  journal?: readonly Said[],
  nodes: readonly string[] = [],
): Judged {
  const result = { title, passed: false, seconds: 5, endedAt: at, message, namespaces: ["daemonsets-138"] };
  return journal === undefined ? result : { ...result, cost: costOf(result, journal, nodes) };
}

function played(mode: Mode, ...results: readonly Judged[]): Played {
  return { mode, results, minutes: 1, faults: [], wrong: [], reflectors: { listedAnew: 0, warnings: [] } };
}

/** As clients get it. */
const messages = [lostUnanswered("api-0"), failureOfCut(false)].map((failure) => {
  return `creating CR: ${(JSON.parse(statusBody(failure, false)) as { message: string }).message}`;
});
const [unknown = ""] = messages;
const closed = "Watch closed unexpectedly";
const inBurst: Said = { ts: at - 1_000, msg: "watches.ended", reason: "initial_events" };

test("a spec that passes straight and fails through is a defect, one that fails in both is none", () => {
  const straight = played("straight", passed("a"), failed("b", "no container"));
  const through = played("through", failed("a", "too late"), failed("b", "no container"));
  assert.equal(defects([straight, through]), ["through: a: too late"]);
});

test("a spec that passes straight and is not run through is a defect", () => {
  const runs = [played("straight", passed("a"), passed("b")), played("through", passed("a"))];
  assert.equal(defects(runs), ["through: b: was not run"]);
});

test("without a straight run each failure is a defect", () => {
  assert.equal(defects([played("through with faults", failed("a", "closed"))]), [
    "through with faults: a: closed",
  ]);
});

test("a write of unknown outcome is a defect, unless apiservers are struck", () => {
  for (const message of messages) {
    assert.is(defects([played("through", failed("a", message))]).length, 1);
    assert.equal(defects([played("through with faults", failed("a", message, []))]), []);
  }
});

test("a spec that waits for a pod is a defect, unless the outcome of a write of its node is unknown", () => {
  const line = (pod: string): string =>
    `{"msg":"failed to apply stage","err":"failed to patch pod: ${unknown}","pod":"${pod}","stage":"pod-ready"}`;
  const costs = (nodes: readonly string[]): number =>
    defects([played("through with faults", failed("a", "no pod", [], nodes))]).length;
  assert.is(costs([]), 1);
  assert.is(costs([line("other-1/daemon-set-5phq5")]), 1);
  assert.is(costs([line("daemonsets-138/daemon-set-5phq5")]), 0);
});

test("a closed watch is a defect, unless the proxy could not move it within its initial events", () => {
  const costs = (journal: readonly Said[]): number =>
    defects([played("through with faults", failed("a", closed, journal))]).length;
  assert.is(costs([]), 1);
  assert.is(costs([{ ...inBurst, reason: "no_backend" }]), 1);
  assert.is(costs([{ ...inBurst, ts: at - 60_000 }]), 1);
  assert.is(costs([inBurst]), 0);
});

test("the table has the specs that differ from a pass, with the verdict of each run", () => {
  const runs = [
    played("straight", passed("a"), passed("b")),
    played("through with faults", failed("a", unknown, []), passed("b")),
  ];
  const text = table(runs);
  assert.match(text, "| a | passed | outcome of a write unknown |");
  assert.not.match(text, "| b |");
  assert.match(text, "| passed | 2 | 1 |");
});

test.run();
