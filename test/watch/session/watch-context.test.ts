import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { Origins, ownOrigin } from "../../../src/kube/api-origin.ts";
import { classify } from "../../../src/kube/request-info.ts";
import { watchRequestOf } from "../../../src/kube/watch-request.ts";
import { type RequestContext, shareFields } from "../../../src/upstream/context/request-context.ts";
import {
  answerOf,
  firstFields,
  listRequestOf,
  mayHaveBookmarks,
  requestAt,
  resourceOf,
  timesOf,
  type WatchContext,
  watchContextOf,
  withBookmarks,
} from "../../../src/watch/session/watch-context.ts";
import { orderOf } from "../../support/attempt-owner.ts";
import { clientOf } from "../../support/client.ts";

const test = suite("watch-context");

const target = "/api/v1/pods?watch=1&resourceVersion=7&labelSelector=a%3Db";

function watchOf(fields: readonly Field[]): RequestContext {
  const client = clientOf();
  return orderOf({ client, kind: "watch", verb: "watch", fields, auditId: "x" });
}

function asked(more: Partial<WatchContext> = {}): WatchContext {
  return {
    ...watchRequestOf(target),
    target,
    isRepeating: false,
    origin: ownOrigin,
    isInjected: false,
    servedBy: undefined,
    seenVersion: undefined,
    resource: "/pods",
    isWhole: false,
    scope: "",
    ...more,
  };
}

test("a list for its version only has the watch's identity, and neither its form nor its packing", () => {
  const fields = [
    new Field(":path", target),
    new Field("accept", "application/vnd.kubernetes.protobuf;stream=watch"),
    new Field("accept-encoding", "gzip"),
    new Field("authorization", "Bearer t"),
    new Field("impersonate-user", "jane"),
  ];
  const order = listRequestOf(watchOf(fields), asked());
  const told = order?.fields.map(({ name, value }) => `${name}: ${value}`);
  assert.equal(told, [
    ":path: /api/v1/pods?labelSelector=a%3Db&limit=1",
    "authorization: Bearer t",
    "impersonate-user: jane",
    "accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
  ]);
  assert.is(listRequestOf(watchOf(fields), asked({ target: "/api/v1/watch/pods" })), undefined);
});

const times = { ageMs: 0, leftMs: 9000, liveMs: 0 };

test("the request to another backend has the client's own header fields, in the same order, except the path (row 15)", () => {
  const fields = [
    new Field(":method", "GET"),
    new Field(":path", target),
    new Field("authorization", "Bearer t"),
    new Field("impersonate-user", "jane"),
    new Field("accept", "application/json;as=Table;g=meta.k8s.io;v=v1"),
    new Field("audit-id", "x"),
  ];
  const order = requestAt(watchOf(fields), asked(), "42", times);
  assert.is(
    order.fields[1]?.value,
    "/api/v1/pods?watch=1&labelSelector=a%3Db&resourceVersion=42&timeoutSeconds=9",
  );
  for (const index of [0, 2, 3, 4, 5]) assert.is(order.fields[index], fields[index]);
  assert.is(order.fields.length, fields.length);
});

test("answered watches of one connection share their fields, and each moves with its own path and audit id", () => {
  const client = clientOf();
  const fieldsOf = (id: string, token: string): Field[] => [
    new Field(":method", "GET"),
    new Field(":path", `/api/v1/pods?watch=1&resourceVersion=7&labelSelector=${id}`),
    new Field("authorization", `Bearer ${token}`),
    new Field("audit-id", "another"),
    new Field("audit-id", id),
  ];
  const watches = ["a", "b", "c"].map((id) =>
    orderOf({ client, kind: "watch", fields: fieldsOf(id, id === "c" ? "two" : "one"), auditId: id }),
  );
  for (const watch of watches) shareFields(watch);
  const [a, b, c] = watches;
  assert.is(a?.fields, b?.fields);
  assert.is.not(a?.fields, c?.fields);
  for (const watch of watches) {
    const own = { ...watch, fields: fieldsOf(watch.auditId, watch === c ? "two" : "one") };
    const told = [watch, own].map((context) =>
      requestAt(context, asked({ target: watch.target }), "42", times).fields.map(
        ({ name, value }) => `${name}: ${value}`,
      ),
    );
    assert.equal(told[0], told[1]);
  }
});

test("an audit id of the client moves as it came: empty, or never indexed", () => {
  const client = clientOf();
  const heads = [
    ["", "generated"],
    ["generated", ""],
    ["generated", "generated"],
  ].map((ids) => [new Field(":path", target), ...ids.map((id) => new Field("audit-id", id))]);
  const watches = [...heads, [new Field(":path", target), new Field("audit-id", "generated", true)]].map(
    (fields) => orderOf({ client, kind: "watch", fields, auditId: "generated" }),
  );
  const idsOf = (fields: readonly Field[]): unknown =>
    fields.slice(1).map(({ value, isNeverIndexed }) => [value, isNeverIndexed]);
  const before = watches.map(({ fields }) => idsOf(fields));
  for (const watch of watches) shareFields(watch);
  assert.equal(
    watches.map((watch) => idsOf(requestAt(watch, asked(), "42", times).fields)),
    before,
  );
});

test("a long head is not shared, because the connection would keep it", () => {
  const fields = [new Field(":path", target), new Field("x", "x".repeat(limits.sharedHeadBytes))];
  const watch = watchOf(fields);
  shareFields(watch);
  assert.is(watch.fields, fields);
  assert.is.not(
    watch.client.shareWatchFields(Array.from(fields)),
    fields,
    "the connection has not kept them",
  );
});

