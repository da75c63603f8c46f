import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { classify, isObjectRead, isOwnApi } from "../../src/kube/request-info.ts";
import { requestInfo } from "../support/request-info.ts";
import { methods, targets } from "../support/targets.ts";

const test = suite("kube/request-info");

/**
 * Returns kind, verb, group/version, namespace, resource, name and subresource, separated by spaces. "-" stands for an
 * empty part.
 */
function told(method: string, target: string): string {
  const info = classify(method, target);
  const words = [info.kind, info.verb, `${info.group}/${info.version}`, info.namespace, info.resource];
  return [...words, info.name, info.subresource].map((word) => (word === "" ? "-" : word)).join(" ");
}

test("requests for objects say which", () => {
  const pod = "/api/v1/namespaces/default/pods/web-0";
  assert.is(told("GET", pod), "plain get /v1 default pods web-0 -");
  assert.is(told("PATCH", `${pod}/status`), "plain patch /v1 default pods web-0 status");
  assert.is(told("POST", "/apis/apps/v1/namespaces/a/deployments"), "plain create apps/v1 a deployments - -");
  assert.is(
    told("PUT", "/apis/apps/v1/namespaces/a/deployments/b/"),
    "plain update apps/v1 a deployments b -",
  );
  assert.is(told("DELETE", "/api/v1/nodes"), "plain deletecollection /v1 - nodes - -");
  assert.is(told("DELETE", "/api/v1/nodes/n1"), "plain delete /v1 - nodes n1 -");
  assert.is(told("OPTIONS", "/api/v1/nodes"), "plain - /v1 - nodes - -");
});

test("a namespace is an object, with its own status, and a place for others", () => {
  assert.is(told("GET", "/api/v1/namespaces"), "plain list /v1 - namespaces - -");
  assert.is(told("GET", "/api/v1/namespaces/a"), "plain get /v1 a namespaces a -");
  assert.is(told("PUT", "/api/v1/namespaces/a/finalize"), "plain update /v1 a namespaces a finalize");
  assert.is(told("GET", "/api/v1/namespaces/a/status"), "plain get /v1 a namespaces a status");
});

test("other paths are no resources, whatever they look like", () => {
  for (const path of ["/", "/api", "/api/v1", "/api/v1/", "/apis/apps/v1", "/healthz", "/x/api/v1/pods"]) {
    assert.is(classify("GET", `${path}?watch=1`).isResource, false, path);
    assert.is(classify("GET", path).kind, "plain", path);
    assert.is(classify("GET", path).verb, "get", path);
  }
});

test("the key watch makes a list a watch, unless its first value is 0 or false", () => {
  for (const query of ["watch", "watch=", "watch=no", "watch=TRUE", "limit=5&watch=1", "watch=1&watch=0"])
    assert.is(told("GET", `/api/v1/pods?${query}`), "watch watch /v1 - pods - -", query);
  for (const query of ["", "Watch=true", "watch=0", "watch=False", "watch=false&watch=true", "a=watch"])
    assert.is(told("GET", `/api/v1/pods?${query}`), "plain list /v1 - pods - -", query);
});

test("a GET with a name is no watch, and no writing method is", () => {
  assert.is(told("GET", "/api/v1/nodes/n1?watch=true"), "plain get /v1 - nodes n1 -");
  for (const method of ["POST", "PUT", "PATCH", "DELETE"])
    assert.is(classify(method, "/api/v1/nodes?watch=true").kind, "plain", method);
});

test("the old prefix is a watch whatever the query says, for one object too", () => {
  const path = "/api/v1/watch/namespaces/a/pods";
  assert.is(told("GET", `${path}?watch=false`), "watch watch /v1 a pods - -");
  assert.is(told("GET", `${path}/web-0`), "watch watch /v1 a pods web-0 -");
  assert.is(classify("POST", path).kind, "long-running", "it may carry a body: never sent twice");
  assert.is(classify("GET", "/api/v1/watch").kind, "plain", "an error to the apiserver");
});

