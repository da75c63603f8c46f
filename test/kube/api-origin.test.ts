import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  OpenApiTitle,
  Origins,
  originLimits,
  repeatsVersions,
  unseenOrigin,
} from "../../src/kube/api-origin.ts";

const test = suite("kube/api-origin");

const of = (origins: Origins, group: string): string => {
  const { isForeign, isKnown } = origins.of({ group, version: "v1" });
  return isKnown ? (isForeign ? "foreign" : "own") : "unknown";
};

test("only the apiserver's own events share versions", () => {
  assert.is(repeatsVersions("", "events"), true);
  assert.is(repeatsVersions("events.k8s.io", "events"), true);
  assert.is(repeatsVersions("", "pods"), false);
  assert.is(repeatsVersions("events.example.com", "events"), false);
});

test("built-in resources are etcd's; what is neither known nor built in is not", () => {
  const origins = new Origins();
  for (const group of ["", "apps", "batch", "policy", "rbac.authorization.k8s.io", "discovery.k8s.io"])
    assert.is(of(origins, group), "own", group);
  for (const group of ["cert-manager.io", "gateway.networking.k8s.io", "x.metrics.k8s.io"])
    assert.is(of(origins, group), "unknown", group);
});

test("an aggregated group is another server's, told by list or by a name that no custom resource may have", () => {
  const origins = new Origins({
    aggregatedAPIGroups: ["things.example.com"],
    customResourceAPIGroups: ["cert-manager.io"],
  });
  for (const group of ["metrics.k8s.io", "things.example.com", "wardle"])
    assert.is(of(origins, group), "foreign", group);
  assert.is(of(origins, "cert-manager.io"), "own");
});

test("what is learnt of a group and version holds for all clients, and for no other version", () => {
  const origins = new Origins();
  const api = { group: "cert-manager.io", version: "v1" };
  const origin = origins.met(api);
  assert.ok(origins.met(api) === origin && origins.of(api) === origin);
  origin.isForeign = false;
  origin.isKnown = true;
  assert.is(of(origins, api.group), "own");
  assert.ok(origins.of({ ...api, version: "v2" }) === unseenOrigin);
  assert.equal(origins.counts, { custom: 1, aggregated: 0, unknown: 0 });
});

test("of too many the last ones are not remembered, and stay foreign", () => {
  const origins = new Origins();
  for (let index = 0; index < originLimits.apiOrigins; index += 1)
    origins.met({ group: `g${index}.example.com`, version: "v1" });
  assert.ok(origins.met({ group: "more.example.com", version: "v1" }) === unseenOrigin);
  assert.is(origins.counts.unknown, originLimits.apiOrigins);
});

const read = (text: string, step = text.length): string => {
  const title = new OpenApiTitle();
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += step)
    title.feed(bytes, at, Math.min(bytes.length, at + step), at + step >= bytes.length);
  return title.version;
};

test("a CRD's OpenAPI says that it is one, in its first bytes, however they are cut", () => {
  const custom = '{"openapi":"3.0.0","info":{"title":"Kubernetes CRD Swagger","version":"v0.1.0"},"paths":{';
  for (const step of [1, 7, 64, 1000]) assert.is(read(`${custom}${"x".repeat(2000)}`, step), "custom");
  for (const other of [
    '{"openapi":"3.0.0","info":{"title":"metrics-server","version":"0.7"},"paths":{}}',
    `{"paths":{"${"x".repeat(600)}":1},"info":{"title":"Kubernetes CRD Swagger"}}`,
    "{}",
  ])
    assert.is(read(other, 10), "aggregated");
});

test.run();
