/** Which differences between the runs of Kubernetes' own suite count as defects of the proxy. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { lostUnanswered, statusBody } from "../../../src/proxy/request/local-reply.ts";
import type { Said } from "../rig/said.ts";
import { costOf } from "./costs.ts";
import type { Judged, Mode, Played } from "./play.ts";
import { defects, table } from "./table.ts";

const test = suite("real/conformance/table");

const at = Date.parse("2026-01-01T00:00:10Z");

function passed(title: string): Judged {
  return {
    title,
    passed: true,
    seconds: 5,
    startedAt: at - 5_000,
    failedAt: at,
    message: "",
    namespaces: ["daemonsets-138"],
  };
}

/** `journal`: what the proxy logged while apiservers failed. */
function failed(title: string, message: string, journal: readonly Said[] = []): Judged {
  const one = { ...passed(title), passed: false, message };
  return { ...one, cost: costOf(one, journal, outages) };
}

function played(mode: Mode, ...results: readonly Judged[]): Played {
  return { mode, results, minutes: 1, faults: [], wrong: [], reflectors: { listedAnew: 0, warnings: [] } };
}

const outages = [{ backend: "api-0", since: at - 9_000, until: at }];
const { code, message: err } = lostUnanswered("api-0");
/** The error as clients get it. */
const unknown = `creating CR: ${(JSON.parse(statusBody(lostUnanswered("api-0"), false)) as { message: string }).message}`;
const write: Said = { ts: at - 1_000, msg: "request.failed", code, err, verb: "POST", backend: "api-0" };
const closed = "Watch closed unexpectedly";
const isInitial = { reason: "initial_events", from: "api-0", resource: "/configmaps" };
const inBurst: Said = { ts: at - 1_000, msg: "watches.ended", ...isInitial };

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

/** Returns the number of defects if a spec fails with this message. */
function defectsOf(message: string, journal: readonly Said[]): number {
  return defects([played("through with faults", failed("a", message, journal))]).length;
}

test("a write of unknown outcome is a defect, unless its apiserver was struck then", () => {
  assert.is(defectsOf(unknown, [write]), 0);
  assert.is(defectsOf(unknown, []), 1);
  const others = [
    { verb: "GET" },
    { verb: "WATCH" },
    { backend: "api-1" },
    { ts: at + 3_000 },
    { ts: at - 6_000 },
  ];
  for (const other of others) assert.is(defectsOf(unknown, [{ ...write, ...other }]), 1);
  assert.is(defectsOf("too late", [write]), 1);
});

test("a spec that waits for a pod is a defect, unless the outcome of a write of its node is unknown", () => {
  const ofNode = (namespace: string): Said => {
    const uri = `/api/v1/namespaces/${namespace}/pods/daemon-set-5phq5/status`;
    return { ...write, verb: "PATCH", userAgent: "kwok/v0.8.0 (linux/amd64)", URI: uri };
  };
  assert.is(defectsOf("no pod", [ofNode("daemonsets-138")]), 0);
  assert.is(defectsOf("no pod", [ofNode("other-1")]), 1);
  assert.is(defectsOf("no pod", [{ ...ofNode("daemonsets-138"), userAgent: "e2e.test" }]), 1);
  assert.is(defectsOf("no pod", [{ ...ofNode("daemonsets-138"), code: "outcome-unknown" }]), 1);
});

test("a closed watch is a defect, unless the proxy could not move it within its initial events", () => {
  assert.is(defectsOf(closed, [inBurst]), 0);
  assert.is(defectsOf(closed, []), 1);
  const others = [
    { reason: "no_backend" },
    { resource: "/pods" },
    { from: "api-1" },
    { ts: at - 6_000 },
    { ts: at + 3_000 },
  ];
  for (const other of others) assert.is(defectsOf(closed, [{ ...inBurst, ...other }]), 1);
});

test("the table has the specs that differ from a pass, with the verdict of each run", () => {
  const runs = [
    played("straight", passed("a"), passed("b")),
    played("through with faults", failed("a", unknown, [write]), passed("b")),
  ];
  const text = table(runs);
  assert.match(text, "| a | passed | outcome of a write unknown |");
  assert.not.match(text, "| b |");
  assert.match(text, "| passed | 2 | 1 |");
});

test.run();