test("what may be silent for hours is long-running", () => {
  for (const subresource of ["exec", "attach", "portforward", "log", "proxy", "proxy/metrics/cadvisor"])
    for (const method of ["GET", "POST"])
      assert.is(classify(method, `/api/v1/namespaces/a/pods/b/${subresource}`).kind, "long-running");
  for (const path of ["/api/v1/nodes/n1/proxy/logs/", "/api/v1/proxy/nodes/n1", "/debug/pprof/profile"])
    assert.is(classify("GET", path).kind, "long-running", path);
  for (const path of [
    "/api/v1/nodes/n1/status",
    "/api/v1/namespaces/a/pods/log",
    "//debug/pprof/",
    "/debug/pprof",
  ])
    assert.is(classify("GET", path).kind, "plain", path);
});

test("escapes are read as the apiserver reads them, never a normalised copy (A30)", () => {
  assert.is(told("GET", "/%61pi/v1/p%6fds?%77atch=1"), "watch watch /v1 - pods - -");
  assert.is(told("GET", "/api/v1/namespaces/a%2fpods%2fb%2fexec"), "long-running get /v1 a pods b exec");
  assert.is(told("GET", "/api/v1/x/../pods"), "plain get /v1 - x .. pods");
  assert.is(classify("GET", "/api/v1/pods%zz?watch=1").isResource, false);
});

test("it agrees with a slow transcription of requestinfo.go on 30,000 random requests", () => {
  fc.assert(
    fc.property(methods, targets, (method, target) => {
      const { kind, ...rest } = classify(method, target);
      const expected = requestInfo(method, target);
      if (expected === undefined) assert.is(rest.isResource, false, target);
      else assert.equal({ ...rest, isLongRunning: kind !== "plain" }, expected, `${method} ${target}`);
      assert.is(kind === "watch" && rest.verb !== "watch", false, target);
    }),
    { numRuns: 30_000 },
  );
});

test("64 KiB of anything take less than five milliseconds (A59)", () => {
  const hostile = ["/", "/a", "%41", "/%2f"].map((piece) => `/api/v1${piece.repeat(65_536 / piece.length)}`);
  for (const piece of ["&", "w&", "%&", "%41&", "watch=%&", "%77atch=%&", "watch;&", "w", "+"])
    hostile.push(`/api/v1/pods?${piece.repeat(65_536 / piece.length)}%77atch=+`);
  for (const target of hostile) {
    const times = Array.from({ length: 40 }, () => {
      const started = performance.now();
      classify("GET", target);
      return performance.now() - started;
    });
    // Judges the fastest of many runs, and permits five times the usual time, because other processes use this machine.
    // If the time grew with the square of the length, it would be seconds.
    assert.ok(Math.min(...times) < 5, `${target.slice(0, 40)} took ${Math.min(...times)} ms`);
  }
});

test("one object is read by its name: no collection, nothing that lasts, nothing that is no resource", () => {
  const isRead = (method: string, target: string): boolean => isObjectRead(classify(method, target));
  const object = "/api/v1/namespaces/n/pods/p";
  assert.ok(isRead("GET", object));
  assert.ok(isRead("HEAD", `${object}/status?pretty=true`));
  const others = ["/api/v1/pods", `${object}/log`, "/api/v1/watch/namespaces/n/pods/p", "/version", "/api"];
  for (const target of others) assert.not(isRead("GET", target), target);
  for (const method of ["PUT", "DELETE", "PATCH", "POST"]) assert.not(isRead(method, object), method);
});

test("only what the apiserver has in its own storage tells of itself: no aggregated API, no conversion by a webhook", () => {
  const isOwn = (target: string): boolean => isOwnApi(classify("GET", target), target);
  for (const target of [
    "/api/v1/namespaces/n/pods/p",
    "/apis/apps/v1/namespaces/n/deployments/d/scale",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/f",
    "/version",
  ])
    assert.ok(isOwn(target), target);
  for (const target of [
    "/apis/metrics.k8s.io/v1beta1/nodes/n",
    "/apis/stable.example.com/v1/namespaces/n/crontabs/c",
    "/api/v1/componentstatuses/etcd-0",
    "/apis/unknown/v1/things/t",
    "/apis/metrics.k8s.io/v1beta1",
    "/openapi/v3/apis/metrics.k8s.io/v1beta1",
  ])
    assert.not(isOwn(target), target);
});

test("of a long target the names are the same as of a short one", () => {
  const path = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/mine";
  assert.equal(classify("GET", `${path}?x=${"y".repeat(60_000)}`), classify("GET", `${path}?x=y`));
  assert.is(classify("GET", `/apis/a/v1/${"r".repeat(60_000)}`).resource.length, 60_000);
});

test.run();
