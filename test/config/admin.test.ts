import { suite } from "uvu";
import * as assert from "uvu/assert";
import { hasUnprotectedMetrics } from "../../src/config/admin.ts";
import { type Config, parseConfig } from "../../src/config/config.ts";
import { isProblems, lineOf } from "../../src/config/problem.ts";

const test = suite("config-admin");

const one = `clusters: [{name: default, backends: [{name: cp-1, url: "https://10.0.0.1:6443"}], tls: {caFile: ca.crt}}]`;
const two = `clusters:
- {name: eu, backends: [{name: cp-1, url: "https://10.0.0.1:6443"}], tls: {caFile: ca.crt}}
- {name: us, backends: [{name: cp-1, url: "http://127.0.0.1:8001"}]}`;

/** A configuration with this admin port, or its problems without their places. */
function read(admin: string, clusters = one, route = ""): Config | string[] {
  const text = `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
listeners: [{name: a, address: "127.0.0.1:8443"${route}}]
${clusters}
admin: {${admin}}`;
  const outcome = parseConfig(text, "/etc/a.yaml");
  return isProblems(outcome) ? outcome.map((problem) => lineOf(problem).replace(/^\S+ /, "")) : outcome;
}

const away = 'address: "0.0.0.0:7480"';
const tls = "tls: {certFile: a.crt, keyFile: a.key}";
const asked = "authorization: {mode: Webhook}";

test("by default it is on loopback, and asks no cluster", () => {
  const config = read("");
  if (Array.isArray(config)) return assert.equal(config, []);
  assert.equal(config.admin, {
    address: { host: "127.0.0.1", port: 7480 },
    metricsAddress: { host: "::", port: 7481 },
    probeThread: true,
    readOnly: false,
    metrics: { authorization: undefined, tls: undefined },
    authorization: undefined,
    tls: undefined,
  });
});

test("off loopback it needs both: a cluster that reviews tokens, and TLS under them", () => {
  const told = (missing: string): string[] => [
    `admin.address is "0.0.0.0:7480", but without ${missing} only loopback may be listened on`,
  ];
  assert.equal(read(away), told('"authorization.mode" "Webhook" and "tls"'));
  assert.equal(read(`${away}, ${asked}`), told('"tls"'));
  assert.equal(read(`${away}, ${tls}`), told('"authorization.mode" "Webhook"'));
  const config = read(`${away}, ${asked}, ${tls}`);
  if (Array.isArray(config)) return assert.equal(config, []);
  assert.equal(config.admin.authorization, { cluster: "default", kubeconfigFile: undefined, audiences: [] });
  assert.equal(config.admin.tls, {
    certFile: "/etc/a.crt",
    keyFile: "/etc/a.key",
    reloadIntervalMs: 10_000,
  });
});

test("metrics with authorization need TLS, and metrics that other machines can read in clear text are known", () => {
  const config = (text: string): Config => {
    const outcome = read(text);
    if (Array.isArray(outcome)) throw new Error(outcome.join());
    return outcome;
  };
  assert.equal(read(`metrics: {${asked}}`), [
    'admin.metrics.authorization.mode is "Webhook", but without "admin.metrics.tls" clients would send their tokens in clear text',
  ]);
  const { metrics } = config(`metrics: {${asked}, ${tls}}`).admin;
  assert.is(metrics.authorization?.cluster, "default");
  assert.is(metrics.tls?.certFile, "/etc/a.crt");
  const isOpen = (text: string): boolean => hasUnprotectedMetrics(config(text).admin);
  assert.ok(isOpen(""), "all addresses by default");
  assert.ok(isOpen(`metrics: {${tls}}`));
  assert.not.ok(isOpen(`metrics: {${asked}, ${tls}}`));
  assert.not.ok(isOpen('metricsAddress: "127.0.0.1:7481"'));
});

test("on loopback each may stand alone", () => {
  for (const part of [asked, tls, `${asked}, ${tls}`]) assert.not(Array.isArray(read(part)), part);
});

test("of several clusters one is named, and one that TLS leads to", () => {
  const of = (name: string): Config | string[] =>
    read(`authorization: {mode: Webhook${name}}`, two, ", cluster: eu");
  const field = "admin.authorization.cluster";
  assert.equal(of(""), [`${field} is missing: it must be one of "eu", "us"`]);
  assert.equal(of(", cluster: asia"), [
    `${field} is "asia", and no cluster has that name: there is "eu", "us"`,
  ]);
  assert.equal(of(", cluster: us"), ['clusters[1].tls is missing: "admin.authorization" asks this cluster']);
  const config = of(", cluster: eu, kubeconfigFile: k, audiences: [watchkeeper]");
  if (Array.isArray(config)) return assert.equal(config, []);
  assert.equal(config.admin.authorization, {
    cluster: "eu",
    kubeconfigFile: "/etc/k",
    audiences: ["watchkeeper"],
  });
});

test("a cluster to ask is without meaning while none is asked", () => {
  assert.equal(read("authorization: {kubeconfigFile: k}"), [
    'admin.authorization has settings of mode "Webhook", but "mode" is "AlwaysAllow"',
  ]);
});

test.run();
