import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Config, parseConfig } from "../../src/config/config.ts";
import { isProblems, lineOf } from "../../src/config/problem.ts";

const test = suite("config-clusters");

const cluster = (name: string, url: string): string =>
  `{${name === "" ? "" : `name: ${name}, `}backends: [{name: cp-1, url: "${url}"}], tls: {caFile: ca.crt}}`;
const eu = cluster("eu", "https://10.0.0.1");
const us = cluster("us", "https://10.1.0.1");
const tls = "tls: {certFile: a, keyFile: b}";

/** The configuration, or its problems without their places. */
function read(listener: string, rest: string): Config | string[] {
  const text = `apiVersion: watchkeeper.dev/v1alpha1
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

const several = `upstreams: [${eu}, ${us}]`;

test("listeners, hosts and routes lead to the cluster that they name", () => {
  const { listeners, upstreams } = sound(
    `upstream: us, ${tls}, hosts: [{names: [eu.test], upstream: eu, ${tls}}]`,
    several,
  );
  assert.equal(
    upstreams.map(({ name }) => name),
    ["eu", "us"],
  );
  assert.equal([listeners[0]?.upstream, listeners[0]?.hosts[0]?.upstream], ["us", "eu"]);
  const routes = "{serverNames: [eu.test], upstream: eu}, {upstream: us, backends: [cp-1]}";
  const routed = sound(`mode: passthrough, routes: [${routes}]`, several).listeners[0]?.routes;
  assert.equal(routed, [
    { serverNames: ["eu.test"], upstream: "eu", backends: [] },
    { serverNames: [], upstream: "us", backends: ["cp-1"] },
  ]);
});

test("the only cluster is behind everything, with a name or without, in either form", () => {
  for (const [rest, name] of [
    [`upstream: ${cluster("", "https://10.0.0.1")}`, ""],
    [`upstream: ${eu}`, "eu"],
    [`upstreams: [${eu}]`, "eu"],
  ] as const) {
    const { listeners, upstreams } = sound(`${tls}, hosts: [{names: [x.test], ${tls}}]`, rest);
    assert.is(upstreams[0].name, name);
    assert.equal([listeners[0]?.upstream, listeners[0]?.hosts[0]?.upstream], [name, name]);
  }
  assert.is(sound(`upstream: eu, ${tls}`, `upstreams: [${eu}]`).listeners[0]?.upstream, "eu");
});

test("a file has one form or the other, and each of several a name of its own", () => {
  assert.equal(read(tls, ""), ["upstream is missing"]);
  assert.equal(read(`upstream: eu, ${tls}`, `upstream: ${us}\nupstreams: [${eu}]`), [
    'upstreams stands beside "upstream": move that into the list',
  ]);
  assert.equal(read(`upstream: eu, ${tls}`, `upstreams: [${eu}, ${cluster("eu", "https://10.0.0.2")}]`), [
    'upstreams[1].name is "eu" again: entry 0 has that name',
  ]);
  assert.equal(read(`upstream: eu, ${tls}`, `upstreams: [${eu}, ${cluster("", "https://10.0.0.2")}]`), [
    "upstreams[1].name is missing",
  ]);
});

test("where there are several each listener, host and route says which, and none says one that there is not", () => {
  const missing = 'is missing: there are several upstreams, "eu", "us"';
  assert.equal(read(tls, several), [`listeners[0].upstream ${missing}`]);
  assert.equal(read(`upstream: eu, ${tls}, hosts: [{names: [x.test], ${tls}}]`, several), [
    `listeners[0].hosts[0].upstream ${missing}`,
  ]);
  assert.equal(read("mode: passthrough, routes: [{serverNames: [x.test]}, {upstream: us}]", several), [
    `listeners[0].routes[0].upstream ${missing}`,
  ]);
  assert.equal(read("mode: passthrough", several), [`listeners[0].upstream ${missing}`]);
  assert.equal(read(`upstream: asia, ${tls}`, several), [
    'listeners[0].upstream is "asia", which is no upstream: there is "eu", "us"',
  ]);
  assert.equal(read(`upstream: uss, ${tls}`, several), [
    'listeners[0].upstream is "uss", which is no upstream (did you mean "us"?)',
  ]);
  assert.equal(read(`upstream: eu, ${tls}`, `upstream: ${cluster("", "https://10.0.0.1")}`), [
    'listeners[0].upstream is "eu", which is no upstream: the only one has no name',
  ]);
});

test("a passthrough with routes has no use for a cluster of its own", () => {
  assert.equal(read("mode: passthrough, upstream: eu, routes: [{upstream: us}]", several), [
    'listeners[0].upstream is of no use beside "routes": each names its own',
  ]);
});

test("what a policy or a route needs is looked for in its own cluster", () => {
  const policy = "tls: {certFile: a, keyFile: b, clientCAFile: c}, identity: {clientCerts: impersonate}";
  const vouching = us.replace("ca.crt}", "ca.crt, impersonator: {certFile: a, keyFile: b}}");
  const both = `upstreams: [${eu}, ${vouching}]`;
  sound(`upstream: us, ${policy}, hosts: [{names: [x.test], upstream: eu, ${tls}}]`, both);
  assert.equal(read(`upstream: eu, ${policy}`, both), [
    'upstreams[0].tls.impersonator is missing: identity.clientCerts "impersonate" needs it',
  ]);
  const named = us.replace("cp-1", "cp-9");
  assert.equal(
    read("mode: passthrough, routes: [{upstream: us, backends: [cp-1]}]", `upstreams: [${eu}, ${named}]`),
    ['listeners[0].routes[0].backends[0] is "cp-1", which is no listed backend'],
  );
});

test("there are sixteen at most", () => {
  const all = Array.from({ length: 17 }, (_, at) => cluster(`c${at}`, `https://10.0.${at}.1`));
  sound(`upstream: c0, ${tls}`, `upstreams: [${all.slice(1).join(", ").replace("c16", "c0")}]`);
  assert.equal(read(`upstream: c0, ${tls}`, `upstreams: [${all.join(", ")}]`), [
    "upstreams may have 16 at most, has 17",
  ]);
});

test.run();
