import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { type TraceRecord, traceLimits } from "../../../src/proxy/observe/request-trace.ts";
import { traceParentIn } from "../../../src/proxy/observe/trace-parent.ts";
import { Tracer } from "../../../src/proxy/observe/tracer.ts";
import { manualClock } from "../../support/clock.ts";
import { bearer, PlayedPath } from "../../support/path.ts";
import { PlayedWatch } from "../../support/watch-path.ts";

const test = suite("proxy/observe/tracer");

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";
const field = (value: string): Field => new Field("traceparent", value);
const sampled = `00-${traceId}-${spanId}-01`;
const unsampled = `00-${traceId}-${spanId}-00`;

test("a trace context is read as W3C defines it, and a malformed one counts as none", () => {
  const valid: Readonly<Record<string, boolean>> = {
    [sampled]: true,
    [unsampled]: false,
    [`00-${traceId}-${spanId}-03`]: true,
    [`cc-${traceId}-${spanId}-01-what-the-future-brings`]: true,
  };
  for (const [value, isSampled] of Object.entries(valid))
    assert.equal(traceParentIn([new Field("a", "b"), field(value)]), { traceId, spanId, isSampled }, value);
  for (const value of [
    "",
    `ff-${traceId}-${spanId}-01`,
    `00-${traceId}-${spanId}-01-more`,
    `00-${"0".repeat(32)}-${spanId}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    sampled.toUpperCase(),
    `00-${traceId}-${spanId}`,
  ])
    assert.is(traceParentIn([field(value)]), undefined, value);
  assert.is(traceParentIn([field(sampled), field(sampled)]), undefined, "two fields");
  assert.is(traceParentIn([]), undefined);
});

/** Returns how many of a thousand requests are traced. */
function traced(share: number | undefined, fields: readonly Field[]): number {
  const clock = manualClock();
  const tracer = new Tracer(clock, { take() {} });
  tracer.configure(share);
  return Array.from({ length: 1000 }, () => tracer.begin(fields, 0)).filter((trace) => trace !== undefined)
    .length;
}

test("the client's decision comes before the share, and off means no trace at all", () => {
  assert.equal([traced(1, []), traced(0, [])], [1000, 0]);
  const some = traced(0.5, []);
  assert.ok(some > 300 && some < 700, `${some}`);
  assert.equal([traced(0, [field(sampled)]), traced(1, [field(unsampled)])], [1000, 0]);
  assert.is(traced(1, [field("malformed")]), 1000);
  assert.equal([traced(undefined, []), traced(undefined, [field(sampled)])], [0, 0]);
});

/** Returns a data path that traces this share of its requests, and the records of all traces that have ended. */
function tracedPath(backends: string[], share = 1): { path: PlayedPath; records: TraceRecord[] } {
  const records: TraceRecord[] = [];
  const traces = { share, take: (record: TraceRecord) => void records.push(record) };
  return { path: new PlayedPath(backends, { traces }), records };
}

const parentsIn = (fields: readonly Field[]): string[] =>
  fields.filter(({ name }) => name === "traceparent").map(({ value }) => value);

/** The spans of a trace, each as "name backend reason error: from ms to ms since the request". */
function spansOf({ spans, startMs }: TraceRecord): string[] {
  return spans.map((span) => {
    const words = [span.name, span.from, span.backend, span.reason, span.error].filter((word) => word !== "");
    return `${words.join(" ")}: ${Math.round(span.startMs - startMs)}-${Math.round(span.endMs - startMs)}`;
  });
}

test("a traced request's backend gets the request's span as parent, and the record has the facts without the query", () => {
  const { path, records } = tracedPath(["a"], 0);
  path.settle();
  const client = path.client();
  client.ask("GET", "/api/v1/pods?token=geheim", [
    bearer("t"),
    field(sampled),
    new Field("user-agent", "k/1"),
  ]);
  path.settle();
  const [parent = "", ...others] = parentsIn(path.backend("a").last.request.fields);
  path.clock.advance(50);
  path.backend("a").last.answer(200, "[]");
  path.settle();
  const [record] = records;
  assert.ok(record);
  assert.is(parent, `00-${traceId}-${record.spanId}-01`);
  assert.equal(others, []);
  assert.is.not(record.spanId, spanId);
  const { traceId: id, parentId, path: target, method, verb, code, end, userAgent, protocol } = record;
  assert.equal(
    [id, parentId, target, method, verb, code, end, userAgent, protocol],
    [traceId, spanId, "/api/v1/pods", "GET", "LIST", 200, "complete", "k/1", "2"],
  );
  assert.match(record.auditId, /^[0-9a-f-]{36}$/);
  assert.is(Math.round(record.endMs - record.startMs), 50);
  assert.is(record.endMs, path.clock.wall());
  assert.equal(spansOf(record), ["attempt a: 0-50"]);
  assert.not.match(JSON.stringify(records), /geheim|Bearer/i);
});

test("the trace context of a request that is not traced passes unchanged, and no trace is recorded", () => {
  for (const [share, value] of [
    [0, "nonsense"],
    [1, unsampled],
  ] as const) {
    const { path, records } = tracedPath(["a"], share);
    path.settle();
    path.client().ask("GET", "/api/v1/pods", [bearer("t"), field(value)]);
    path.settle();
    assert.equal(parentsIn(path.backend("a").last.request.fields), [value]);
    path.backend("a").last.answer(200, "[]");
    path.settle();
    assert.equal(records, []);
  }
});

test("a lost attempt, the wait for another backend and the retry are spans of their own", () => {
  const { path, records } = tracedPath(["a"]);
  path.settle();
  const client = path.client();
  client.ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  path.clock.advance(30);
  path.backend("a").kill();
  path.settle();
  path.backend("a").isDown = false;
  for (let times = 0; times < 40 && path.backend("a").asked.length < 2; times++) {
    path.clock.advance(250);
    path.settle();
  }
  path.backend("a").last.answer(200, "[]");
  path.settle();
  const names = records.flatMap((record) => spansOf(record).map((text) => text.split(":")[0]));
  assert.is(names[0], "attempt a lost");
  assert.ok(names.includes("queue"), names.join(", "));
  assert.is(names.at(-1), "attempt a retry");
  const [record] = records;
  const [first, queue] = [record?.spans[0], record?.spans.find(({ name }) => name === "queue")];
  assert.is(first?.endMs, queue?.startMs, "the wait begins with the loss");
});

test("a hedge that wins ends the first attempt as superseded", () => {
  const { path, records } = tracedPath(["a", "b"]);
  path.settle();
  const client = path.client();
  client.ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  const first = path.backend("a").asked.length > 0 ? "a" : "b";
  const other = first === "a" ? "b" : "a";
  path.backend(first).blackHole();
  for (let times = 0; times < 40 && path.backend(other).asked.length === 0; times++) {
    path.clock.advance(100);
    path.settle();
  }
  path.backend(other).last.answer(200, "[]");
  path.settle();
  const names = records.flatMap((record) => spansOf(record).map((text) => text.split(":")[0]));
  assert.equal(names, [`attempt ${first} superseded`, `attempt ${other} hedge`]);
});

test("a watch's trace has its moves, with the time that each took", () => {
  const { path, records } = tracedPath(["a", "b"]);
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "=8");
  path.settle();
  const [lost, next] = watch.from === path.backend("a") ? ["a", "b"] : ["b", "a"];
  watch.from.kill();
  path.settle();
  path.clock.advance(5);
  watch.serve(watch.to, "+9a");
  path.settle();
  watch.ear.stream.reset(8);
  path.settle();
  const [record] = records;
  assert.ok(record);
  const moves = record.spans.filter(({ name }) => name === "move");
  assert.equal(
    moves.map(({ from, backend, reason }) => [from, backend, reason]),
    [[lost, next, "lost"]],
  );
  assert.equal([record.verb, record.end], ["WATCH", "client_gone"]);
});

test("a trace has at most so many spans, and counts the others", () => {
  const records: TraceRecord[] = [];
  const clock = manualClock();
  const tracer = new Tracer(clock, { take: (record) => void records.push(record) });
  tracer.configure(1);
  const trace = tracer.begin([], clock.now());
  for (let times = 0; times < traceLimits.spans + 7; times++)
    trace?.moved({ reason: "lost", from: "a", to: "b", ms: 1 });
  const facts = { method: "GET", path: "/", verb: "GET", auditId: "a", client: "c", userAgent: "u" };
  trace?.end({ ...facts, protocol: "2", code: 200, end: "complete", bytes: 0 }, clock.now());
  assert.equal([records[0]?.spans.length, records[0]?.droppedSpans], [traceLimits.spans, 7]);
});

test.run();
