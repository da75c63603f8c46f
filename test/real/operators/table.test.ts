/** What of a run counts against the promise. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { lostUnanswered, statusBody } from "../../../src/proxy/request/local-reply.ts";
import { isOfUnknownOutcome, linesOf } from "./lines.ts";
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
  wrong: [],
  reasons: [],
};

test("a run in which clients notice nothing is told by its figures alone", () => {
  assert.equal(noticed(calm), []);
  assert.match(table([calm]), /\| watchkeeper \| 1 \| 1 \| 0 \| 0 \| 0 \|.* 9 \| 9 \| 0 \|$/m);
});

test("each thing that a client notices counts", () => {
  const at = Date.parse("2026-01-01T00:00:00Z");
  const asked = { at, user: "python-0", kind: "list", what: "/pods?", from: "", timeoutMs: 0 } as const;
  const line = { at, who: "node-a-0", event: "error", text: "PATCH task: 500" } as const;
  const noisy: Played[] = [
    { ...calm, leaderChanges: ["kube-system/kube-scheduler: a -> b"] },
    { ...calm, relists: [asked] },
    { ...calm, closed: [asked] },
    { ...calm, errors: [line] },
    { ...calm, restarts: ["kube-scheduler"] },
    { ...calm, unreconciled: ["python/task-0"] },
  ];
  assert.equal(
    noisy.map((played) => noticed(played).length),
    [1, 1, 1, 1, 1, 1],
  );
});

test("a write in flight at an apiserver that failed is told apart, a read is not", () => {
  const { message } = JSON.parse(statusBody(lostUnanswered("api-0"), false)) as { message: string };
  const [write, read] = ["PATCH /tasks/a", "GET /tasks/a"].map((what) => {
    return { event: "error", at: 1, text: `${what}: 502 ${message}` } as const;
  });
  assert.is(write !== undefined && isOfUnknownOutcome(write), true);
  assert.is(read !== undefined && isOfUnknownOutcome(read), false);
});

test("a connection that ends under a write counts as an unknown outcome through a rival only", () => {
  const line = { event: "error", at: 1, text: "PUT /leases/a: unexpected EOF" } as const;
  assert.is(isOfUnknownOutcome(line), false);
  assert.is(isOfUnknownOutcome(line, true), true);
});

test("operators' lines stand between those of their libraries", () => {
  const log = 'I1123 leader\n{"event":"leading","at":1,"text":"python-0"}\n{"level":"info"}\n';
  assert.equal(linesOf(log), [{ event: "leading", at: 1, text: "python-0" }]);
  const [mixed] = linesOf('{"event":"error","at":2,"text":"PUT: \\"a\\" }"}[main] WARN it failed\n');
  assert.equal(mixed, { event: "error", at: 2, text: 'PUT: "a" }' });
});

test.run();