test("bookmarks that the proxy asked for are asked for again", () => {
  const order = requestAt(watchOf([new Field(":path", target)]), asked({ isInjected: true }), "42", times);
  assert.match(order.fields[0]?.value ?? "", "&allowWatchBookmarks=true&");
});

test("without a version it is the client's own request", () => {
  assert.is(
    requestAt(watchOf([new Field(":path", target)]), asked(), undefined, { ...times, leftMs: undefined })
      .fields[0]?.value,
    target,
  );
});

test("a watch's times count from its request, its live time from the end of its initial events", () => {
  const request = watchRequestOf(`${target}&timeoutSeconds=20`);
  assert.equal(timesOf(request, 100, -1, 5100), { ageMs: 5000, leftMs: 15_000, liveMs: 5000 });
  assert.equal(timesOf(asked(), 100, 3100, 5100), { ageMs: 5000, leftMs: undefined, liveMs: 2000 });
});

const origins = new Origins({ customResourceAPIGroups: ["stable.example.com"] });
function orderFor(path: string): WatchContext {
  const info = classify("GET", path);
  return watchContextOf(path, info, { origin: origins.of(info) });
}

test("what a watch's events are is known from its resource", () => {
  const of = (path: string): WatchContext => orderFor(path);
  assert.ok(of("/api/v1/events?watch=1").isRepeating);
  assert.not(of("/api/v1/pods?watch=1").isRepeating);
  assert.ok(of("/apis/metrics.k8s.io/v1beta1/pods?watch=1").origin.isForeign);
});

test("bookmarks are asked for where they can be taken out again, and help", () => {
  const of = (path: string, accept: string): boolean =>
    withBookmarks(orderFor(path), [new Field("accept", accept)]).isInjected;
  const json = "application/json";
  const exact = "watch=1&resourceVersion=7";
  assert.ok(of(`/api/v1/pods?${exact}`, json));
  assert.ok(of(`/apis/stable.example.com/v1/crontabs?${exact}`, json));
  assert.ok(of(`/api/v1/pods?${exact}`, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"));
  for (const table of ["as=Table", 'AS="Table"', "v=v1;as=Table", "as=Table;v=v1, application/json"])
    assert.not(of(`/api/v1/pods?${exact}`, `application/json;${table}`), "its columns would go with them");
  assert.not(of(`/api/v1/pods?${exact}&allowWatchBookmarks=1`, json), "the client has them");
  assert.ok(of("/api/v1/pods?watch=1", json), "the bookmark after the initial events ends them");
  assert.not(of(`/api/v1/events?${exact}`, json), "there are none");
  assert.not(of(`/apis/metrics.k8s.io/v1beta1/pods?${exact}`, json), "another server's");
  assert.not(of(`/api/v1/pods?${exact}`, "application/cbor, application/json"), "it could not be read");
});

test("the proxy requests bookmarks with every start; a repeated request is the client's own", () => {
  for (const query of [
    "",
    "&resourceVersion=0",
    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
  ]) {
    const path = `/api/v1/pods?watch=1${query}`;
    const first = withBookmarks(orderFor(path), []);
    const fields = [new Field(":path", path)];
    assert.is(firstFields(first, fields)[0]?.value, `${path}&allowWatchBookmarks=true`);
    assert.ok(mayHaveBookmarks(first));
    const replayed = requestAt(watchOf(fields), first, undefined, { ageMs: 0, leftMs: undefined, liveMs: 0 });
    assert.is(replayed.fields[0]?.value, path);
  }
});

test("what goes up first is the client's own, but for the bookmarks", () => {
  const fields = [new Field(":method", "GET"), new Field(":path", target)];
  assert.equal(firstFields(asked(), fields), fields);
  assert.is(firstFields(asked({ isInjected: true }), fields)[1]?.value, `${target}&allowWatchBookmarks=true`);
});

test("of an answer's head, what decides whether the watch goes on with it", () => {
  const head = [
    new Field(":status", "429"),
    new Field("retry-after", "3"),
    new Field("content-type", "text/plain"),
  ];
  assert.equal(answerOf(head), {
    status: 429,
    contentType: "text/plain",
    contentEncoding: "",
    retryAfterMs: 3000,
  });
  assert.is(answerOf([new Field(":status", "200")]).retryAfterMs, undefined);
  assert.is(answerOf([new Field("retry-after", "Fri, 31 Dec 1999 23:59:59 GMT")]).retryAfterMs, undefined);
});

test("all of a resource is watched only without a namespace, a name and any selector, however they are written", () => {
  const isWhole = (path: string): boolean => orderFor(path).isWhole;
  assert.ok(isWhole("/api/v1/pods?watch=true"));
  assert.ok(isWhole("/apis/apps/v1/deployments?watch=true&resourceVersion=7&timeoutSeconds=9"));
  for (const path of [
    "/api/v1/namespaces/n/pods?watch=true",
    "/api/v1/watch/pods/x",
    "/api/v1/pods?watch=true&labelSelector=a",
    "/api/v1/pods?watch=true&field%53elector=metadata.name%3Dx",
    "/api/v1/pods?watch=true&shardSelector=1",
  ])
    assert.not(isWhole(path), path);
});

test("a scope is a resource in one namespace or in all; a name or a selector leaves less than that", () => {
  const scopeOf = (path: string): string => orderFor(path).scope;
  assert.is(scopeOf("/api/v1/namespaces/n/pods?watch=true"), "/pods n");
  assert.is(scopeOf("/apis/apps/v1/deployments?watch=true"), "apps/deployments ");
  assert.is(resourceOf("apps/deployments n"), "apps/deployments");
  for (const path of [
    "/api/v1/watch/namespaces/n/pods/x",
    "/api/v1/namespaces/n/pods?watch=true&labelSelector=a",
  ])
    assert.is(scopeOf(path), "", path);
});

test.run();
