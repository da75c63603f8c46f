import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Apiserver } from "../../../demo/apiserver/apiserver.ts";
import { newCluster } from "../../../demo/apiserver/cluster.ts";
import { mapOf } from "../../../demo/objects/json.ts";
import { ask, type Heard, jsonBody } from "../../support/ask.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("demo/apiserver/rest");
const configmaps = "/api/v1/namespaces/default/configmaps";

type Verb = (what: string, body?: unknown, type?: string) => Heard;

function newVerb(): Verb {
  const clock = manualClock();
  const apiserver = new Apiserver({ store: newCluster(clock), clock, name: "one" });
  return (what, body, type) =>
    ask(apiserver, what, {
      ...(body === undefined ? {} : { body }),
      ...(type === undefined ? {} : { type }),
    });
}

const metadataIn = (heard: Heard): Record<string, unknown> => mapOf(jsonBody(heard)["metadata"]);
const reasonIn = (heard: Heard): unknown[] => [heard.status, jsonBody(heard)["reason"]];

test("an object is created, read, replaced and deleted", () => {
  const verb = newVerb();
  const made = verb(`POST ${configmaps}`, { metadata: { name: "a" }, data: { k: "v" } });
  assert.is(made.status, 201);
  assert.equal(metadataIn(made), {
    name: "a",
    namespace: "default",
    uid: "00000000-0000-4000-8000-000000000006",
    resourceVersion: "6",
    creationTimestamp: "2027-01-15T08:00:00Z",
  });
  const put = verb(`PUT ${configmaps}/a`, { ...jsonBody(made), data: { k: "w" } });
  assert.equal([put.status, metadataIn(put)["resourceVersion"]], [200, "7"]);
  assert.is(verb(`GET ${configmaps}/a`).text, put.text);
  assert.equal(jsonBody(verb(`DELETE ${configmaps}/a`))["details"], {
    name: "a",
    kind: "configmaps",
    uid: metadataIn(made)["uid"],
  });
  assert.equal(reasonIn(verb(`GET ${configmaps}/a`)), [404, "NotFound"]);
});

test("a write against an older version is a conflict, one that changes nothing makes no version", () => {
  const verb = newVerb();
  const first = jsonBody(verb(`POST ${configmaps}`, { metadata: { name: "a" } }));
  verb(`PUT ${configmaps}/a`, { ...first, data: { k: "v" } });
  const late = verb(`PUT ${configmaps}/a`, { ...first, data: { k: "w" } });
  assert.equal(reasonIn(late), [409, "Conflict"]);
  assert.match(late.text, "please apply your changes to the latest version");
  const same = verb(`PUT ${configmaps}/a`, { metadata: { name: "a" }, data: { k: "v" } });
  assert.is(metadataIn(same)["resourceVersion"], "7");
});

test("what cannot be created says why", () => {
  const verb = newVerb();
  verb(`POST ${configmaps}`, { metadata: { name: "a" } });
  const create = (body: unknown): unknown[] => reasonIn(verb(`POST ${configmaps}`, body));
  assert.equal(create({ metadata: { name: "a" } }), [409, "AlreadyExists"]);
  assert.equal(create({ metadata: { name: "Not A Name" } }), [422, "Invalid"]);
  assert.equal(create({ metadata: {} }), [422, "Invalid"]);
  assert.equal(create({ metadata: { name: "b", resourceVersion: "5" } }), [400, "BadRequest"]);
  assert.equal(create({ kind: "Secret", metadata: { name: "b" } }), [400, "BadRequest"]);
  assert.equal(create({ metadata: { name: "b", namespace: "kube-system" } }), [400, "BadRequest"]);
  assert.equal(create(Buffer.from("{")), [400, "BadRequest"]);
  assert.equal(reasonIn(verb("POST /api/v1/namespaces/nowhere/configmaps", { metadata: { name: "b" } })), [
    404,
    "NotFound",
  ]);
  assert.equal(reasonIn(verb(`POST ${configmaps}`, { a: 1 }, "application/yaml")), [
    415,
    "UnsupportedMediaType",
  ]);
  assert.equal(reasonIn(verb(`POST ${configmaps}?dryRun=All`, { a: 1 })), [400, "BadRequest"]);
});

