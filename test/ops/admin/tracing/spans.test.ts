import { suite } from "uvu";
import * as assert from "uvu/assert";
import { spansOf } from "../../../../src/ops/admin/tracing/spans.ts";
import { traceOf } from "../../../support/trace.ts";

const test = suite("ops/admin/tracing/spans");

type Spans = ReturnType<typeof spansOf>;

function spans(change: Parameters<typeof traceOf>[0] = {}): Spans {
  let count = 0;
  const resource: Parameters<typeof spansOf>[1] = {
    attributes: {},
    merge: () => resource,
    getRawAttributes: () => [],
  };
  return spansOf(traceOf(change), resource, () => {
    count += 1;
    return `${count}`.padStart(16, "0");
  });
}

const attempt = {
  name: "attempt",
  startMs: 1_800_000_000_001,
  endMs: 1_800_000_000_004.25,
  backend: "cp-1",
  reason: "",
  from: "",
  error: "",
} as const;

test("a request is a server span with the attributes of OpenTelemetry's conventions for HTTP, and the Audit-ID", () => {
  const [root] = spans();
  assert.equal(root?.attributes, {
    "http.request.method": "GET",
    "url.scheme": "https",
    "url.path": "/api/v1/pods",
    "client.address": "10.0.0.9",
    "user_agent.original": "kubectl/v1.36.1",
    "network.protocol.name": "http",
    "network.protocol.version": "2",
    "http.response.body.size": 512,
    "audit-id": "a-1",
    "watchkeeper.verb": "LIST",
    "watchkeeper.end": "complete",
    "http.response.status_code": 200,
  });
  assert.equal([root?.name, root?.kind, root?.status.code], ["GET LIST", 1, 0]);
  assert.equal(
    [root?.startTime, root?.endTime, root?.duration],
    [
      [1_800_000_000, 0],
      [1_800_000_000, 10_500_000],
      [0, 10_500_000],
    ],
  );
  assert.is(root?.parentSpanContext, undefined);
});

test("the client's span is the parent, and the request's span is the parent of its parts", () => {
  const [root, part] = spans({ parentId: "b".repeat(16), spans: [attempt] });
  assert.is(root?.parentSpanContext?.spanId, "b".repeat(16));
  assert.equal(part?.parentSpanContext, root?.spanContext());
  assert.is(part?.spanContext().traceId, root?.spanContext().traceId);
  assert.equal([part?.name, part?.kind], ["GET", 2]);
});

test("a lost attempt, a failed request and a 5xx are errors; a superseded hedge and a client that leaves are none", () => {
  const errorOf = (change: Parameters<typeof traceOf>[0]): unknown[] => {
    const one = spans(change).at(-1);
    return [one?.status.code, one?.attributes["error.type"]];
  };
  assert.equal(errorOf({ spans: [{ ...attempt, error: "lost" }] }), [2, "lost"]);
  assert.equal(errorOf({ spans: [{ ...attempt, error: "superseded" }] }), [0, "superseded"]);
  assert.equal(errorOf({ code: 0, end: "backend_gone" }), [2, "backend_gone"]);
  assert.equal(errorOf({ code: 503, end: "refused" }), [2, "503"]);
  assert.equal(errorOf({ code: 0, end: "client_gone" }), [0, undefined]);
  assert.equal(errorOf({ code: 404 }), [0, undefined]);
});

test("waits and moves name the backends", () => {
  const [, queue, move] = spans({
    spans: [
      { ...attempt, name: "queue", backend: "" },
      { ...attempt, name: "move", reason: "lost", from: "cp-2" },
    ],
  });
  assert.equal([queue?.name, queue?.kind], ["watchkeeper.queue", 0]);
  assert.equal(move?.attributes, {
    "audit-id": "a-1",
    "watchkeeper.backend": "cp-1",
    "watchkeeper.move.reason": "lost",
    "watchkeeper.move.from": "cp-2",
  });
});

test("what looks like a token in a path or User-Agent is redacted, as in the access log", () => {
  const [root] = spans({
    path: "/api/v1/token=geheimgeheim",
    userAgent: "x Bearer geheimgeheim eyJhbGciOiJSUzI1NiJ9.x",
  });
  assert.not.match(JSON.stringify(root?.attributes), /geheim|eyJ/);
});

test.run();
