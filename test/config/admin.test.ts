import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Config, parseConfig } from "../../src/config/config.ts";
import { isProblems, lineOf } from "../../src/config/problem.ts";

const test = suite("config-admin");

const one = `upstream: {backends: [{name: cp-1, url: "https://10.0.0.1:6443"}], tls: {caFile: ca.crt}}`;
const two = `upstreams:
- {name: eu, backends: [{name: cp-1, url: "https://10.0.0.1:6443"}], tls: {caFile: ca.crt}}
- {name: us, backends: [{name: cp-1, url: "http://127.0.0.1:8001"}]}`;

/** A configuration with this admin port, or its problems without their places. */
function read(admin: string, upstream = one, route = ""): Config | string[] {
  const text = `apiVersion: watchkeeper.dev/v1alpha1
kind: WatchkeeperConfiguration
listeners: [{name: a, address: "127.0.0.1:8443"${route}}]
${upstream}
admin: {${admin}}`;
  const outcome = parseConfig(text, "/etc/a.yaml");
  return isProblems(outcome) ? outcome.map((problem) => lineOf(problem).replace(/^\S+ /, "")) : outcome;
}

const away = 'address: "0.0.0.0:7480"';
const tls = "tls: {certFile: a.crt, keyFile: a.key}";
const asked = "authorization: {mode: kubernetes}";

test("left out it is on loopback, and asks nobody", () => {
  const config = read("");
  if (Array.isArray(config)) return assert.equal(config, []);
  assert.equal(config.admin, {
    address: { host: "127.0.0.1", port: 7480 },
    metricsAddress: { host: "::", port: 7481 },
    operations: "on",
    authorization: undefined,
    tls: undefined,
  });
});

test("off loopback it needs both: somebody who judges tokens, and TLS under them", () => {
  const told = (missing: string): string[] => [
    `admin.address is "0.0.0.0:7480", but without ${missing} only loopback may be listened on`,
  ];
  assert.equal(read(away), told('"authorization.mode" "kubernetes" and "tls"'));
  assert.equal(read(`${away}, ${asked}`), told('"tls"'));
  assert.equal(read(`${away}, ${tls}`), told('"authorization.mode" "kubernetes"'));
  const config = read(`${away}, ${asked}, ${tls}`);
  if (Array.isArray(config)) return assert.equal(config, []);
  assert.equal(config.admin.authorization, { upstream: "", kubeconfigFile: undefined, audiences: [] });
  assert.equal(config.admin.tls, {
    certFile: "/etc/a.crt",
    keyFile: "/etc/a.key",
    reloadIntervalMs: 10_000,
  });
});

test("on loopback each may stand alone", () => {
  for (const part of [asked, tls, `${asked}, ${tls}`]) assert.not(Array.isArray(read(part)), part);
});

test("of several clusters one is named, and one that TLS leads to", () => {
  const of = (name: string): Config | string[] =>
    read(`authorization: {mode: kubernetes${name}}`, two, ", upstream: eu");
  const field = "admin.authorization.upstream";
  assert.equal(of(""), [`${field} is missing: it must be one of "eu", "us"`]);
  assert.equal(of(", upstream: asia"), [`${field} is "asia", which no upstream is called`]);
  assert.equal(of(", upstream: us"), [
    'upstreams[1].tls is missing: "admin.authorization" asks this cluster',
  ]);
  const config = of(", upstream: eu, kubeconfigFile: k, audiences: [watchkeeper]");
  if (Array.isArray(config)) return assert.equal(config, []);
  assert.equal(config.admin.authorization, {
    upstream: "eu",
    kubeconfigFile: "/etc/k",
    audiences: ["watchkeeper"],
  });
});

test("whom to ask says nothing while nobody is asked", () => {
  assert.equal(read("authorization: {kubeconfigFile: k}"), [
    'admin.authorization says whom to ask, but nobody is asked while "mode" is "off"',
  ]);
});

test.run();
