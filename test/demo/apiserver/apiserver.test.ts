import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Apiserver } from "../../../demo/apiserver/apiserver.ts";
import { bodyBytes } from "../../../demo/apiserver/ask.ts";
import { newCluster } from "../../../demo/apiserver/cluster.ts";
import { mapOf } from "../../../demo/objects/json.ts";
import { ask, eventsOf, jsonBody } from "../../support/ask.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("demo/apiserver/apiserver");
const configmaps = "/api/v1/namespaces/default/configmaps";

function newApiserver(name = "one"): Apiserver {
  const clock = manualClock();
  return new Apiserver({ store: newCluster(clock), clock, name });
}

test("two apiservers on one store show the same objects at the same version", () => {
  const clock = manualClock();
  const store = newCluster(clock);
  const one = new Apiserver({ store, clock, name: "one" });
  const two = new Apiserver({ store, clock, name: "two" });
  const watch = ask(two, "GET /api/v1/configmaps?watch=1&resourceVersion=5");
  ask(one, `POST ${configmaps}`, { body: { metadata: { name: "a" } } });
  assert.equal(eventsOf(watch), ["ADDED a@6"]);
  assert.is(ask(one, `GET ${configmaps}/a`).text, ask(two, `GET ${configmaps}/a`).text);
});

test("one with a cache of its own serves what that has to watches and to reads of any version", () => {
  const clock = manualClock();
  const store = newCluster(clock);
  const cache = newCluster(clock);
  const apiserver = new Apiserver({ store, cache, clock, name: "one", uncached: new Set(["events"]) });
  const lagging = ask(apiserver, "GET /api/v1/configmaps?watch=1&resourceVersion=5&allowWatchBookmarks=1");
  const direct = ask(apiserver, "GET /api/v1/events?watch=1&resourceVersion=5&allowWatchBookmarks=1");
  ask(apiserver, `POST ${configmaps}`, { body: { metadata: { name: "a" } } });
  assert.equal(eventsOf(lagging), []);
  assert.is(ask(apiserver, `GET ${configmaps}/a`).status, 200);
  assert.is(ask(apiserver, `GET ${configmaps}/a?resourceVersion=0`).status, 404);
  assert.match(ask(apiserver, `GET ${configmaps}?resourceVersion=0`).text, '"resourceVersion":"5"');
  assert.is(ask(apiserver, `GET ${configmaps}?resourceVersion=6`).status, 504);
  // Bookmarks come from the watch cache, so this watch gets none.
  clock.advance(60_000);
  assert.equal(eventsOf(direct), []);
});

test("events are written as the client can read them, where that is known", () => {
  const clock = manualClock();
  const encode = (type: string): Buffer => Buffer.from(`<${type}>`);
  const encodingFor = (accept: string) =>
    accept === "odd,application/json" ? { contentType: "odd", encode } : undefined;
  const apiserver = new Apiserver({ store: newCluster(clock), clock, name: "one", encodingFor });
  const odd = ask(apiserver, "GET /api/v1/namespaces?watch=1", { accept: "odd,application/json" });
  assert.is(odd.fields.get("content-type"), "odd");
  assert.is(odd.text, "<ADDED>".repeat(4));
});

test("the audit id of the asker is kept, and without one the apiserver gives its own", () => {
  const apiserver = newApiserver("cp-1");
  assert.is(ask(apiserver, "GET /livez", { auditId: "mine" }).fields.get("audit-id"), "mine");
  assert.is(ask(apiserver, "GET /livez").fields.get("audit-id"), "cp-1-2");
  assert.is(apiserver.askedCount, 2);
});

test("health, version and discovery need no Accept that can be met", () => {
  const apiserver = newApiserver();
  for (const path of ["/livez", "/readyz", "/healthz", "/readyz/etcd"])
    assert.is(ask(apiserver, `GET ${path}`).text, "ok", path);
  assert.is(jsonBody(ask(apiserver, "GET /version"))["major"], "1");
  const head = ask(apiserver, "HEAD /livez");
  assert.equal([head.status, head.text, head.fields.get("content-length")], [200, "", "2"]);
  assert.is(ask(apiserver, "POST /livez").status, 405);
});

test("what cannot be served is refused with a Status", () => {
  const apiserver = newApiserver();
  const huge = Buffer.alloc(bodyBytes + 1);
  const deep = Buffer.from(
    `{"metadata":{"name":"a"},"data":${'{"a":'.repeat(200_000)}1${"}".repeat(200_001)}`,
  );
  for (const [what, more, code] of [
    ["GET /api/v1/nodes", {}, 404],
    ["GET /api/v1/%zz", {}, 404],
    ["GET /nothing", {}, 404],
    [`GET ${configmaps}/a/status`, {}, 404],
    [`GET ${configmaps}`, { accept: "application/vnd.kubernetes.protobuf" }, 406],
    [`DELETE ${configmaps}/kube-root-ca.crt`, {}, 404],
    [`PATCH ${configmaps}/a`, { body: deep, type: "application/apply-patch+yaml" }, 400],
    ["POST /api/v1/configmaps", { body: {} }, 405],
    [`OPTIONS ${configmaps}`, {}, 405],
    [`POST ${configmaps}`, { body: huge }, 413],
    [`POST ${configmaps}`, { body: deep }, 400],
  ] as const) {
    const heard = ask(apiserver, what, more);
    const { kind, code: said } = jsonBody(heard);
    assert.equal([heard.status, kind, said, heard.ended], [code, "Status", code, true], what);
  }
});

test("protobuf is answered with JSON when the client takes that too", () => {
  const accept = "application/vnd.kubernetes.protobuf,application/json";
  assert.is(jsonBody(ask(newApiserver(), `GET ${configmaps}`, { accept }))["kind"], "ConfigMapList");
});

test("a Table is served as a list and as events, the columns once", () => {
  const apiserver = newApiserver();
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
  ask(apiserver, `POST ${configmaps}`, { body: { metadata: { name: "a" }, data: { k: "v" } } });
  assert.is(jsonBody(ask(apiserver, `GET ${configmaps}`, { accept }))["kind"], "Table");
  const watch = ask(apiserver, `GET ${configmaps}?watch=1&resourceVersion=5`, { accept });
  ask(apiserver, `DELETE ${configmaps}/a`);
  const tables = watch.text
    .trim()
    .split("\n")
    .map((line) => mapOf(JSON.parse(line).object));
  assert.equal(
    tables.map((table) => [table["kind"], table["columnDefinitions"] === null]),
    [
      ["Table", false],
      ["Table", true],
    ],
  );
  assert.equal(eventsOf(watch), ["ADDED @6", "DELETED @7"]);
});

test("watches are counted until they end, and a shutdown ends all of them", () => {
  const apiserver = newApiserver();
  const watches = [1, 2, 3].map(() => ask(apiserver, `GET ${configmaps}?watch=1`));
  assert.is(apiserver.watchCount, 3);
  watches[0]?.leave();
  assert.is(apiserver.watchCount, 2);
  apiserver.endWatches();
  assert.equal(
    watches.map(({ ended }) => ended),
    [false, true, true],
  );
  assert.is(apiserver.watchCount, 0);
});

test.run();
