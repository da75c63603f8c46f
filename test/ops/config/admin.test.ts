import { suite } from "uvu";
import * as assert from "uvu/assert";
import { hasUnprotectedMetrics } from "../../../src/ops/config/admin.ts";
import { type Config, parseConfig } from "../../../src/ops/config/config.ts";
import { isProblems, lineOf } from "../../../src/ops/config/problem.ts";

const test = suite("config-admin");

const one = `clusters: [{name: default, backends: [{name: cp-1, url: "https://10.0.0.1:6443"}], tls: {caFile: ca.crt}}]`;
const two = `clusters:
- {name: eu, backends: [{name: cp-1, url: "https://10.0.0.1:6443"}], tls: {caFile: ca.crt}}
- {name: us, backends: [{name: cp-1, url: "http://127.0.0.1:8001"}]}`;

/** Returns a configuration with this `admin` section, or the messages of its problems without line and column. */
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
    replicas: undefined,
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
    reloadIntervalMs: 5_000,
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

const secure = `${away}, ${asked}, ${tls}`;

test("replicas are a list or a name; with TLS they have a CA, and the name or address that certificates contain", () => {
  const named = read(`${secure}, replicas: {hostname: wk.kube-system.svc, caFile: ca.crt}`);
  if (Array.isArray(named)) return assert.equal(named, []);
  assert.equal(named.admin.replicas, {
    addresses: undefined,
    name: { hostname: "wk.kube-system.svc", port: 7480 },
    tls: { caFile: "/etc/ca.crt", serverName: "wk.kube-system.svc" },
  });
  assert.ok(named.files.includes("/etc/ca.crt"));
  const listed = read('replicas: {addresses: ["127.0.0.1:7480", "[::1]:7490"]}');
  if (Array.isArray(listed)) return assert.equal(listed, []);
  assert.equal(listed.admin.replicas, {
    addresses: [
      { host: "127.0.0.1", port: 7480 },
      { host: "::1", port: 7490 },
    ],
    name: undefined,
    tls: undefined,
  });
});

test("replicas that would get a token in clear text, or that are no address of one process, are refused", () => {
  const only = 'but without "admin.tls" only replicas on loopback may be asked';
  assert.equal(read('replicas: {addresses: ["10.0.0.1:7480"]}'), [
    `admin.replicas.addresses[0] is "10.0.0.1:7480", ${only}`,
  ]);
  assert.equal(read("replicas: {hostname: wk.svc}"), [`admin.replicas.hostname is "wk.svc", ${only}`]);
  assert.equal(read('replicas: {addresses: ["127.0.0.1:1"], caFile: a, serverName: b}'), [
    'admin.replicas.caFile has no effect without "admin.tls"',
    'admin.replicas.serverName has no effect without "admin.tls"',
  ]);
  assert.equal(read(`${secure}, replicas: {hostname: wk.svc}`), [
    'admin.replicas.caFile is missing: "admin.tls" is set',
  ]);
  for (const address of ["169.254.169.254:80", ":7480", "127.0.0.1:0", "224.0.0.1:7480"])
    assert.equal(read(`${secure}, replicas: {caFile: a, addresses: ["${address}"]}`), [
      `admin.replicas.addresses[0] is "${address}", which is not the address of one process`,
    ]);
  assert.equal(read('replicas: {addresses: ["127.0.0.1:1", "127.0.0.1:1"]}'), [
    'admin.replicas.addresses[1] is "127.0.0.1:1", which is listed already',
  ]);
  assert.equal(read("replicas: {}"), ['admin.replicas needs "addresses" or "hostname"']);
  assert.equal(read('replicas: {addresses: ["127.0.0.1:1"], hostname: localhost, port: 7480}'), [
    'admin.replicas.hostname has no effect beside "addresses"',
  ]);
  assert.equal(read('replicas: {addresses: ["127.0.0.1:1"], port: 7480}'), [
    'admin.replicas.port needs "hostname"',
  ]);
  const many = Array.from({ length: 65 }, (_, at) => `"127.0.0.1:${at + 1}"`).join();
  assert.equal(read(`replicas: {addresses: [${many}]}`), [
    "admin.replicas.addresses may have 64 at most, has 65",
  ]);
});

test("a limit for all replicas needs to know them", () => {
  const limited = `clusters: [{name: default, backends: [{name: cp-1, url: "https://10.0.0.1:6443"}], tls: {caFile: ca.crt},
    limits: [{name: ci, users: [jane], rate: 30/s, scope: AllReplicas}]}]`;
  assert.equal(read("", limited), [
    'clusters[0].limits[0].scope is "AllReplicas", but "admin.replicas" is missing',
  ]);
  assert.not.ok(Array.isArray(read('replicas: {addresses: ["127.0.0.1:1"]}', limited)));
});

test.run();
