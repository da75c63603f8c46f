/** Which results of a run break watchkeeper's promise. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { lostUnanswered, statusBody } from "../../../src/proxy/request/local-reply.ts";
import type { Said } from "../rig/said.ts";
import { Leaders } from "./leaders.ts";
import { explain, explainByTime, linesOf, type Told } from "./lines.ts";
import type { Played } from "./play.ts";
import { noticed, table } from "./table.ts";

const test = suite("real/operators/table");

const calm: Played = {
  kind: "watchkeeper",
  minutes: 1,
  faults: ["api-0 killed"],
  processes: 20,
  leaderChanges: [],
  relists: [],
  closed: [],
  closedWebSockets: [],
  errors: [],
  unknownWrites: [],
  restarts: [],
  reconciles: 2,
  latencies: [5, 9],
  unreconciled: [],
  slowestDirectMs: 4,
  wrong: [],
  ended: [],
};

test("a run in which clients notice nothing is told by its figures alone", () => {
  assert.equal(noticed(calm), []);
  assert.match(table([calm]), /\| watchkeeper \| 1 \| 1 \| 20 \| 0 \| 0 \| 0 \|.* 9 \| 9 \| 4 \| 0 \|$/m);
});

test("each thing that a client notices counts", () => {
  const at = Date.parse("2026-01-01T00:00:00Z");
  const what = { user: "python-0", what: "/pods?", from: "" };
  const asked = { at, ...what, kind: "list", timeoutMs: 0, latestMs: 0, isOver: false } as const;
  const line = { at, who: "node-a-0", event: "error", text: "PATCH task: 500" } as const;
  const noisy: Played[] = [
    { ...calm, leaderChanges: ["kube-system/kube-scheduler: a -> b"] },
    { ...calm, relists: [asked] },
    { ...calm, closed: [asked] },
    { ...calm, ended: ['{"msg":"watches.ended"}'] },
    { ...calm, errors: [line] },
    { ...calm, restarts: ["kube-scheduler"] },
    { ...calm, unreconciled: ["python/task-0"] },
  ];
  assert.equal(
    noisy.map((played) => noticed(played).length),
    [1, 1, 1, 1, 1, 1, 1],
  );
});

const began = Date.parse("2026-01-01T00:00:00Z");
const outages = [{ backend: "api-0", since: began, until: began + 9_000 }];
const failure = lostUnanswered("api-0");
const { message } = JSON.parse(statusBody(failure, false)) as { message: string };

/** Returns the log entry of a request that the proxy answered itself because the apiserver did not. */
function entry(seconds: number, more: Readonly<Record<string, unknown>> = {}): Said {
  const { code, message: err } = failure;
  return {
    ts: began + seconds * 1_000,
    msg: "request.failed",
    code,
    err,
    verb: "PATCH",
    backend: "api-0",
    ...more,
  };
}

function told(seconds: number, text = `PATCH a: 502 ${message}`): Told {
  return { event: "error", at: began + seconds * 1_000, who: "python", text };
}

test("a write in flight at an apiserver that failed is no error", () => {
  assert.equal(explain([told(2)], [entry(2)], outages), { unknownWrites: [told(2)], errors: [] });
});

test("a failed read is an error, of an operator and of any other client", () => {
  for (const verb of ["GET", "LIST", "WATCH", undefined]) {
    const { unknownWrites, errors } = explain([told(2)], [entry(2, { verb })], outages);
    assert.is(unknownWrites.length, 0);
    assert.equal(
      errors.map(({ who }) => who),
      ["python", "watchkeeper"],
    );
  }
});

test("a write at an apiserver without a fault, or before or after its fault, is an error", () => {
  const other = { backend: "api-1", err: lostUnanswered("api-1").message };
  for (const [seconds, more] of [
    [2, other],
    [-1, {}],
    [12, {}],
    [2, { err: other.err }],
  ] as const) {
    const text = `PATCH a: 502 watchkeeper: ${String(entry(seconds, more)["err"])}`;
    const { unknownWrites } = explain([told(seconds, text)], [entry(seconds, more)], outages);
    assert.is(unknownWrites.length, 0);
  }
});

test("a request that the proxy refused for another reason is an error", () => {
  assert.is(explain([], [entry(2, { code: "no-backend" })], outages).errors.length, 1);
});

test("each entry of the journal explains one failure, of its own time", () => {
  assert.is(explain([told(2), told(3)], [entry(2)], outages).errors.length, 1);
  assert.is(explain([told(7)], [entry(2)], outages).errors.length, 1);
  assert.is(
    explain([told(2, "PATCH a: 500 etcdserver: leader changed")], [entry(2)], outages).errors.length,
    1,
  );
});

test("through a rival, a write whose connection ended while an apiserver failed is of unknown outcome", () => {
  const [text, read] = ["PUT /leases/a: unexpected EOF", "GET /leases/a: unexpected EOF"];
  const errors = [told(2, text), told(20, text), told(2, read)];
  assert.equal(explainByTime(errors, outages).unknownWrites, [told(2, text)]);
});

function lease(holderIdentity: string, renewed: number): Parameters<Leaders["take"]>[0][number] {
  const renewTime = new Date(began + renewed * 1_000).toISOString();
  const metadata = { namespace: "python", name: "python" };
  return { metadata, spec: { holderIdentity, leaseDurationSeconds: 15, renewTime } };
}

function leadersOf(reads: readonly (readonly [number, string, number])[]): Leaders {
  const leaders = new Leaders(() => ({ url: "https://127.0.0.1:1", caFile: "", token: "" }), began);
  for (const [seconds, holder, renewed] of reads)
    leaders.take([lease(holder, renewed)], began + seconds * 1_000);
  leaders.stop();
  return leaders;
}

test("a Lease with another holder, and one that is not renewed in time, are changes of the leader", () => {
  const changes = (...reads: readonly (readonly [number, string, number])[]): number =>
    leadersOf(reads).changes.length;
  assert.is(changes([1, "a", 0], [2, "a", 1]), 0);
  assert.is(changes([1, "a", 0], [2, "b", 1]), 1);
  assert.is(changes([1, "a", 0], [9, "a", 0], [15, "a", 0], [16, "a", 0]), 1);
});

test("a time in which no Lease could be read is told", () => {
  const [gap = ""] = leadersOf([
    [1, "a", 0],
    [12, "a", 11],
  ]).gaps;
  assert.match(gap, "no Lease was read for 11000 ms");
});

test("operators' lines stand between those of their libraries", () => {
  const log = 'I1123 leader\n{"event":"leading","at":1,"text":"python-0"}\n{"level":"info"}\n';
  assert.equal(linesOf(log), [{ event: "leading", at: 1, text: "python-0" }]);
  const [mixed] = linesOf('{"event":"error","at":2,"text":"PUT: \\"a\\" }"}[main] WARN it failed\n');
  assert.equal(mixed, { event: "error", at: 2, text: 'PUT: "a" }' });
});

test.run();