test("generateName gives every object a name of its own", () => {
  const verb = newVerb();
  const names = [1, 2].map(
    () => metadataIn(verb(`POST ${configmaps}`, { metadata: { generateName: "a-" } }))["name"],
  );
  assert.equal(names, ["a-00006", "a-00007"]);
});

test("every kind of patch is understood, and apply creates what is not there", () => {
  const verb = newVerb();
  const patch = (type: string, body: unknown): Heard =>
    verb(`PATCH ${configmaps}/a`, body, `application/${type}`);
  assert.equal(reasonIn(patch("merge-patch+json", {})), [404, "NotFound"]);
  assert.is(patch("apply-patch+yaml", { data: { k: "v", l: "w" } }).status, 201);
  patch("merge-patch+json", { data: { k: null } });
  patch("strategic-merge-patch+json", { data: { m: "x" } });
  patch("json-patch+json", [{ op: "add", path: "/data/n", value: "y" }]);
  assert.equal(jsonBody(verb(`GET ${configmaps}/a`))["data"], { l: "w", m: "x", n: "y" });
  assert.equal(reasonIn(patch("json-patch+json", [{ op: "remove", path: "/data/no" }])), [400, "BadRequest"]);
  assert.equal(reasonIn(patch("other+json", {})), [415, "UnsupportedMediaType"]);
  assert.equal(reasonIn(patch("merge-patch+json", { metadata: { resourceVersion: "1" } })), [
    409,
    "Conflict",
  ]);
});

test("a list is selected, versioned, and refuses versions that are not there yet", () => {
  const verb = newVerb();
  verb(`POST ${configmaps}`, { metadata: { name: "a", labels: { app: "x" } } });
  verb(`POST ${configmaps}`, { metadata: { name: "b" } });
  const list = jsonBody(verb("GET /api/v1/configmaps?labelSelector=app%3Dx&resourceVersion=7"));
  assert.equal(list["metadata"], { resourceVersion: "7" });
  assert.is(Array.isArray(list["items"]) && list["items"].length, 1);
  assert.equal(reasonIn(verb(`GET ${configmaps}?resourceVersion=8`)), [504, "Timeout"]);
  assert.equal(reasonIn(verb(`GET ${configmaps}?resourceVersion=x`)), [400, "BadRequest"]);
  assert.equal(reasonIn(verb(`GET ${configmaps}?fieldSelector=spec.x%3D1`)), [400, "BadRequest"]);
});

test("a secret without a type is Opaque, as a typed client expects", () => {
  const verb = newVerb();
  const typeOf = (more: object): unknown =>
    jsonBody(verb("POST /api/v1/namespaces/default/secrets", { metadata: { generateName: "s-" }, ...more }))[
      "type"
    ];
  assert.equal([typeOf({}), typeOf({ type: "kubernetes.io/tls" })], ["Opaque", "kubernetes.io/tls"]);
});

test("preconditions of a delete are held to", () => {
  const verb = newVerb();
  verb(`POST ${configmaps}`, { metadata: { name: "a" } });
  const wrong = verb(`DELETE ${configmaps}/a`, { preconditions: { uid: "other" } });
  assert.equal(reasonIn(wrong), [409, "Conflict"]);
  assert.is(verb(`DELETE ${configmaps}/a`, { preconditions: { resourceVersion: "6" } }).status, 200);
});

test("a collection is deleted by selector, a namespace with all that is in it", () => {
  const verb = newVerb();
  verb(`POST ${configmaps}`, { metadata: { name: "a", labels: { app: "x" } } });
  verb(`POST ${configmaps}`, { metadata: { name: "b" } });
  verb(`DELETE ${configmaps}?labelSelector=app`);
  assert.equal([verb(`GET ${configmaps}/a`).status, verb(`GET ${configmaps}/b`).status], [404, 200]);
  assert.is(verb("DELETE /api/v1/namespaces/default").status, 200);
  assert.equal(
    [verb(`GET ${configmaps}/b`).status, verb("GET /api/v1/namespaces/default").status],
    [404, 404],
  );
});

test.run();
