import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Config, parseConfig } from "../../../src/ops/config/config.ts";
import { isProblems, lineOf } from "../../../src/ops/config/problem.ts";

const test = suite("config-clusters");

const cluster = (name: string, url: string): string =>
  `{name: ${name}, backends: [{name: cp-1, url: "${url}"}], tls: {caFile: ca.crt}}`;
const eu = cluster("eu", "https://10.0.0.1");
const us = cluster("us", "https://10.1.0.1");
const tls = "tls: {certFile: a, keyFile: b}";

/** Returns the configuration, or the messages of its problems without line and column. */
function read(listener: string, rest: string): Config | string[] {
  const text = `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
listeners: [{name: a, address: "[::]:7443", ${listener}}]
${rest}`;
  const outcome = parseConfig(text, "a.yaml");
  return isProblems(outcome) ? outcome.map((one) => lineOf(one).replace(/^\S+ /, "")) : outcome;
}

function sound(listener: string, rest: string): Config {
  const outcome = read(listener, rest);
  if (Array.isArray(outcome)) throw new Error(outcome.join("\n"));
  return outcome;
}

const several = `clusters: [${eu}, ${us}]`;

test("listeners, hosts and routes lead to the cluster that they name", () => {
  const { listeners, clusters } = sound(
    `cluster: us, ${tls}, hosts: [{serverNames: [eu.test], cluster: eu, ${tls}}]`,
    several,
  );
  assert.equal(
    clusters.map(({ name }) => name),
    ["eu", "us"],
  );
  assert.equal([listeners[0]?.cluster, listeners[0]?.hosts[0]?.cluster], ["us", "eu"]);
  const routes = "{serverNames: [eu.test], cluster: eu}, {cluster: us, backends: [cp-1]}";
  const routed = sound(`mode: Passthrough, routes: [${routes}]`, several).listeners[0]?.routes;
  assert.equal(routed, [
    { serverNames: ["eu.test"], cluster: "eu", backends: [] },
    { serverNames: [], cluster: "us", backends: ["cp-1"] },
  ]);
});

test("the only cluster is behind everything, named or not", () => {
  const { listeners } = sound(`${tls}, hosts: [{serverNames: [x.test], ${tls}}]`, `clusters: [${eu}]`);
  assert.equal([listeners[0]?.cluster, listeners[0]?.hosts[0]?.cluster], ["eu", "eu"]);
  assert.is(sound(`cluster: eu, ${tls}`, `clusters: [${eu}]`).listeners[0]?.cluster, "eu");
});

test("each cluster has a name of its own", () => {
  assert.equal(read(tls, ""), ["clusters is missing"]);
  assert.equal(read(tls, "clusters: []"), ["clusters needs at least one"]);
  assert.equal(read(`cluster: eu, ${tls}`, `clusters: [${eu}, ${cluster("eu", "https://10.0.0.2")}]`), [
    'clusters[1].name is "eu" again: entry 0 has that name',
  ]);
  assert.equal(read(tls, `clusters: [${eu.replace("name: eu, ", "")}]`), ["clusters[0].name is missing"]);
});

test("where there are several each listener, host and route says which, and none says one that there is not", () => {
  const missing = 'is missing: it must be one of "eu", "us"';
  assert.equal(read(tls, several), [`listeners[0].cluster ${missing}`]);
  assert.equal(read(`cluster: eu, ${tls}, hosts: [{serverNames: [x.test], ${tls}}]`, several), [
    `listeners[0].hosts[0].cluster ${missing}`,
  ]);
  assert.equal(read("mode: Passthrough, routes: [{serverNames: [x.test]}, {cluster: us}]", several), [
    `listeners[0].routes[0].cluster ${missing}`,
  ]);
  assert.equal(read("mode: Passthrough", several), [`listeners[0].cluster ${missing}`]);
  assert.equal(read(`cluster: asia, ${tls}`, several), [
    'listeners[0].cluster is "asia", and no cluster has that name: there is "eu", "us"',
  ]);
  assert.equal(read(`cluster: uss, ${tls}`, several), [
    'listeners[0].cluster is "uss", and no cluster has that name (did you mean "us"?)',
  ]);
});

test("a passthrough with routes has no use for a cluster of its own", () => {
  assert.equal(read("mode: Passthrough, cluster: eu, routes: [{cluster: us}]", several), [
    'listeners[0].cluster has no effect beside "routes": each route names its own',
  ]);
});

test("what a policy or a route needs is looked for in its own cluster", () => {
  const policy = "tls: {certFile: a, keyFile: b, clientCAFile: c}, identity: {clientCerts: Impersonate}";
  const vouching = us.replace("ca.crt}", "ca.crt, impersonator: {certFile: a, keyFile: b}}");
  const both = `clusters: [${eu}, ${vouching}]`;
  sound(`cluster: us, ${policy}, hosts: [{serverNames: [x.test], cluster: eu, ${tls}}]`, both);
  assert.equal(read(`cluster: eu, ${policy}`, both), [
    'clusters[0].tls.impersonator is missing: identity.clientCerts "Impersonate" needs it',
  ]);
  const named = us.replace("cp-1", "cp-9");
  assert.equal(
    read("mode: Passthrough, routes: [{cluster: us, backends: [cp-1]}]", `clusters: [${eu}, ${named}]`),
    ['listeners[0].routes[0].backends[0] is "cp-1", which is not a listed backend'],
  );
});

test("there are sixteen at most", () => {
  const all = Array.from({ length: 17 }, (_, at) => cluster(`c${at}`, `https://10.0.${at}.1`));
  sound(`cluster: c0, ${tls}`, `clusters: [${all.slice(1).join(", ").replace("c16", "c0")}]`);
  assert.equal(read(`cluster: c0, ${tls}`, `clusters: [${all.join(", ")}]`), [
    "clusters may have 16 at most, has 17",
  ]);
});

test.run();
